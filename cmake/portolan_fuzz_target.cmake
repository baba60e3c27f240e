# portolan_fuzz_target(NAME <name> [DEPS ...] [SEEDS <glob> ...])
#
# Declares the libFuzzer binary fuzz_<name> from fuzz_<name>.cc of this folder. DEPS are Portolan libraries. SEEDS are
# globs below the source folder whose files are the seed corpus; .ci/run copies them when it starts the target. The
# target fuzz_targets builds all of them.
add_custom_target(fuzz_targets)
function(portolan_fuzz_target)
  cmake_parse_arguments(ARG "" "NAME" "DEPS;SEEDS" ${ARGN})
  add_executable(fuzz_${ARG_NAME} fuzz_${ARG_NAME}.cc)
  foreach(dep IN LISTS ARG_DEPS)
    target_link_libraries(fuzz_${ARG_NAME} PRIVATE portolan_${dep})
  endforeach()
  target_link_options(fuzz_${ARG_NAME} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzz_targets fuzz_${ARG_NAME})
  set_target_properties(fuzz_${ARG_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
  list(JOIN ARG_SEEDS "\n" seeds)
  file(WRITE ${PROJECT_BINARY_DIR}/fuzz/fuzz_${ARG_NAME}.seeds "${seeds}\n")
endfunction()
