# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts in place: the program, one static library with all rooms but the command line, Wasmtime,
# the public headers, and what find_package(sandbox_workers) and pkg-config need. Nothing installed names the folder
# it was built in, so the tree can be moved.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

get_property(rooms GLOBAL PROPERTY SW_ROOMS)
list(REMOVE_ITEM rooms sw_cli)
list(TRANSFORM rooms REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
add_library(sandbox_workers STATIC ${objects})
set_target_properties(sandbox_workers PROPERTIES LINKER_LANGUAGE CXX)
target_compile_features(sandbox_workers INTERFACE cxx_std_20)
# cmake/sandbox_workers-config.cmake.in finds these. Within this build nobody links the library: it is for others.
foreach(needed IN ITEMS sandbox_workers::wasmtime fmt::fmt Boost::json OpenSSL::Crypto SQLite::SQLite3 Threads::Threads
    PkgConfig::LIBARCHIVE PkgConfig::LIBZIP PkgConfig::LIBXXHASH PkgConfig::LIBZSTD)
  target_link_libraries(sandbox_workers INTERFACE $<INSTALL_INTERFACE:${needed}>)
endforeach()
target_include_directories(sandbox_workers INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

set(config_folder "${CMAKE_INSTALL_LIBDIR}/cmake/sandbox_workers")
set(generated "${PROJECT_BINARY_DIR}/install")
configure_package_config_file(cmake/sandbox_workers-config.cmake.in "${generated}/sandbox_workers-config.cmake"
  INSTALL_DESTINATION "${config_folder}" PATH_VARS CMAKE_INSTALL_LIBDIR NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may change what the headers say.
write_basic_package_version_file("${generated}/sandbox_workers-config-version.cmake" COMPATIBILITY SameMinorVersion)
# From lib/pkgconfig to the prefix, whatever lib is called here.
cmake_path(SET pkgconfig_folder "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
file(RELATIVE_PATH SW_PREFIX_FROM_PKGCONFIG "/${pkgconfig_folder}" "/")
string(REGEX REPLACE "/$" "" SW_PREFIX_FROM_PKGCONFIG "${SW_PREFIX_FROM_PKGCONFIG}")
configure_file(cmake/sandbox_workers.pc.in "${generated}/sandbox_workers.pc" @ONLY)

install(TARGETS sandbox_workers EXPORT sandbox_workers ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(FILES "${SW_WASMTIME_OUT}/libsw_wasmtime.a" DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY include/sandbox_workers DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT sandbox_workers NAMESPACE sandbox_workers:: DESTINATION "${config_folder}"
  FILE sandbox_workers-targets.cmake)
install(FILES "${generated}/sandbox_workers-config.cmake" "${generated}/sandbox_workers-config-version.cmake"
  DESTINATION "${config_folder}")
install(FILES "${generated}/sandbox_workers.pc" DESTINATION "${pkgconfig_folder}")
install(FILES LICENSE NOTICE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
if(TARGET sandbox-workers)
  install(TARGETS sandbox-workers RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
