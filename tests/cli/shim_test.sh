#!/usr/bin/env bash
# shim_test.sh BINARY SOURCE_DIR: `port --shim-only` as a build and a CI job use it. Where a clang with the back end for AMD
# and the headers of HIP (ROCM_PATH) are there, the sources are also compiled through the shim; otherwise that is skipped.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/cases.sh"

binary=$(readlink -f "$1") source_dir=$(readlink -f "$2")
[[ -x $binary ]] || { echo "no such binary: $1" >&2; exit 3; }
suite=Shim
export LC_ALL=C PORTOLAN_DATA="$source_dir/data"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

run() {
  timeout 60 "$binary" "$@" >"$work/log" 2>"$work/err" </dev/null
  rc=$?
}
gives() { [[ $rc == "$1" ]] || fail "exit code $rc instead of $1: $(cat "$work/log" "$work/err")"; }
prints() { grep -qF -- "$1" "$work/log" || fail "does not print '$1': $(cat "$work/log" "$work/err")"; }

mkdir -p app
printf '%s\n' '#include <cuda_runtime.h>' '#include <cstdio>' \
  '__global__ void __launch_bounds__(256, 4) k(float *p) {' '  float v = p[threadIdx.x];' \
  '  for (int d = warpSize / 2; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);' \
  '  asm volatile("" ::: "memory");' '  p[threadIdx.x] = v;' '}' \
  'int main() {' '  float *p;' '  if (cudaMalloc(&p, 1024) != cudaSuccess) return 1;' '  k<<<1, 256>>>(p);' \
  '  return cudaFree(p) != cudaSuccess;' '}' >app/main.cu

begin writes_a_shim_and_leaves_the_sources
cp -r app before
run port app -o out --to gfx950 --shim-only
gives 0
prints "-x hip --offload-arch=gfx950 -I out/portolan_shim -include portolan_shim.h"
diff -r app before || fail "the sources changed"
[[ -f out/portolan_shim/cuda_runtime.h && ! -e out/main.cu ]] || fail "$(find out)"
end

begin second_run_changes_nothing
cp -rp out again
run port app -o out --to gfx950 --shim-only
gives 0
prints "(0 changed)"
diff -r out again || fail "the shim changed"
end

begin check_passes
run port app -o out --to gfx950 --shim-only --check
gives 0
end

begin check_fails_with_file_and_line
printf 'void f() {\n  cudaDeviceReset();\n}\n' >app/more.cu
run port app -o out --to gfx950 --shim-only --check
gives 1
prints "more.cu:2:3: the shim has no 'cudaDeviceReset'"
end

begin check_of_the_current_folder
cd app || exit 1
run port . --in-place --to gfx950 --shim-only
gives 0
run port --to gfx950 --shim-only --check
gives 0
cd ..
[[ -f app/portolan_shim/portolan_shim.h ]] || fail "no shim in place"
end

begin check_without_a_shim_is_wrong_input
run port app -o nowhere --to gfx950 --shim-only --check
gives 2
end

begin check_needs_shim_only
run port app -o out --to gfx950 --check
gives 2
end

begin compiles_unchanged
clang=$(command -v amdclang++ clang++-22 | head -n 1)
if [[ -n $clang && -f ${ROCM_PATH:-/opt/rocm}/include/hip/hip_runtime.h ]]; then
  timeout 300 "$clang" -x hip --offload-arch=gfx950 --rocm-path="${ROCM_PATH:-/opt/rocm}" -D__AMDGCN_WAVEFRONT_SIZE=64 -w \
    -isystem "${ROCM_PATH:-/opt/rocm}/include" -nogpulib -I out/portolan_shim -include portolan_shim.h -fsyntax-only \
    app/main.cu 2>"$work/err" || fail "$(grep error "$work/err" | head -n 3)"
else
  skip "no clang++ for AMD, or no HIP headers"
fi
end

finish shim
