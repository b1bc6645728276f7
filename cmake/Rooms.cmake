# SPDX-FileCopyrightText: The sandbox-workers authors
# SPDX-License-Identifier: Apache-2.0
# A room is one folder under src/ and one static library; its tests are one executable.
#
#   sw_room(wasi SOURCES a.cc b.cc TESTS a_test.cc b_test.cc LINKS sw_wasm TEST_LINKS …)

# What a sanitizer needs to know when tests run (docs/adr/0005).
set(SW_TEST_ENVIRONMENT "")
if(SW_SANITIZE MATCHES thread)
  set(SW_TEST_ENVIRONMENT "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tools/tsan.supp report_signal_unsafe=0")
elseif(SW_SANITIZE)
  set(SW_TEST_ENVIRONMENT "UBSAN_OPTIONS=print_stacktrace=1")
endif()

function(sw_room name)
  cmake_parse_arguments(ARG "" "" "SOURCES;TESTS;LINKS;PRIVATE_LINKS;TEST_LINKS" ${ARGN})
  add_library(sw_${name} STATIC ${ARG_SOURCES})
  target_include_directories(sw_${name} PUBLIC "${PROJECT_SOURCE_DIR}/include")
  target_link_libraries(sw_${name} PUBLIC ${ARG_LINKS} PRIVATE sw_flags ${ARG_PRIVATE_LINKS})
  set_property(GLOBAL APPEND PROPERTY SW_ROOMS sw_${name})
  if(SW_TESTS AND ARG_TESTS)
    add_executable(sw_${name}_test ${ARG_TESTS})
    target_link_libraries(sw_${name}_test PRIVATE sw_${name} sw_flags ${ARG_TEST_LINKS} GTest::gmock GTest::gtest_main)
    gtest_discover_tests(sw_${name}_test
      TEST_PREFIX "${name}."
      DISCOVERY_MODE PRE_TEST
      PROPERTIES TIMEOUT 900 ENVIRONMENT "${SW_TEST_ENVIRONMENT}")
  endif()
endfunction()
