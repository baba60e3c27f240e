#!/usr/bin/env bash
# train_test.sh BINARY: `portolan train` from the command line: kill -9 at any moment and go on with the same bits, a full
# disk, and what it refuses.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/cases.sh"

binary=$(readlink -f "$1")
[[ -x $binary ]] || { echo "no such binary: $1" >&2; exit 3; }
suite=Train
export LC_ALL=C OMP_WAIT_POLICY=passive
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 3

write_job() { # FILE STEPS
  small_model "gemm: fp32, activation: fp32, embedding_row: fp16" >"$1"
  cat >>"$1" <<EOF
data: {type: synthetic}
steps: $2
report_every: 50
eval: {samples: 0}
EOF
}

begin KillAtAnyMomentAndGoOn
write_job whole.yaml 1500
"$binary" train whole.yaml --export whole.safetensors >whole.log 2>&1 || fail "the run without a stop failed: $(<whole.log)"
write_job killed.yaml 1500
echo 'checkpoint: {folder: kept, every: 7, keep: 2}' >>killed.yaml
kills=0
for delay in 0.02 0.11 0.05 0.17 0.08 0.23 0.13 0.3; do
  "$binary" train killed.yaml >killed.log 2>&1 &
  pid=$!
  sleep "$delay"
  if kill -9 "$pid" 2>/dev/null; then kills=$((kills + 1)); fi
  wait "$pid" 2>/dev/null
  for folder in kept/step_?????????; do
    [[ -e $folder ]] || continue
    # Whole: what it says it is opens and goes on. Half removed ones have no DONE.
    [[ ! -e $folder/DONE || -s $folder/state.safetensors ]] || fail "$folder has DONE and no state"
  done
done
"$binary" train killed.yaml --export killed.safetensors >killed.log 2>&1 || fail "the last run failed: $(<killed.log)"
cmp whole.safetensors killed.safetensors || fail "the parameters differ after $kills kills: $(head -n 3 killed.log)"
((kills > 0)) || fail "nothing was killed: the runs are too short"
end

begin FullDiskLeavesNothingHalf
"$binary" train whole.yaml --steps 2 --export /dev/full >full.log 2>&1
code=$?
((code == 3)) || fail "exit code $code"
grep -q '/dev/full: cannot be written: No space left on device' full.log || fail "$(<full.log)"
end

begin SecondRunHasTheSameOutput
"$binary" train whole.yaml --steps 60 --json one.json >/dev/null 2>&1
"$binary" train whole.yaml --steps 60 --json two.json --threads 1 --deterministic >/dev/null 2>&1
losses() { sed -n '/"losses"/,$p' "$1"; }
[[ -n $(losses one.json) && $(losses one.json) == "$(losses two.json)" ]] || fail "other losses with one thread"
end

begin RefusesWithPlaceAndNames
sed 's/reuse//; s/type: synthetic/type: synthetik/' whole.yaml >wrong.yaml
"$binary" train wrong.yaml >wrong.log 2>&1
(($? == 2)) || fail "exit code of an unknown type of data"
grep -q 'wrong.yaml:10: data.type: .*synthetic' wrong.log || fail "$(<wrong.log)"
sed 's/type: dot_interaction/type: factorization, rank: 1/; s/\[bottom, embeddings\]/[bottom]/' whole.yaml >wrong.yaml
"$binary" train wrong.yaml >wrong.log 2>&1 && fail "a block that is not built was accepted"
end

begin CudaRunsOrSaysInOneLineWhatIsMissing
"$binary" train whole.yaml --steps 2 --device cuda >cuda.log 2>&1
code=$?
if ((code != 0)); then
  (($(wc -l <cuda.log) == 1)) || fail "more than one line: $(<cuda.log)"
  grep -qE 'device cuda: (this binary is built without CUDA; |no NVIDIA GPU )' cuda.log || fail "$(<cuda.log)"
fi
"$binary" train whole.yaml --steps 2 --device-memory 1GiB >memory.log 2>&1 && fail "memory of a device that is not used"
grep -q 'device-memory.*device cuda, got device cpu' memory.log || fail "$(<memory.log)"
"$binary" train whole.yaml --steps 2 --device cuda --device-memory much >memory.log 2>&1 && fail "memory that is no number"
grep -q "must be.*got 'much'" memory.log || fail "$(<memory.log)"

echo 'device: gpu' >>wrong.yaml
"$binary" train wrong.yaml >wrong.log 2>&1
(($? == 2)) || fail "exit code of an unknown device"
grep -q 'device: must be one of cpu, cuda, got .gpu' wrong.log || fail "$(<wrong.log)"
end

finish train_cli
