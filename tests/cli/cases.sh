# Shell functions of the tests in this folder; sourced, never run. A case is
#
#   begin NAME; …checks…; end
#
# Each failed check prints why. finish NAME sets the exit code and, when GTEST_OUTPUT=xml:FOLDER/ is set, writes
# FOLDER/portolan_NAME_test.xml in GoogleTest's form, so that ./test counts every case.

# No test reads the user's own calibration.
export XDG_CONFIG_HOME=/nonexistent

# small_model PRECISION: a training job's model of two tables, and a recipe of batches of 64 in that precision.
small_model() {
  cat <<EOF
model:
  model: small
  dense_features: 4
  tables: [{name: a, rows: 5000, dim: 16, lookups: 3, zipf_exponent: 1.1}, {name: b, rows: 100, dim: 16, lookups: 1}]
  blocks:
    - {name: bottom, type: mlp, input: dense, widths: [16]}
    - {name: dot, type: dot_interaction, inputs: [bottom, embeddings]}
    - {name: top, type: mlp, input: dot, widths: [16, 1], last_activation: none}
recipe: {recipe: r, local_batch: 64, precision: {$1}}
EOF
}

case_name="" case_failed=0 case_skipped="" failures=0 cases=0 xml=""

begin() { case_name=$1 case_failed=0 case_skipped=""; }
fail() {
  case_failed=1
  printf 'FAILED %s: %s\n' "$case_name" "$*" | cut -c1-2000 >&2
}
skip() {
  case_skipped=$*
  printf 'skipped %s: %s\n' "$case_name" "$*" >&2
}
end() {
  local tag="" why=${case_skipped//&/&amp;}
  why=${why//\"/&quot;}
  cases=$((cases + 1))
  failures=$((failures + case_failed))
  if ((case_failed)); then tag='<failure message="see the log"/>'; fi
  if [[ -n $case_skipped ]]; then tag="<skipped message=\"$why\"/>"; fi
  # One tag a line: tools/count_tests.awk reads lines.
  xml+="<testcase name=\"$case_name\" status=\"run\" classname=\"$suite\">"$'\n'"$tag"$'\n</testcase>\n'
}
finish() {
  printf '%s: %d cases, %d failed\n' "$1" "$cases" "$failures"
  if [[ ${GTEST_OUTPUT:-} == xml:*/ ]]; then
    printf '<testsuites>\n%b</testsuites>\n' "$xml" >"${GTEST_OUTPUT#xml:}portolan_$1_test.xml"
  fi
  exit $((failures > 0))
}
