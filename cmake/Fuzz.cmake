# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
# sw_fuzz(NAME LINKS TARGET… SOURCES FILE…): fuzz/NAME_fuzz.cc, which defines the target SW_FUZZ(NAME), and what else it
# needs.
#
# With the preset `fuzz` it becomes the program fuzz_NAME, which looks for new inputs. With the others it becomes a test
# of sw_fuzz_test, which runs the inputs of fuzz/corpus/NAME. All of them are one program, because linking Wasmtime
# takes seconds.

option(SW_FUZZ "Build the fuzzers instead of the tests" OFF)

if(SW_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "libFuzzer comes with clang")
  endif()
  # clang 14 cannot compile coroutines with it ("Cannot represent a difference across sections").
  add_compile_options(-fno-sanitize=function)
  set(SW_TESTS OFF)
  add_custom_target(sw_fuzzers)
endif()

function(sw_fuzz name)
  cmake_parse_arguments(ARG "" "" "LINKS;SOURCES" ${ARGN})
  set(source "${CMAKE_CURRENT_SOURCE_DIR}/${name}_fuzz.cc")
  if(SW_FUZZ)
    add_executable(fuzz_${name} "${source}" ${ARG_SOURCES})
    target_include_directories(fuzz_${name} PRIVATE "${PROJECT_SOURCE_DIR}")
    target_compile_definitions(fuzz_${name} PRIVATE SW_LIBFUZZER)
    target_link_libraries(fuzz_${name} PRIVATE sw_flags ${ARG_LINKS})
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(sw_fuzzers fuzz_${name})
  else()
    target_sources(sw_fuzz_test PRIVATE "${source}" ${ARG_SOURCES})
    target_link_libraries(sw_fuzz_test PRIVATE ${ARG_LINKS})
  endif()
endfunction()
