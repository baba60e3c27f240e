#!/usr/bin/env bash
# cli_test.sh BINARY SOURCE_DIR: exit codes, widths, JSON and error texts of the built command.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/cases.sh"

binary=$(readlink -f "$1") source_dir=$(readlink -f "$2")
[[ -x $binary ]] || { echo "no such binary: $1" >&2; exit 3; }
suite=Cli
export LC_ALL=C PORTOLAN_DATA="$source_dir/data"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$source_dir" || exit 1

# run ARGUMENT…: sets rc; $work/out and $work/err hold what was printed.
run() {
  timeout 60 "$binary" "$@" >"$work/out" 2>"$work/err" </dev/null
  rc=$?
}
# says TEXT: the error has it, is short, and nothing else was printed.
says() {
  grep -qF -- "$1" "$work/err" || fail "standard error lacks '$1': $(cat "$work/err")"
  [[ ! -s $work/out ]] || fail "printed an answer beside the error"
  (($(wc -l <"$work/err") <= 2)) || fail "more than two lines of error"
}
# refused CODE TEXT ARGUMENT…: a whole case body.
refused() {
  local code=$1 text=$2
  shift 2
  run "$@"
  [[ $rc == "$code" ]] || fail "exit code $rc instead of $code: $(cat "$work/err")"
  says "$text"
}
# refuses NAME CODE TEXT ARGUMENT…: a whole case.
refuses() {
  begin "$1"
  shift
  refused "$@"
  end
}
# answers ARGUMENT…: an answer and nothing wrong. A failed check of validate (1) is an answer too: plan's tests judge it.
answers() {
  run "$@"
  [[ $rc == 0 || ($rc == 1 && $1 == validate) ]] || fail "exit code $rc instead of 0: $(cat "$work/err")"
  [[ -s $work/out ]] || fail "printed nothing"
}
# number KEY FILE: the value of a key of the outermost object.
number() { sed -nE "s/^  \"$1\": (-?[0-9][0-9.e+-]*),?\$/\1/p" "$2"; }
# model NAME LINE…: a small model, then the lines given.
model() {
  local file="$work/$1.yaml"
  shift
  printf '%s\n' "$@" >"$file"
}

dcnv2=(estimate data/models/mlperf_dlrm_dcnv2.yaml --on 8xh100 --recipe data/recipes/hugectr_mlperf.yaml)
small=('model: small' 'dense_features: 4' 'tables:' '  - {name: t, rows: 100, dim: 8, lookups: 1}' 'blocks:'
  '  - {name: bottom, type: mlp, input: dense, widths: [8]}')

# Answers.
begin answer
answers "${dcnv2[@]}"
grep -q '^step ' "$work/out" || fail "no step"
grep -q ': fits$' "$work/out" || fail "no word on memory"
end

begin does_not_fit_is_an_answer
answers estimate mlperf_dlrm_dcnv2 --on a30 --recipe hugectr_mlperf --global-batch 1e4
grep -q 'does not fit' "$work/out" || fail "does not say that it does not fit"
end

begin at_most_80_columns
export PORTOLAN_DATA=data
for arguments in "${dcnv2[*]} --ops --tables" "estimate onetrans_large --on 1024xmi350x --ops --tables" \
  "estimate production_66 --on 128xb200 --tables --ops" validate "hw list" "hw diff b200 mi350x" "hw diff cpu v100" \
  --help "estimate --help" "validate --help" "hw --help" "hw show --help" "hw diff --help"; do
  # shellcheck disable=SC2086
  answers $arguments
  wide=$(awk 'length > 80' "$work/out" | head -n 1)
  [[ -z $wide ]] || fail "$arguments: $wide"
  ! grep -q $'\e' "$work/out" || fail "$arguments: escape codes in a pipe"
