// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <thread>
#include <vector>

namespace sw::object {

/// Threads that run what is posted to the executor. If one of them cannot be started, those before
/// it end and the constructor throws. (asio::thread_pool waits for them without end.)
class WorkerPool {
 public:
  using Executor = boost::asio::io_context::executor_type;

  explicit WorkerPool(std::size_t threads);
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;
  ~WorkerPool();

  Executor executor() { return context_.get_executor(); }
  /// Returns when all that was posted is done.
  void join();

 private:
  /// Without what was not begun.
  void stop();

  boost::asio::io_context context_;
  boost::asio::executor_work_guard<Executor> keep_running_{context_.get_executor()};
  std::vector<std::thread> threads_;
};

}  // namespace sw::object
