// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "object/worker_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/post.hpp>
#include <exception>
#include <fstream>

namespace sw::object {
namespace {

TEST(WorkerPoolTest, JoinWaitsForWhatWasPosted) {
  std::atomic<int> done = 0;
  WorkerPool pool(3);
  for (int i = 0; i < 100; ++i) boost::asio::post(pool.executor(), [&] { ++done; });
  pool.join();
  EXPECT_EQ(done, 100);
}

/// Bytes of address space that this process takes.
rlim_t address_space() {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
}

/// Ends the process, with status 0 if that was an error.
[[noreturn]] void make_more_threads_than_fit() {
  constexpr rlim_t kStacks = rlim_t{64} << 20;
  const rlimit limit{address_space() + kStacks, RLIM_INFINITY};
  ::alarm(60);
  if (::setrlimit(RLIMIT_AS, &limit) != 0) ::_exit(2);
  try {
    const WorkerPool pool(1000);
  } catch (const std::exception&) {
    ::_exit(0);
  }
  ::_exit(1);
}

TEST(WorkerPoolTest, AThreadThatCannotBeStartedIsAnErrorAndNoEndlessWait) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer needs the address space";
#endif
  EXPECT_EXIT(make_more_threads_than_fit(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace sw::object
