#!/usr/bin/env bash
# bench/select_h200/run.sh OUT_DIR [SEED]: times fresh random shapes on the H200 of this machine: cuBLASLt lists (bf16,
# tf32, fp8) and the Triton tile sweep. Writes OUT_DIR/cublaslt_<dtype>_seed<SEED>.csv, triton_bf16_seed<SEED>.csv and
# record_seed<SEED>.txt (date, device, driver, versions, numbers of problems).
# Needs nvcc, and for Triton a Python with torch and triton. Nothing of this repository has to be built.
#   CUBLASLT_SECONDS  measuring a type, default 25       TRITON_SECONDS  measuring, default 90; 0 = no Triton
#   LIMIT_SECONDS     the whole, default 340: Triton gets what the rest left of it
#   SELECT_TABLE      a built select_table: prints the table at the end. Elsewhere: select_table --on h200 OUT_DIR/*.csv
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
if (($# < 1 || $# > 2)) || [[ ! ${2:-1} =~ ^[0-9]{1,9}$ ]]; then
  echo "usage: $0 OUT_DIR [SEED], SEED a whole number of at most nine digits" >&2
  exit 2
fi
out=$1
seed=${2:-1}
triton=${TRITON_SECONDS:-90}
limit=${LIMIT_SECONDS:-340}
mkdir -p "$out"
record=$out/record_seed$seed.txt
SECONDS=0
{
  date -u '+%Y-%m-%d %H:%M:%S UTC'
  nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,clocks.max.mem,power.limit --format=csv
  nvcc --version | tail -n 2
} | tee "$record"

if [[ ! -x "$out/cublaslt_lists" ]]; then
  nvcc -O2 -std=c++17 -arch=sm_90 "$here/cublaslt_lists.cu" -lcublasLt -o "$out/cublaslt_lists"
fi
if [[ $triton != 0 ]] && ! python3 -c 'import torch, triton' 2>/dev/null; then
  echo "triton: left out, this Python has no torch or no triton" | tee -a "$record"
  triton=0
fi
# Triton compiles on the other cores while cuBLASLt is timed.
parts=$(($(nproc) > 3 ? $(nproc) - 2 : 1))
compiling=()
if [[ $triton != 0 ]]; then
  for ((part = 0; part < parts; ++part)); do
    timeout $((limit * 2 / 3)) python3 "$here/triton_sweep.py" compile "$part" "$parts" &
    compiling+=($!)
  done
fi
for dtype in bf16 tf32 fp8; do
  "$out/cublaslt_lists" "$seed" "${CUBLASLT_SECONDS:-25}" "$dtype" "$out/cublaslt_${dtype}_seed$seed.csv" |
    tee -a "$record"
done
echo "cuBLASLt lists done after $SECONDS s"
if [[ $triton != 0 ]]; then
  for job in "${compiling[@]}"; do
    wait "$job" || echo "a compiling process stopped early; what it left is compiled when first timed"
  done
  echo "Triton kernels compiled after $SECONDS s"
  left=$((limit - SECONDS))
  python3 "$here/triton_sweep.py" "$seed" $((triton < left ? triton : left > 20 ? left : 20)) \
    "$out/triton_bf16_seed$seed.csv" | tee -a "$record"
fi
echo "all done after $SECONDS s"
if [[ -x ${SELECT_TABLE:-} ]]; then
  "$SELECT_TABLE" --on h200 "$out"/*_seed"$seed".csv
fi
