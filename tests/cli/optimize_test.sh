#!/usr/bin/env bash
# optimize_test.sh BINARY SOURCE_DIR: `portolan optimize` and `calibrate` from the command line: the answer, its document,
# and what they refuse. Times are of a calibration of one point a grid, so no prediction is judged here.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/cases.sh"

binary=$(readlink -f "$1") source_dir=$(readlink -f "$2")
[[ -x $binary ]] || { echo "no such binary: $1" >&2; exit 3; }
suite=Optimize
export LC_ALL=C OMP_WAIT_POLICY=passive PORTOLAN_DATA="$source_dir/data"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 3

write_job() { # FILE [LINE…]
  {
    small_model "gemm: fp32, activation: fp32"
    printf '%s\n' "${@:2}"
  } >"$1"
}
mkdir -p toy/calibration
cp "$source_dir/tests/cli/toy_calibration.yaml" toy/calibration/cpu.yaml
refuses() { # NAME CODE TEXT ARGUMENT…
  begin "$1"
  timeout 60 "$binary" "${@:4}" >out 2>err </dev/null
  local rc=$?
  [[ $rc == "$2" ]] || fail "exit code $rc instead of $2: $(<err)"
  grep -qF -- "$3" err || fail "standard error lacks '$3': $(<err)"
  [[ ! -s out ]] || fail "printed an answer beside the error"
  end
}

write_job job.yaml 'data: {type: synthetic}' 'steps: 12' 'eval: {samples: 640}' 'allow: [gemm_dtype]'
begin BothRecipesAreTrainedAndCompared
"$binary" optimize job.yaml --rounds 3 --calibration toy --json answer.json >out 2>err </dev/null || fail "failed: $(<err)"
grep -q "was made for 'a machine of one point'" err || fail "does not say that the calibration is another machine's"
for text in 'plain port' 'co-designed' 'embedding_update = fused' 'on the eval split'; do
  grep -qF "$text" out || fail "lacks '$text': $(<out)"
done
awk 'length > 80' out | grep -q . && fail "a line of more than 80 columns"
end
begin TheDocumentHoldsBothRecipes
if ! type -P python3 >/dev/null; then
  skip "no python3 to read it"
else
  python3 - <<'EOF' || fail "the document"
import json
answer = json.load(open("answer.json"))
assert answer["samples"] == 12 * 64 and answer["auc_of"] == "eval"
for name in ("baseline", "codesigned"):
    recipe = answer[name]
    assert recipe["predicted_step_time_s"] > 0 and recipe["measured_step_time_s"] > 0 and 0 < recipe["auc"] < 1, recipe
    assert abs(recipe["samples_per_s"] * recipe["measured_step_time_s"] - 64) < 1e-6
    assert recipe["ne"] > 0 and "local_batch: 64" in recipe["recipe"] or recipe["recipe"]["local_batch"] == 64
assert answer["measured_speedup"] == answer["baseline"]["measured_step_time_s"] / answer["codesigned"]["measured_step_time_s"]
assert answer["changes"] and all(c["alone_measured_speedup"] > 0 and c["maths"] for c in answer["changes"])
EOF
fi
end

write_job absent.yaml 'data: {format: criteo_tsv, files: [absent/train.txt]}' 'steps: 12'
refuses DataThatIsNotThere 2 'absent/train.txt' optimize absent.yaml --calibration nowhere
begin NothingIsMeasuredForAJobThatIsRefused
[[ ! -e nowhere ]] || fail "calibrated before it read the job"
end
write_job few.yaml 'data: {type: synthetic}' 'steps: 2'
refuses TooFewSteps 2 'at least, got 2' optimize few.yaml --calibration toy
write_job rule.yaml 'data: {type: synthetic}' 'steps: 12' 'allow: [gemm_dtyp]'
refuses ARuleThatIsNone 2 "allow[0]: no rule is named 'gemm_dtyp'; did you mean 'gemm_dtype'" optimize rule.yaml --calibration toy
write_job short.yaml 'data: {type: synthetic, samples: 10}' 'steps: 12'
refuses DataOfLessThanABatch 2 'no whole batch' optimize short.yaml --calibration toy
refuses RoundsOutOfBounds 2 '--rounds' optimize job.yaml --rounds 2
refuses NoSuchJob 2 'nothing.yaml' optimize nothing.yaml
mkdir -p broken/calibration
sed 's/^fork_s: .*/fork_s: -1/' toy/calibration/cpu.yaml >broken/calibration/cpu.yaml
refuses ABrokenCalibration 2 'fork_s' optimize job.yaml --calibration broken
begin NowhereToWrite
XDG_CONFIG_HOME= HOME= timeout 60 "$binary" calibrate >out 2>err </dev/null
[[ $? == 2 ]] || fail "exit code"
grep -q -- '--out' err || fail "does not say what helps: $(<err)"
end

finish optimize_cli
