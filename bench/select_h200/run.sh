#!/usr/bin/env bash
# bench/select_h200/run.sh OUT_DIR [SEED]: times fresh random shapes on the H200 of this machine: cuBLASLt lists (bf16,
# tf32, fp8) and the Triton tile sweep. Seconds of measuring: CUBLASLT_SECONDS (20 a type), TRITON_SECONDS (60; 0 = none).
# Then, anywhere: select_table FILE... prints first choice, ours and best.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
out=$1
seed=${2:-1}
mkdir -p "$out"
if [[ ! -x "$out/cublaslt_lists" ]]; then
  nvcc -O2 -std=c++17 -arch=sm_90 "$here/cublaslt_lists.cu" -lcublasLt -o "$out/cublaslt_lists"
fi
if [[ ${TRITON_SECONDS:-60} != 0 ]]; then
  for part in $(seq 0 13); do python3 "$here/triton_sweep.py" compile "$part" 14 & done
fi
for dtype in bf16 tf32 fp8; do
  "$out/cublaslt_lists" "$seed" "${CUBLASLT_SECONDS:-20}" "$dtype" "$out/cublaslt_${dtype}_seed$seed.csv"
done
wait
if [[ ${TRITON_SECONDS:-60} != 0 ]]; then
  python3 "$here/triton_sweep.py" "$seed" "${TRITON_SECONDS:-60}" "$out/triton_bf16_seed$seed.csv"
fi
nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem --format=csv
