#!/usr/bin/env bash
# plan_test.sh BINARY SOURCE_DIR: what `portolan plan` prints, writes and refuses.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/cases.sh"

binary=$(readlink -f "$1") source_dir=$(readlink -f "$2")
suite=Plan
export LC_ALL=C PORTOLAN_DATA="$source_dir/data"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$source_dir" || exit 1

# run ARGUMENT…: sets rc; $work/out and $work/err hold what was printed.
run() {
  timeout 120 "$binary" "$@" >"$work/out" 2>"$work/err" </dev/null
  rc=$?
}
answers() {
  run "$@"
  [[ $rc == 0 ]] || fail "exit code $rc instead of 0: $(cat "$work/err")"
  [[ -s $work/out ]] || fail "printed nothing"
  [[ ! -s $work/err ]] || fail "wrote to standard error: $(cat "$work/err")"
}
# refuses NAME TEXT ARGUMENT…: exit code 2, TEXT in the error, nothing else.
refuses() {
  local text=$2
  begin "$1"
  shift 2
  run "$@"
  [[ $rc == 2 ]] || fail "exit code $rc instead of 2: $(cat "$work/out" "$work/err")"
  grep -qF -- "$text" "$work/err" || fail "standard error lacks '$text': $(cat "$work/err")"
  [[ ! -s $work/out ]] || fail "printed an answer beside the error"
  end
}
# number KEY FILE: the value of a key of the outermost object.
number() { sed -nE "s/^  \"$1\": (-?[0-9][0-9.e+-]*),?\$/\1/p" "$2"; }
# within A B: equal to 1e-9.
within() { awk -v a="$1" -v b="$2" 'BEGIN { d = a / b - 1; exit !(d <= 1e-9 && -d <= 1e-9) }'; }

hstu=(plan mlperf_dlrmv4_hstu --from 8xb200 --to 8xmi350x)
rm2=(plan rm2 --from 8xb200 --to 8xmi350x)

begin json_repeats_byte_for_byte
for i in 1 2; do answers "${rm2[@]}" --json "$work/$i.json" --torchrec "$work/t$i.json" --out "$work/r$i.yaml"; done
cmp -s "$work/1.json" "$work/2.json" || fail "--json"
cmp -s "$work/t1.json" "$work/t2.json" || fail "--torchrec"
cmp -s "$work/r1.yaml" "$work/r2.yaml" || fail "--out"
grep -q '^  "schema": "portolan.plan/1",$' "$work/1.json" || fail "no schema"
grep -q '^  "schema": "portolan.torchrec_plan/1",$' "$work/t1.json" || fail "no schema of the sharding"
! grep -qF -e "$source_dir" -e "$work" "$work/1.json" "$work/t1.json" "$work/r1.yaml" || fail "a path of this machine"
end

begin json_to_standard_output_is_the_same
answers "${rm2[@]}" --json -
cmp -s "$work/out" "$work/1.json" || fail "differs from --json FILE"
end

begin at_most_80_columns_and_no_colours
printf 'recipe: plain\nlocal_batch: 1024\n' >"$work/plain.yaml"
for arguments in "${hstu[*]} --rejected --launch" "${rm2[*]} --tables --launch" "plan --help" \
  "plan production_66 --from 8xb200 --to 8xmi350x --recipe $work/plain.yaml --rejected --tables"; do
  # shellcheck disable=SC2086
  answers $arguments
  wide=$(awk 'length > 80' "$work/out" | head -n 1)
  [[ -z $wide ]] || fail "$arguments: $wide"
  ! grep -q $'\e' "$work/out" || fail "$arguments: escape codes in a pipe"
done
end

begin capacity_decides_dlrmv4
answers "${hstu[@]}" --json "$work/p.json" --out "$work/r.yaml"
grep -q '^recompute = none: ' "$work/out" || fail "recomputation is not dropped: $(cat "$work/out")"
grep -q 'on 8xb200: does not fit: 259 of 180 GB' "$work/out" || fail "does not say that 180 GB are too few"
grep -q '"no_gain_reason": null' "$work/p.json" || fail "no_gain_reason beside a gain"
end

begin estimate_prices_the_recipe_the_same
answers estimate mlperf_dlrmv4_hstu --on 8xmi350x --recipe "$work/r.yaml" --json "$work/e.json"
planned=$(awk '/^  "codesigned": \{/ { inside = 1 } inside && /"step_time_s"/ { print $2; exit }' "$work/p.json")
within "${planned%,}" "$(number step_time_s "$work/e.json")" || fail "$planned against $(cat "$work/e.json")"
end

begin speedup_is_the_ratio_of_samples_per_s
rates=$(awk '/^  "(baseline|codesigned)": \{/ { inside = 1 } inside && /"samples_per_s"/ { print $2; inside = 0 }' "$work/p.json")
within "$(number speedup "$work/p.json")" "$(tr -d ',' <<<"$rates" | awk '{ v[NR] = $1 } END { printf "%.17g", v[2] / v[1] }')" ||
  fail "$rates"
end

