#!/usr/bin/env bash
# tests/device/run_cuda.sh OUT [GTEST OPTION...]: builds the tests of the gpu kernels with nvcc and g++ alone (no CMake, no
# oneDNN) into the folder OUT and runs them on the GPU at hand. GoogleTest: from the system, or GTEST_ROOT with gtest/ (its
# headers) and lib/. ARCH: sm_90 unless set. CHECK="compute-sanitizer --tool memcheck" runs them under it.
set -euo pipefail

root=$(dirname "$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")")
out=${1:?usage: tests/device/run_cuda.sh OUT [GTEST OPTION...]}
shift
mkdir -p "$out"
flags=(-std=c++20 -I"$root/src" -I"$root/tests")
if [[ -n ${GTEST_ROOT:-} ]]; then flags+=(-I"$GTEST_ROOT" -L"$GTEST_ROOT/lib"); fi
cuda=$(dirname "$(dirname "$(readlink -f "$(type -P nvcc)")")")

compile() {
  local source=$1 object
  object="$out/$(tr / _ <<<"${source#"$root/"}").o"
  if [[ $source == */gpu*.cc ]]; then
    nvcc -x cu -O3 -arch="${ARCH:-sm_90}" -I"$root/src" -std=c++20 -c "$source" -o "$object"
  else
    g++ -O2 -fopenmp "${flags[@]}" -I"$cuda/include" -DPORTOLAN_TEST_BACKEND=cuda -DPORTOLAN_BACKEND=cuda -c "$source" -o "$object"
  fi
}

sources=("$root"/src/base/check.cc "$root"/tests/device/managed_memory.cc "$root"/src/kernels/embedding/row_formats.cc
  "$root"/src/kernels/embedding/cpu_backward.cc)  # the last for the size of the workspace
for gpu in "$root"/src/kernels/*/gpu.cc; do
  folder=$(dirname "$gpu")
  sources+=("$folder"/gpu*.cc "$folder/reference.cc" "$folder/$(basename "$folder")_test.cc")
done
pids=()
for source in "${sources[@]}"; do
  compile "$source" &
  pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid"; done
g++ -o "$out/kernels_cuda_test" "$out"/*.o "${flags[@]}" -fopenmp -lgtest -lgtest_main -L"$cuda/lib64" -lcudart_static -ldl -lrt -lpthread
CUDA_LAUNCH_BLOCKING=1 ${CHECK:-} "$out/kernels_cuda_test" "$@"