done
for file in data/accelerators/*.yaml data/fabrics/*.yaml; do
  answers hw show "$(basename "$file" .yaml)"
  wide=$(awk 'length > 80 && /[^ ] +[^ ]/' "$work/out" | head -n 1)
  [[ -z $wide ]] || fail "$file: $wide"
done
export PORTOLAN_DATA="$source_dir/data"
end

begin version
answers --version
grep -qE '^[0-9]+\.[0-9]+\.[0-9]+$' "$work/out" || fail "$(cat "$work/out")"
end

# JSON.
begin json_repeats_byte_for_byte
for arguments in "${dcnv2[*]}" validate "hw list" "hw show h100" "hw show nvlink4" "hw diff b200 mi350x"; do
  for i in 1 2; do
    # shellcheck disable=SC2086
    answers $arguments --json "$work/$i.json"
  done
  cmp -s "$work/1.json" "$work/2.json" || fail "$arguments"
  grep -q "^  \"schema\": \"portolan\.[a-z_]*/1\",$" "$work/1.json" || fail "$arguments: no schema"
  ! grep -qF -e "$source_dir" -e "$work" "$work/1.json" || fail "$arguments: a path of this machine"
done
end

begin json_keys_and_sum
for arguments in "${dcnv2[*]}" "estimate onetrans_large --on 8xmi355x --recipe onetrans_primus" \
  "estimate mlperf_dlrmv4_hstu --on 16xmi350x --recipe dlrmv4_mlperf" "estimate rm2 --on cpu" "estimate rm3 --on 2x4xh100"; do
  # shellcheck disable=SC2086
  answers $arguments --json "$work/e.json"
  step=$(number step_time_s "$work/e.json")
  for key in step_time_s samples_per_s hbm_bytes_per_device global_batch; do
    awk -v v="$(number $key "$work/e.json")" 'BEGIN { exit !(v > 0) }' || fail "$arguments: $key"
  done
  awk -v step="$step" '/^  "breakdown": \{/ { inside = 1; next } inside && /^  \}/ { inside = 0 }
    inside { sub(/,$/, "", $2); sum += $2; terms++ }
    END { d = sum - step; exit !(terms > 0 && d <= 1e-9 * step && -d <= 1e-9 * step) }' "$work/e.json" ||
    fail "$arguments: the terms of the breakdown do not sum to step_time_s $step"
  awk -v step="$step" -v rate="$(number samples_per_s "$work/e.json")" -v batch="$(number global_batch "$work/e.json")" \
    'BEGIN { d = rate * step / batch - 1; exit !(d <= 1e-9 && -d <= 1e-9) }' || fail "$arguments: samples_per_s"
done
end

begin json_to_standard_output_alone
answers "${dcnv2[@]}" --json -
[[ $(head -c 1 "$work/out") == '{' && $(tail -n 1 "$work/out") == '}' ]] || fail "more than the document"
cp "$work/out" "$work/stdout.json"
answers "${dcnv2[@]}" --json "$work/file.json"
cmp -s "$work/stdout.json" "$work/file.json" || fail "file and standard output differ"
end

refuses json_unwritable 3 "/nonexistent/x.json: cannot be written" "${dcnv2[@]}" --json /nonexistent/x.json
refuses json_folder 3 "is a folder" "${dcnv2[@]}" --json "$work"
begin full_disk
if [[ -w /dev/full ]]; then
  "$binary" hw list >/dev/full 2>"$work/err"
  [[ $? == 3 ]] || fail "not exit code 3"
  grep -q 'cannot be written' "$work/err" || fail "says nothing"
  "$binary" "${dcnv2[@]}" --json /dev/full >/dev/null 2>"$work/err"
  [[ $? == 3 ]] || fail "--json: not exit code 3"
else
  skip "no /dev/full"
fi
end

# Command line.
refuses no_command 2 "a command is required: estimate, "
refuses unknown_command 2 "'estimat' is not a command; did you mean 'estimate'?" estimat rm1
refuses unknown_hw_command 2 "'lst' is not a command; did you mean 'list'?" hw lst
refuses unknown_flag 2 "unknown option '--recipie'; did you mean '--recipe'?" estimate rm1 --on h100 --recipie x
refuses no_cluster 2 "--on is required" estimate rm1
refuses no_model 2 "model is required" estimate --on h100
refuses surplus_argument 2 "rm2" estimate rm1 rm2 --on h100
refuses both_batches 2 "excludes" estimate rm1 --on h100 --global-batch 8 --local-batch 8
for batch in nan inf 0 -1 1.5 2e12 99999999999999999999 ten ''; do
  refuses "batch_${batch//[^a-z0-9]/_}" 2 "-batch" estimate rm1 --on h100 --local-batch "$batch"
