# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
# Build options and the flags every target of ours gets.

option(SW_TESTS "Build the tests" ON)
option(SW_BENCH "Build the benchmarks" OFF)
set(SW_SANITIZE "" CACHE STRING "Comma-separated -fsanitize= list (address,undefined or thread)")

add_library(sw_flags INTERFACE)
target_compile_options(sw_flags INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Werror)
target_include_directories(sw_flags INTERFACE "${PROJECT_SOURCE_DIR}/src")

if(SW_SANITIZE)
  add_compile_options(-fsanitize=${SW_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${SW_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ 12 reports false positives in its own headers once sanitizers change its inlining.
    add_compile_options(-Wno-maybe-uninitialized -Wno-stringop-overflow)
  endif()
endif()

find_program(SW_CCACHE ccache)
if(SW_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER "${SW_CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${SW_CCACHE}")
endif()
