# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
# Build options and the flags every target of ours gets.

option(SW_TESTS "Build the tests" ON)
option(SW_BENCH "Build the benchmarks" OFF)
set(SW_SANITIZE "" CACHE STRING "Comma-separated -fsanitize= list (address,undefined or thread)")

add_library(sw_warnings INTERFACE)
target_compile_options(sw_warnings INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Werror
  # Which mutex guards what (base/thread_safety.h): only clang can tell.
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)
# What may see the private headers, too.
add_library(sw_flags INTERFACE)
target_link_libraries(sw_flags INTERFACE sw_warnings)
target_include_directories(sw_flags INTERFACE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")

if(SW_SANITIZE)
  # Undefined behaviour ends the test; by default it is only printed.
  add_compile_options(-fsanitize=${SW_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${SW_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ 12 reports false positives in its own headers once sanitizers change its inlining.
    add_compile_options(-Wno-maybe-uninitialized -Wno-stringop-overflow)
  endif()
endif()

# Paths in objects are relative to the repository, so that a clone in another folder hits the same ccache entries
# and no path of the build machine ends up in the program.
add_compile_options("-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.")
find_program(SW_CCACHE ccache)
find_program(SW_ENV env)
if(SW_CCACHE AND SW_ENV)
  set(SW_CCACHE_LAUNCHER "${SW_ENV}" "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1)
  if(NOT DEFINED ENV{CCACHE_DIR})
    list(APPEND SW_CCACHE_LAUNCHER "CCACHE_DIR=${SW_CACHE_DIR}/ccache")
  endif()
  list(APPEND SW_CCACHE_LAUNCHER "${SW_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER "${SW_CCACHE_LAUNCHER}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${SW_CCACHE_LAUNCHER}")
endif()