done
begin batch_forms
answers estimate rm1 --on 8xh100 --global-batch 8192 --json "$work/a.json"
answers estimate rm1 --on 8xh100 --global-batch 8.192e3 --json "$work/b.json"
cmp -s "$work/a.json" "$work/b.json" || fail "8192 and 8.192e3 differ"
answers estimate rm1 --on 8xh100 --local-batch 1024 --json "$work/b.json"
cmp -s "$work/a.json" "$work/b.json" || fail "8192 and 8 x 1024 differ"
end
begin huge_batch
answers estimate rm1 --on 8xh100 --global-batch 1e12
grep -q 'does not fit' "$work/out" || fail "fits"
end
refuses batch_below_devices 2 "at least the number of devices (8), got 7" estimate rm1 --on 8xh100 --global-batch 7

# Clusters.
refuses unknown_chip 2 "known: a100, " estimate rm1 --on 8xnosuch
refuses unknown_chip_near 2 "did you mean 'h100'?" hw show h10
for cluster in 0xh100 -8xh100 8x 8xx xh100 1e3xh100 8.5xh100 '8x h100' 99999999xh100 9999999999999999999xh100 \
  2x2x2xh100 2x0xh100; do
  refuses "cluster_${cluster//[^a-z0-9]/_}" 2 "accepted: ID, NxID or RxNxID" estimate rm1 "--on=$cluster"
done
refuses empty_cluster 2 "--on" estimate rm1 "--on="
refuses not_a_multiple 2 "nearest: 8 or 16" estimate rm1 --on 9xh100
begin seven_in_one_node
answers estimate rm1 --on 7xh100
end
refuses unknown_fabric 2 "nvlink4" estimate rm1 --on 8xh100 --fabric nosuch
refuses unknown_nic 2 "nic_400g" estimate rm1 --on 16xh100 --nic nosuch

# Files.
refuses missing_file 2 "is neither a file nor one of the known names" estimate nosuch.yaml --on h100
refuses near_name 2 "did you mean 'rm1'?" estimate rm11 --on h100
refuses folder_as_file 2 "neither a file" estimate data/models --on h100
refuses missing_recipe 2 "hugectr_mlperf" estimate rm1 --on h100 --recipe nosuch
ln -s loop.yaml "$work/loop.yaml"
refuses symlink_loop 2 "neither a file" estimate "$work/loop.yaml" --on h100
: >"$work/empty.yaml"
refuses empty_file 2 "empty.yaml" estimate "$work/empty.yaml" --on h100
head -c 4096 "$binary" >"$work/binary.yaml"
refuses binary_file 2 "binary.yaml" estimate "$work/binary.yaml" --on h100
begin unreadable_file
model unreadable "${small[@]}"
chmod 000 "$work/unreadable.yaml"
if [[ -r $work/unreadable.yaml ]]; then
  skip "this user may read everything (root)"
else
  refused 3 "unreadable.yaml" estimate "$work/unreadable.yaml" --on h100
fi
end
model broken 'model: broken' 'dense_features: 4' 'blocks: [' '  - {name: a'
refuses broken_yaml 2 "broken.yaml:" estimate "$work/broken.yaml" --on h100
begin broken_yaml_line
run estimate "$work/broken.yaml" --on h100
grep -qE 'broken\.yaml:[3-6]: ' "$work/err" || fail "no line number: $(cat "$work/err")"
end
model unknown_key "${small[@]/widths/width}"
refuses unknown_key 2 "did you mean 'widths'?" estimate "$work/unknown_key.yaml" --on h100
begin unknown_key_line
run estimate "$work/unknown_key.yaml" --on h100
grep -qE 'unknown_key\.yaml:6: ' "$work/err" || fail "no line number: $(cat "$work/err")"
end
model out_of_bounds "${small[@]/rows: 100/rows: -5}"
refuses out_of_bounds 2 "tables[0].rows" estimate "$work/out_of_bounds.yaml" --on h100
model twice "${small[@]}" 'model: again'
refuses key_twice 2 "stands twice" estimate "$work/twice.yaml" --on h100
model not_a_number "${small[@]/lookups: 1/lookups: .nan}"
refuses lookups_nan 2 "lookups" estimate "$work/not_a_number.yaml" --on h100
model dangling "${small[@]/input: dense/input: dence}"
refuses dangling_input 2 "did you mean 'dense'?" estimate "$work/dangling.yaml" --on h100
model recipe 'recipe: mine' 'local_batch: 64' 'embedding:' '  tables: {cat_99: {sharding: row}}'
refuses recipe_names_no_table 2 "has no table 'cat_99'" estimate mlperf_dlrm_dcnv2 --on 8xh100 --recipe "$work/recipe.yaml"
model recipe_key 'recipe: mine' 'local_batch: 64' 'precision: {gem: fp16}'
refuses recipe_key 2 "did you mean 'gemm'?" estimate rm1 --on h100 --recipe "$work/recipe_key.yaml"
model recipe_batch 'recipe: mine' 'local_batch: .nan'
refuses recipe_batch_nan 2 "local_batch" estimate rm1 --on h100 --recipe "$work/recipe_batch.yaml"

