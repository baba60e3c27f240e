# portolan_library(NAME <name> [DEPS ...] [LIBS ...])
#
# Declares the static library portolan_<name> from the *.cc files of this folder and, when tests are built, one test
# binary portolan_<name>_test from its *_test.cc files (*_bench.cc stay out, and gpu*.cc and cuda*.cc, which
# portolan_kernels.cmake compiles for each backend). DEPS are other Portolan libraries: an
# arrow that is not in the table below (docs/ARCHITECTURE.md explains it) is refused at configure time. LIBS are
# third-party targets.

set(PORTOLAN_ARROWS_base "")
set(PORTOLAN_ARROWS_units base)
set(PORTOLAN_ARROWS_hw units base)
set(PORTOLAN_ARROWS_ops units base)
set(PORTOLAN_ARROWS_model ops units base)
set(PORTOLAN_ARROWS_cost hw ops units base)
set(PORTOLAN_ARROWS_select cost hw ops units base)
set(PORTOLAN_ARROWS_recipe model hw ops units base)
set(PORTOLAN_ARROWS_plan select cost recipe model hw ops units base)
set(PORTOLAN_ARROWS_device base)
set(PORTOLAN_ARROWS_host_gpu device base)
set(PORTOLAN_ARROWS_kernels device ops units base)
set(PORTOLAN_ARROWS_engine kernels device select recipe model cost ops hw units base)
set(PORTOLAN_ARROWS_porting cost hw units base device)
set(PORTOLAN_ARROWS_loop plan engine hw select cost recipe model ops kernels device units base)
set(PORTOLAN_ARROWS_cli loop plan engine porting select cost recipe model hw ops kernels device units base)

# Standard and third-party headers that most sources include. A source still includes what it uses.
set(PORTOLAN_COMMON_HEADERS
  <algorithm> <array> <cmath> <cstdint> <functional> <map> <memory> <optional> <string> <string_view> <utility> <vector>
  <tl/expected.hpp>)

# Precompiles PORTOLAN_COMMON_HEADERS and those in ARGN for `target`, once for all targets of that `kind`.
function(portolan_precompile target kind)
  get_property(first GLOBAL PROPERTY PORTOLAN_PRECOMPILED_${kind})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    target_precompile_headers(${target} PRIVATE ${PORTOLAN_COMMON_HEADERS} ${ARGN})
    set_property(GLOBAL PROPERTY PORTOLAN_PRECOMPILED_${kind} ${target})
  endif()
endfunction()

function(portolan_library)
  cmake_parse_arguments(ARG "" "NAME" "DEPS;LIBS" ${ARGN})
  if(NOT DEFINED PORTOLAN_ARROWS_${ARG_NAME})
    message(FATAL_ERROR "portolan_library: '${ARG_NAME}' has no row in the arrow table of cmake/portolan_library.cmake")
  endif()
  foreach(lib IN LISTS ARG_LIBS)
    if(lib MATCHES "^portolan_")
      message(FATAL_ERROR "portolan_library: '${ARG_NAME}' names '${lib}' under LIBS; Portolan libraries stand under DEPS")
    endif()
  endforeach()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "(_(test|bench)|/(gpu|cuda)[a-z0-9_]*)\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  add_library(portolan_${ARG_NAME} STATIC ${sources})
  target_include_directories(portolan_${ARG_NAME} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  foreach(dep IN LISTS ARG_DEPS)
    if(NOT dep IN_LIST PORTOLAN_ARROWS_${ARG_NAME})
      message(FATAL_ERROR
        "portolan_library: '${ARG_NAME}' may not depend on '${dep}'; allowed: ${PORTOLAN_ARROWS_${ARG_NAME}}")
    endif()
    target_link_libraries(portolan_${ARG_NAME} PUBLIC portolan_${dep})
  endforeach()
  target_link_libraries(portolan_${ARG_NAME} PUBLIC ${ARG_LIBS} portolan_warnings)
  portolan_precompile(portolan_${ARG_NAME} library <fmt/format.h>)
  if(PORTOLAN_BUILD_TESTS AND tests)
    add_executable(portolan_${ARG_NAME}_test ${tests})
    target_link_libraries(portolan_${ARG_NAME}_test PRIVATE portolan_${ARG_NAME} GTest::gtest GTest::gtest_main)
    portolan_precompile(portolan_${ARG_NAME}_test test <gtest/gtest.h>)
    add_test(NAME ${ARG_NAME} COMMAND portolan_${ARG_NAME}_test WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  endif()
endfunction()
