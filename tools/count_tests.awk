# Counts test cases: awk -v results=FOLDER -f count_tests.awk FOLDER/ctest.junit
#
# ctest.junit has a <testcase name="base" status="run|fail|..."> for each ctest test. When the test is a GoogleTest
# binary, FOLDER/portolan_<name>_test.xml lists its cases. Prints a line for each skipped or failed case, then
# "counts PASSED FAILED SKIPPED".

function attribute(line, name,   value) {
  if (!match(line, "(^| )" name "=\"[^\"]*\"")) return ""
  value = substr(line, RSTART, RLENGTH)
  sub(/^[^"]*"/, "", value)
  sub(/"$/, "", value)
  gsub(/&#x0A;|&#10;/, " ", value)
  gsub(/&quot;/, "\"", value)
  gsub(/&apos;|&#39;/, "'", value)
  gsub(/&lt;/, "<", value)
  gsub(/&gt;/, ">", value)
  gsub(/&amp;/, "\\&", value)
  return value
}

function count_case() {
  if (id == "") return
  if (case_failed) {
    failed++
    print "failed: " id
  } else if (case_skipped) {
    skipped++
    print "skipped: " id ": " reason
  } else {
    passed++
  }
  id = ""
}

# Adds the cases of one GoogleTest result file; returns how many failed, or -1 when there is no such file.
function count_cases(file,   line, found, failed_before) {
  failed_before = failed
  found = 0
  while ((getline line < file) > 0) {
    found = 1
    if (line ~ /<testcase /) {
      count_case()
      if (attribute(line, "status") != "run") continue
      id = attribute(line, "classname") "." attribute(line, "name")
      case_failed = 0
      case_skipped = 0
      reason = "no reason given"
    } else if (line ~ /<failure /) {
      case_failed = 1
    } else if (line ~ /<skipped /) {
      case_skipped = 1
      reason = attribute(line, "message")
      sub(/^[^ ]*:[0-9]+ +/, "", reason)
    }
  }
  count_case()
  close(file)
  return found ? failed - failed_before : -1
}

function finish_ctest_test(   failures) {
  if (test == "") return
  failures = count_cases(results "/portolan_" test "_test.xml")
  if (failures > 0) {
    # Its failed cases are counted.
  } else if (status == "fail" || (failures < 0 && status == "notrun" && !ctest_skipped)) {
    failed++
    print "failed: " test " (ctest)"
  } else if (failures < 0 && ctest_skipped) {
    skipped++
    print "skipped: " test ": " ctest_reason
  } else if (failures < 0) {
    passed++
  }
  test = ""
}

/<testcase / {
  finish_ctest_test()
  test = attribute($0, "name")
  status = attribute($0, "status")
  ctest_skipped = 0
}
/<skipped / {
  ctest_skipped = 1
  ctest_reason = attribute($0, "message")
}
END {
  finish_ctest_test()
  printf "counts %d %d %d\n", passed, failed, skipped
}