# From another folder, with relative paths.
begin relative_paths
model mine "${small[@]}"
model fast 'recipe: fast' 'local_batch: 64'
(cd "$work" && unset PORTOLAN_DATA && "$binary" estimate mine.yaml --on 8xh100 --recipe ./fast.yaml --json here.json) \
  >"$work/out" 2>"$work/err" || fail "$(cat "$work/err")"
[[ -s $work/here.json ]] || fail "no JSON in the caller's folder"
grep -q '^small on 8xh100, recipe fast, global batch 512 = 8 x 64$' "$work/out" || fail "$(head -n 1 "$work/out")"
end

# A chip, a model, a recipe and a published step of the user's own.
mkdir -p "$work/own/accelerators" "$work/own/models" "$work/own/recipes" "$work/own/validation"
fact() { printf '%s: {value: %s, kind: datasheet, source: "data sheet, p. 2", date: 2026-11-30}\n' "$1" "$2"; }
{
  printf 'name: ACME Trainer 1\nvendor: acme\n'
  fact compute_units 120
  fact hbm_bytes 192e9
  fact hbm_peak_bytes_per_s 5.2e12
  printf 'peak_matrix_flops_per_s:\n  '
  fact bf16 1.2e15
} >"$work/own/accelerators/acme1.yaml"
cp "$work/mine.yaml" "$work/own/models/mine.yaml"
cp "$work/fast.yaml" "$work/own/recipes/fast.yaml"
cat >"$work/own/validation/own.yaml" <<'YAML'
validation: our cluster
source: our log of 2026-11-30
entries:
  - {id: mine_8xacme1, model: mine, recipe: fast, on: 8xacme1, step_time_s: 1.0e-3, tolerance: 10}
YAML
own=(--data-dir "$work/own")
# The built-in data without its validation: only the user's step is judged.
mkdir "$work/bare"
ln -s "$source_dir"/data/{accelerators,fabrics,models,recipes} "$work/bare"
begin own_chip_estimate
answers estimate mine --on 8xacme1 --recipe fast "${own[@]}"
end
begin own_chip_hw
answers hw list "${own[@]}"
grep -q '^acme1 ' "$work/out" || fail "hw list"
answers "${own[@]}" hw show acme1
grep -q 'inherited' "$work/out" || fail "hw show does not tell what is inherited"
answers hw diff h100 acme1 "${own[@]}"
grep -q '^HBM capacity' "$work/out" || fail "hw diff"
end
begin own_chip_validate
PORTOLAN_DATA="$work/bare" run validate "${own[@]}"
[[ $rc == 0 ]] || fail "exit code $rc: $(cat "$work/err")"
grep -q '^mine_8xacme1 ' "$work/out" || fail "$(cat "$work/out")"
end
begin own_chip_as_one_file
answers hw show acme1 --data-dir "$work/own/accelerators/acme1.yaml"
end
begin failed_check_is_1
sed -i 's/tolerance: 10/tolerance: 0.001/; s/1.0e-3/1.0/' "$work/own/validation/own.yaml"
PORTOLAN_DATA="$work/bare" run validate "${own[@]}"
[[ $rc == 1 ]] || fail "exit code $rc"
end
refuses data_dir_missing 2 "no such data directory" hw list --data-dir "$work/nosuch"
begin chip_without_source
sed -i 's/source: "[^"]*", //' "$work/own/accelerators/acme1.yaml"
refused 2 "source" hw list "${own[@]}"
end

finish cli
