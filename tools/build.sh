# Shell functions of ./run, ./test and .ci/run; sourced, never run. The caller sets `root` to the source folder.

core_packages=(
  g++ cmake ninja-build libyaml-cpp-dev nlohmann-json3-dev libcli11-dev libfmt-dev libexpected-dev libgtest-dev
  libboost-context-dev libdnnl-dev
)

say() { printf 'portolan: %s\n' "$*" >&2; }
# Exit code 3 is the environment's, as in src/base/error.cc.
die() {
  say "$@"
  exit 3
}

# run_quietly LOG COMMAND...: output goes to LOG and is shown only when the command fails.
run_quietly() {
  local log=$1
  shift
  if ! "$@" >"$log" 2>&1; then
    cat "$log" >&2
    return 1
  fi
}

# install_packages BUILD_DIR PACKAGE...: installs the Debian packages that are missing. A stamp in BUILD_DIR keyed on
# the list lets later calls skip the check.
install_packages() {
  local build=$1
  shift
  mkdir -p "$build"
  local stamp="$build/.packages"
  if [[ -e $stamp && $(<"$stamp") == "$*" ]] && type -P cmake ninja g++ >/dev/null; then return; fi

  if ! type -P dpkg-query apt-get >/dev/null; then
    type -P cmake ninja g++ >/dev/null ||
      die "this is not Debian or Ubuntu; please install what these packages hold and call again: $*"
    return
  fi
  local missing=() package
  for package in "$@"; do
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
  done
  if ((${#missing[@]})); then
    local as_root=(env)
    if ((EUID != 0)); then
      if type -P sudo >/dev/null && { sudo -n true 2>/dev/null || { [[ -t 0 ]] && sudo -v; }; }; then
        as_root=(sudo env)
      else
        die "not root and no usable sudo; ask an administrator to run:" \
          "apt-get install -y --no-install-recommends ${missing[*]}"
      fi
    fi
    local apt=("${as_root[@]}" DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -qq -o DPkg::Lock::Timeout=300)
    say "installing ${missing[*]}"
    # A repository that cannot be reached may not be the one that is needed: the installation decides.
    run_quietly "$build/apt.log" "${apt[@]}" update || say "apt-get update failed; trying with the lists at hand"
    run_quietly "$build/apt.log" "${apt[@]}" install -y --no-install-recommends "${missing[@]}" ||
      die "apt-get could not install ${missing[*]} (its messages stand above)"
  fi
  printf '%s' "$*" >"$stamp"
}

# configure BUILD_DIR CMAKE_OPTION...: configures once; later changes to the CMake files are seen by ninja itself.
configure() {
  local build=$1
  shift
  local cache="$build/CMakeCache.txt"
  # A build folder that came with a copied or moved tree knows another source folder.
  if [[ -e $cache ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$cache"; then
    rm -rf "$cache" "$build/CMakeFiles"
  fi
  local key="$build/.configured"
  if [[ -e $build/build.ninja && -e $cache && -e $key && $(<"$key") == "$*" ]]; then return; fi
  mkdir -p "$build"
  rm -f "$key"
  run_quietly "$build/configure.log" cmake -S "$root" -B "$build" -G Ninja "$@" || die "cmake failed"
  printf '%s' "$*" >"$key"
}

# build BUILD_DIR NOTICE [TARGET...]: builds what changed. A NOTICE is said once, and only when there is work.
build() {
  local build=$1 notice=$2
  shift 2
  local log="$build/build.log"
  if ! env -u NINJA_STATUS ninja -C "$build" "$@" 2>&1 | tee "$log" | {
    grep -m1 -q '\] Building' && [[ -n $notice ]] && say "$notice"
    cat >/dev/null
  }; then
    grep -v '^\[[0-9]*/[0-9]*\] \(Building\|Linking\|Re-checking\)' "$log" >&2 || true
    die "the build failed"
  fi
}

# run_tests BUILD_DIR CTEST_OPTION...: runs all tests, names the skipped ones with their reasons and sets
# tests_passed, tests_failed and tests_skipped, counted over the single GoogleTest cases (a ctest test that is not
# GoogleTest, or that crashed or failed outside its cases, counts as one).
run_tests() {
  local build=$1
  shift
  local results="$build/test-results"
  rm -rf "$results"
  mkdir -p "$results"
  GTEST_OUTPUT="xml:$results/" GTEST_BRIEF=1 ctest --test-dir "$build" -j "$(nproc)" --output-on-failure --no-tests=error \
    --output-junit "$results/ctest.junit" "$@" || true
  local counts
  [[ -e $results/ctest.junit ]] || die "ctest left no result"
  counts=$(awk -f "$root/tools/count_tests.awk" -v results="$results" "$results/ctest.junit")
  grep -v '^counts ' <<<"$counts" || true
  read -r tests_passed tests_failed tests_skipped <<<"$(sed -n 's/^counts //p' <<<"$counts")"
}
