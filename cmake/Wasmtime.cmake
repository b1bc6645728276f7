# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
# Builds third_party/wasmtime (a static library made by cargo from crates.io, versions locked) and
# offers it as the target `wasmtime`. Its C headers are those of the crate, installed by the crate's
# own build script; only src/wasm may link this target.
#
# cargo's target folder is slow to fill and safe to keep, so it lives in the user's cache folder and
# is shared by all presets: the library is always a release build.

find_program(SW_CARGO cargo REQUIRED)

set(SW_CARGO_TARGET_DIR "${SW_CACHE_DIR}/cargo-target" CACHE PATH "cargo's target folder for third_party/wasmtime")
set(SW_WASMTIME_DIR "${PROJECT_SOURCE_DIR}/third_party/wasmtime")
set(SW_WASMTIME_OUT "${CMAKE_BINARY_DIR}/wasmtime")

add_custom_command(
  OUTPUT "${SW_WASMTIME_OUT}/libsw_wasmtime.a" "${SW_WASMTIME_OUT}/include/wasmtime.h"
  COMMAND "${SW_WASMTIME_DIR}/build.sh" "${SW_CARGO}" "${SW_CARGO_TARGET_DIR}" "${SW_WASMTIME_OUT}"
  DEPENDS
    "${SW_WASMTIME_DIR}/build.sh"
    "${SW_WASMTIME_DIR}/Cargo.toml"
    "${SW_WASMTIME_DIR}/Cargo.lock"
    "${SW_WASMTIME_DIR}/src/lib.rs"
    "${SW_WASMTIME_DIR}/src/prepare.rs"
    "${SW_WASMTIME_DIR}/include/sw_prepare.h"
  COMMENT "Building Wasmtime (about four minutes the first time on two cores)"
  USES_TERMINAL VERBATIM)
add_custom_target(wasmtime_build DEPENDS "${SW_WASMTIME_OUT}/libsw_wasmtime.a")

file(MAKE_DIRECTORY "${SW_WASMTIME_OUT}/include")
add_library(wasmtime STATIC IMPORTED GLOBAL)
set_target_properties(wasmtime PROPERTIES
  IMPORTED_LOCATION "${SW_WASMTIME_OUT}/libsw_wasmtime.a"
  INTERFACE_INCLUDE_DIRECTORIES "${SW_WASMTIME_OUT}/include"
  INTERFACE_LINK_LIBRARIES "pthread;dl;m")
add_dependencies(wasmtime wasmtime_build)
