# portolan_gpu_kernels(OP...)
#
# Builds the gpu bodies of the ops (gpu*.cc of each folder, see docs/kernels.md) for every backend that can be built here:
#   emu32, emu64   libraries portolan_kernels_emu<w>, and the tests of the ops against them
#   gfx942, gfx950 with clang++-22, without ROCm: code objects under kernels/ of the build folder, whose resources the
#                  test kernel_budgets holds against <op>/budget.txt
#   cuda (sm_90)   with nvcc and PORTOLAN_CUDA=ON: objects and, with PORTOLAN_CUDA_TESTS, the tests against them
# What cannot be built is said in one line. Other compilers are called by custom commands: CMake's languages belong to
# whole directories.

set(PORTOLAN_GFX_TARGETS gfx942 gfx950)
set(PORTOLAN_CUDA_ARCHITECTURE sm_90 CACHE STRING "What nvcc compiles the kernels for")
option(PORTOLAN_CUDA "Compile the kernels with nvcc where it is found (the embedding takes minutes)" OFF)
option(PORTOLAN_CUDA_TESTS "Build the tests of the kernels for CUDA; they need a GPU" OFF)

function(portolan_gpu_kernels)
  set(sources "")
  set(tests "")
  foreach(op IN LISTS ARGN)
    file(GLOB op_sources CONFIGURE_DEPENDS ${op}/gpu*.cc)
    if(NOT op_sources)
      message(FATAL_ERROR "portolan_gpu_kernels: '${op}' has no gpu.cc")
    endif()
    list(APPEND sources ${op_sources})
    list(APPEND tests ${op}/${op}_test.cc)
  endforeach()
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/device/*.h ${PROJECT_SOURCE_DIR}/src/kernels/*.h)

  foreach(lanes 32 64)
    portolan_emulated_kernels(${lanes} "${sources}" "${tests}")
  endforeach()
  portolan_gfx_kernels("${sources}" "${headers}")
  portolan_cuda_kernels("${sources}" "${tests}" "${headers}")
endfunction()

function(portolan_emulated_kernels lanes sources tests)
  set(library portolan_kernels_emu${lanes})
  add_library(${library} STATIC ${sources})
  target_compile_definitions(${library} PUBLIC PORTOLAN_EMU_WAVE=${lanes})
  target_link_libraries(${library} PUBLIC portolan_kernels)
  if(PORTOLAN_BUILD_TESTS)
    add_executable(${library}_test ${tests})
    target_compile_definitions(${library}_test PRIVATE PORTOLAN_TEST_BACKEND=emu${lanes} PORTOLAN_BACKEND=emu${lanes})
    target_link_libraries(${library}_test PRIVATE ${library} GTest::gtest GTest::gtest_main)
    add_test(NAME kernels_emu${lanes} COMMAND ${library}_test WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  endif()
endfunction()

function(portolan_gfx_kernels sources headers)
  find_program(PORTOLAN_CLANG_GFX clang++-22)
  find_program(PORTOLAN_LLVM_READELF llvm-readelf-22)
  if(NOT PORTOLAN_CLANG_GFX OR NOT PORTOLAN_LLVM_READELF)
    message(STATUS "No clang++-22 with llvm-22: the kernels are not compiled for ${PORTOLAN_GFX_TARGETS}")
    return()
  endif()
  set(objects "")
  foreach(source IN LISTS sources)
    file(RELATIVE_PATH name ${CMAKE_CURRENT_SOURCE_DIR} ${source})
    string(REGEX REPLACE "[/.]" "_" name ${name})
    foreach(target IN LISTS PORTOLAN_GFX_TARGETS)
      set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.${target}.co)
      # The remarks say what the compiler allotted; a host-only warning about unused names is not one about the kernel.
      add_custom_command(OUTPUT ${object} DEPENDS ${source} ${headers}
        COMMAND sh -c "\"$@\" 2>${object}.remarks || { cat ${object}.remarks; exit 1; }" compile
          ${PORTOLAN_CLANG_GFX} -x hip --offload-arch=${target} --cuda-device-only --no-gpu-bundle-output -nogpuinc
          -nogpulib -std=c++20 -O3 -munsafe-fp-atomics -Wall -Wextra -Werror -Wno-unused-const-variable
          -Rpass-analysis=kernel-resource-usage -I${PROJECT_SOURCE_DIR}/src -c ${source} -o ${object}
        COMMENT "Compiling ${name} for ${target}" VERBATIM)
      list(APPEND objects ${object})
    endforeach()
  endforeach()
  add_custom_target(portolan_kernels_gfx ALL DEPENDS ${objects})
  if(PORTOLAN_BUILD_TESTS)
    add_test(NAME kernel_budgets COMMAND ${PROJECT_SOURCE_DIR}/tools/kernel_budgets ${CMAKE_CURRENT_BINARY_DIR}
             WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  endif()
endfunction()

function(portolan_cuda_kernels sources tests headers)
  find_program(PORTOLAN_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
  if(NOT PORTOLAN_NVCC)
    message(STATUS "No nvcc: the kernels are not compiled for CUDA")
    return()
  endif()
  if(NOT PORTOLAN_CUDA)
    message(STATUS "nvcc is here, but the kernels are not compiled for CUDA: -DPORTOLAN_CUDA=ON does")
    return()
  endif()
  set(objects "")
  foreach(source IN LISTS sources)
    file(RELATIVE_PATH name ${CMAKE_CURRENT_SOURCE_DIR} ${source})
    string(REGEX REPLACE "[/.]" "_" name ${name})
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.cuda.o)
    add_custom_command(OUTPUT ${object} DEPENDS ${source} ${headers}
      COMMAND ${PORTOLAN_NVCC} -x cu -std=c++20 -O3 -arch=${PORTOLAN_CUDA_ARCHITECTURE} -Xcompiler=-Wall
        -I${PROJECT_SOURCE_DIR}/src -c ${source} -o ${object}
      COMMENT "Compiling ${name} for CUDA" VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  add_custom_target(portolan_kernels_cuda ALL DEPENDS ${objects})
  if(PORTOLAN_BUILD_TESTS AND PORTOLAN_CUDA_TESTS)
    # As few shared libraries as can be, so that it runs on a GPU machine that has none of them.
    get_filename_component(toolkit ${PORTOLAN_NVCC} DIRECTORY)
    set(toolkit ${toolkit}/..)
    add_executable(portolan_kernels_cuda_test ${tests} ${PROJECT_SOURCE_DIR}/tests/device/managed_memory.cc ${objects})
    target_compile_definitions(portolan_kernels_cuda_test PRIVATE PORTOLAN_TEST_BACKEND=cuda PORTOLAN_BACKEND=cuda)
    target_include_directories(portolan_kernels_cuda_test SYSTEM PRIVATE ${toolkit}/include)
    target_link_libraries(portolan_kernels_cuda_test PRIVATE -Wl,--as-needed -static-libstdc++ -static-libgcc
      portolan_kernels GTest::gtest GTest::gtest_main ${toolkit}/lib64/libcudart_static.a rt dl pthread)
    add_test(NAME kernels_cuda COMMAND ${CMAKE_COMMAND} -E env CUDA_LAUNCH_BLOCKING=1
             $<TARGET_FILE:portolan_kernels_cuda_test> WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  endif()
endfunction()
