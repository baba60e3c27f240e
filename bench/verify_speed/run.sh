#!/usr/bin/env bash
# run.sh BUILD: the rates of verify's runtime at 32 and 64 lanes beside the emulator's, in processor time, in one run.
set -euo pipefail
build=${1:-build}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/speed"
cp "$here/speed.cu" "$work/speed/"
"$build/portolan" verify "$work/speed" --to gfx950 --rename --keep "$work/kept" --run ./a.out > /dev/null
for round in 1 2 3; do
  for lanes in 32 64; do
    "$build/src/device/portolan_device_test" --gtest_filter="Emu${lanes}.TwentyMillionStepsASecond" |
      sed -n "s/.*work-items\/s/&/p" | sed "s/^/emulator, $lanes lanes: /"
  done
  echo -n "verify, 32 lanes: " && "$work/kept/original/tree/speed/a.out" print
  echo -n "verify, 64 lanes: " && "$work/kept/port/tree/speed/a.out" print
done
