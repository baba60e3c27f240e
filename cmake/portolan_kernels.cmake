# portolan_gpu_kernels(OP...)
#
# Builds the gpu bodies of the ops (gpu*.cc of each folder, see docs/kernels.md) for every backend that can be built here:
#   emu32, emu64   libraries portolan_kernels_emu<w>, and the tests of the ops against them
#   gfx942, gfx950 with clang++-22, without ROCm: code objects under kernels/ of the build folder, whose resources the
#                  test kernel_budgets holds against <op>/budget.txt
#   cuda (sm_90)   with nvcc and PORTOLAN_CUDA_TESTS=ON: the tests of the gpu bodies, which need a GPU
# and, with nvcc and a GPU or PORTOLAN_CUDA=ON, portolan_cuda: the kernels of the CUDA engine (cuda*.cc of each folder).
# What cannot be built is said in one line. Other compilers are called by custom commands: CMake's languages belong to
# whole directories.

set(PORTOLAN_GFX_TARGETS gfx942 gfx950)
set(PORTOLAN_CUDA_ARCHITECTURE sm_90 CACHE STRING "What nvcc compiles the kernels for")
# Built where it can run: nvcc takes about a minute of a core, which a machine without a GPU need not spend.
find_program(PORTOLAN_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
set(portolan_cuda_default OFF)
if(PORTOLAN_NVCC AND EXISTS /dev/nvidiactl AND NOT PORTOLAN_SANITIZE AND NOT PORTOLAN_FUZZ)
  set(portolan_cuda_default ON)
endif()
option(PORTOLAN_CUDA "Train on NVIDIA GPUs: build the CUDA engine with nvcc" ${portolan_cuda_default})
option(PORTOLAN_CUDA_TESTS "Build the tests of the gpu bodies for CUDA; they need a GPU, and take minutes" OFF)

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
  portolan_cuda_kernels("${sources}" "${tests}")
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

# portolan_nvcc_objects(OUT SOURCE...): OUT receives the objects that nvcc makes of the sources.
function(portolan_nvcc_objects out)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/device/*.h ${PROJECT_SOURCE_DIR}/src/kernels/*.h)
  set(objects "")
  foreach(source IN LISTS ARGN)
    file(RELATIVE_PATH name ${CMAKE_CURRENT_SOURCE_DIR} ${source})
    string(REGEX REPLACE "[/.]" "_" name ${name})
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.cuda.o)
    add_custom_command(OUTPUT ${object} DEPENDS ${source} ${headers}
      COMMAND ${PORTOLAN_NVCC} -x cu -std=c++20 -O3 -arch=${PORTOLAN_CUDA_ARCHITECTURE} ${PORTOLAN_NVCC_FLAGS}
        -Xcompiler=-Wall -I${PROJECT_SOURCE_DIR}/src -c ${source} -o ${object}
      COMMENT "Compiling ${name} for CUDA" VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  set(${out} ${objects} PARENT_SCOPE)
endfunction()

function(portolan_cuda_kernels sources tests)
  if(NOT PORTOLAN_CUDA AND NOT PORTOLAN_CUDA_TESTS)
    if(PORTOLAN_NVCC)
      message(STATUS "nvcc is here but no GPU: no CUDA engine; -DPORTOLAN_CUDA=ON builds it all the same")
    else()
      message(STATUS "No nvcc: no CUDA engine")
    endif()
    return()
  endif()
  if(NOT PORTOLAN_NVCC)
    message(FATAL_ERROR "PORTOLAN_CUDA needs nvcc of CUDA 13: on the PATH, under CUDA_HOME, or as -DPORTOLAN_NVCC=FILE")
  endif()
  get_filename_component(toolkit ${PORTOLAN_NVCC} DIRECTORY)
  set(toolkit ${toolkit}/..)
  if(PORTOLAN_CUDA)
    # The runtime is linked in and cuBLASLt looked for when the program runs, so that a driver is all it needs.
    file(GLOB device_sources CONFIGURE_DEPENDS */cuda*.cc)
    set(host_sources ${CMAKE_CURRENT_SOURCE_DIR}/gemm/cuda_cublaslt.cc ${CMAKE_CURRENT_SOURCE_DIR}/gemm/cuda_gemm.cc)
    list(REMOVE_ITEM device_sources ${host_sources})
    # Quotients and roots to 2 ulp: the optimizers of rows are half as long.
    set(PORTOLAN_NVCC_FLAGS -prec-div=false -prec-sqrt=false)
    portolan_nvcc_objects(objects ${device_sources})
    set(PORTOLAN_NVCC_FLAGS "")
    set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
    add_library(portolan_cuda STATIC ${host_sources} ${PROJECT_SOURCE_DIR}/src/device/cuda/cuda_device.cc ${objects})
    target_include_directories(portolan_cuda SYSTEM PUBLIC ${toolkit}/include)
    string(REGEX MATCH "[0-9]+" architecture ${PORTOLAN_CUDA_ARCHITECTURE})
    target_compile_definitions(portolan_cuda PRIVATE PORTOLAN_CUDA_CAPABILITY=${architecture})
    target_link_libraries(portolan_cuda PUBLIC portolan_kernels portolan_warnings ${toolkit}/lib64/libcudart_static.a rt
                                               dl pthread)
  endif()
  if(PORTOLAN_BUILD_TESTS AND PORTOLAN_CUDA_TESTS)
    portolan_nvcc_objects(gpu_objects ${sources})
    # As few shared libraries as can be, so that it runs on a GPU machine that has none of them.
    add_executable(portolan_kernels_cuda_test ${tests} ${PROJECT_SOURCE_DIR}/tests/device/managed_memory.cc ${gpu_objects})
    target_compile_definitions(portolan_kernels_cuda_test PRIVATE PORTOLAN_TEST_BACKEND=cuda PORTOLAN_BACKEND=cuda)
    target_include_directories(portolan_kernels_cuda_test SYSTEM PRIVATE ${toolkit}/include)
    target_link_libraries(portolan_kernels_cuda_test PRIVATE -Wl,--as-needed -static-libstdc++ -static-libgcc
      portolan_kernels GTest::gtest GTest::gtest_main ${toolkit}/lib64/libcudart_static.a rt dl pthread)
    add_test(NAME kernels_cuda COMMAND ${CMAKE_COMMAND} -E env CUDA_LAUNCH_BLOCKING=1
             $<TARGET_FILE:portolan_kernels_cuda_test> WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  endif()
endfunction()
