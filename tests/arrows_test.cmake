# portolan_library accepts the arrows of its table and refuses all others (each case configures a tiny project), and no
# source includes a header across an arrow that the table does not have.

cmake_minimum_required(VERSION 3.25)
include(${SOURCE_DIR}/cmake/portolan_library.cmake)

function(configure_project folder arrows exit_code output)
  file(REMOVE_RECURSE ${folder})
  file(WRITE ${folder}/empty.cc "")
  file(WRITE ${folder}/CMakeLists.txt "
cmake_minimum_required(VERSION 3.25)
project(arrows LANGUAGES CXX)
add_library(portolan_warnings INTERFACE)
include(${SOURCE_DIR}/cmake/portolan_library.cmake)
${arrows}
")
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${folder} -B ${folder}/build -G Ninja -D CMAKE_CXX_COMPILER=${CXX}
                          -D CMAKE_CXX_COMPILER_WORKS=1
                  RESULT_VARIABLE result OUTPUT_VARIABLE out ERROR_VARIABLE err)
  set(${exit_code} ${result} PARENT_SCOPE)
  string(REGEX REPLACE "[ \n]+" " " text "${out}${err}")
  set(${output} "${text}" PARENT_SCOPE)
endfunction()

function(expect_refused name arrows message)
  configure_project(${WORK_DIR}/${name} "${arrows}" exit_code output)
  if(exit_code EQUAL 0)
    message(SEND_ERROR "${name}: accepted, but must be refused")
  endif()
  string(FIND "${output}" "${message}" at)
  if(at EQUAL -1)
    message(SEND_ERROR "${name}: no '${message}' in: ${output}")
  endif()
endfunction()

configure_project(${WORK_DIR}/allowed
                  "portolan_library(NAME base)\nportolan_library(NAME units DEPS base)" exit_code output)
if(NOT exit_code EQUAL 0)
  message(SEND_ERROR "allowed: refused: ${output}")
endif()
expect_refused(upwards "portolan_library(NAME cost)\nportolan_library(NAME ops DEPS cost)"
               "'ops' may not depend on 'cost'; allowed: units;base")
expect_refused(sideways "portolan_library(NAME plan)\nportolan_library(NAME engine DEPS plan)"
               "'engine' may not depend on 'plan'")
expect_refused(unlisted "portolan_library(NAME utils)" "'utils' has no row in the arrow table")
expect_refused(as_target "portolan_library(NAME cost)\nportolan_library(NAME ops LIBS portolan_cost)"
               "'ops' names 'portolan_cost' under LIBS")

file(GLOB folders RELATIVE ${SOURCE_DIR}/src ${SOURCE_DIR}/src/*)
foreach(library IN LISTS folders)
  file(GLOB_RECURSE sources ${SOURCE_DIR}/src/${library}/*.cc ${SOURCE_DIR}/src/${library}/*.h)
  foreach(source IN LISTS sources)
    file(STRINGS ${source} includes REGEX "^#include \"[a-z_]+/")
    foreach(include IN LISTS includes)
      string(REGEX REPLACE "^#include \"([a-z_]+)/.*" "\\1" included "${include}")
      # Headers that a library serves to the programs of its users stand under include/ and may look like anyone's.
      if(NOT included STREQUAL library AND NOT EXISTS ${SOURCE_DIR}/src/${library}/include/${included} AND NOT included IN_LIST PORTOLAN_ARROWS_${library})
        message(SEND_ERROR "${source}: ${include}: '${library}' may not depend on '${included}'")
      endif()
    endforeach()
  endforeach()
endforeach()