begin nothing_to_gain_says_why
answers plan mlperf_dlrm_dcnv2 --from 8xmi350x --to 8xmi350x
grep -q 'nothing to gain over the ported recipe: the' "$work/out" || fail "$(cat "$work/out")"
end

begin what_fits_nowhere_is_an_answer
printf '%s\n' 'model: vast' 'dense_features: 8' 'tables:' '  - {name: t, rows: 1e11, dim: 100, lookups: 1}' 'blocks:' \
  '  - {name: a, type: mlp, input: dense, widths: [64]}' >"$work/vast.yaml"
answers plan "$work/vast.yaml" --from 8xb200 --to 8xmi350x
grep -q 'does not fit on 8xmi350x' "$work/out" || fail "$(cat "$work/out")"
grep -q '^what would make it fit: ' "$work/out" || fail "does not say what would make it fit"
end

begin host_memory_makes_it_fit
printf '%s\n' 'model: crowded' 'dense_features: 13' 'tables:' '  - {name: users, rows: 6e9, dim: 64}' \
  '  - {name: items, rows: 1e9, dim: 64}' 'features:' '  - {name: user, table: users, lookups: 1, zipf_exponent: 0.9}' \
  '  - {name: history, table: items, lookups: 60, zipf_exponent: 1.05}' 'blocks:' \
  '  - {name: bottom, type: mlp, input: dense, widths: [512, 64]}' \
  '  - {name: joined, type: concat, inputs: [bottom, embeddings]}' \
  '  - {name: top, type: mlp, input: joined, widths: [1024, 512, 1]}' >"$work/crowded.yaml"
answers plan "$work/crowded.yaml" --from 8xmi350x --to 8xb200 --out "$work/host.yaml"
grep -q '^needed to fit on 8xb200: host_tables = ' "$work/out" || fail "$(cat "$work/out")"
[[ -z $(awk 'length > 80' "$work/out") ]] || fail "wider than 80 columns"
answers estimate "$work/crowded.yaml" --on 8xb200 --recipe "$work/host.yaml"
grep -q '^host memory per node .* of 1800: fits$' "$work/out" || fail "$(cat "$work/out")"
end
printf 'recipe: r\nlocal_batch: 64\nembedding: {host_tables_min_bytes: 1}\n' >"$work/host.yaml"
refuses host_tables_need_a_stated_host_memory 'states no host_memory_bytes_per_device' \
  estimate mlperf_dlrm_dcnv2 --on 8xa30 --recipe "$work/host.yaml"

# Inputs that are no numbers, or no sensible ones, and names that do not exist.
for batch in 0 -1 nan inf 1e400 -inf 2e12 abc 8x; do
  refuses "batch_${batch//[^a-z0-9]/_}" '--global-batch must be a whole number from 1 to 1e+12, got' "${rm2[@]}" \
    "--global-batch=$batch"
done
refuses batch_empty '--global-batch' "${rm2[@]}" --global-batch ''
refuses batch_smaller_than_the_devices 'global_batch must be at least the number of devices (8), got 4' \
  "${rm2[@]}" --global-batch 4
refuses unknown_rule "no rule is named 'bach'; did you mean 'batch'?" "${rm2[@]}" --allow bach
refuses unknown_rule_in_a_list "no rule is named 'x'" "${rm2[@]}" --allow batch,x
refuses unknown_model "nosuch" plan nosuch --from 8xb200 --to 8xmi350x
refuses unknown_recipe "nosuch" "${rm2[@]}" --recipe nosuch
refuses unknown_chip "unknown accelerator 'mi35x'" plan rm2 --from 8xb200 --to 8xmi35x
refuses from_is_required "--from" plan rm2 --to 8xmi350x
refuses to_is_required "--to" plan rm2 --from 8xb200
refuses no_devices "0xb200" plan rm2 --from 0xb200 --to 8xmi350x
refuses negative_devices "-8xb200" plan rm2 --from=-8xb200 --to 8xmi350x
refuses too_many_devices "99999999999xb200" plan rm2 --from 99999999999xb200 --to 8xmi350x

begin unknown_structure_rule_names_file_and_field
printf 'recipe: r\nlocal_batch: 64\nstructure:\n  - {rule: pad_dimension, multiple: 8}\n' >"$work/bad.yaml"
for command in "plan rm2 --from 8xb200 --to 8xmi350x" "estimate rm2 --on 8xb200"; do
  # shellcheck disable=SC2086
  run $command --recipe "$work/bad.yaml"
  [[ $rc == 2 ]] || fail "$command: exit code $rc"
  grep -qF "bad.yaml:4: structure[0].rule: must be one of pad_dimensions" "$work/err" || fail "$(cat "$work/err")"
done
end

begin files_that_cannot_be_written
for option in --out --torchrec --json; do
  run "${rm2[@]}" "$option" "$work/nosuch/file"
  [[ $rc == 3 ]] || fail "$option: exit code $rc instead of 3"
  grep -qF "$work/nosuch/file" "$work/err" || fail "$option: $(cat "$work/err")"
done
end

finish plan_cli
