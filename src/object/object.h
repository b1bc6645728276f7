// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A durable object: state in memory that one message at a time works on, and a storage that
// outlives it. The host makes it when a message comes for it, and may drop it whenever it is idle;
// the next message makes it again from its storage. So all that matters is in the storage, and
// memory is a copy.

#include <cstdint>
#include <functional>

#include <boost/asio/awaitable.hpp>

#include "sandbox_workers/base/result.h"
#include "storage/storage.h"

namespace sw::object {

using storage::Time;

/// A coroutine of an object. It takes parameters by value: its caller's may be gone when it goes
/// on. Exceptions end it as an Error of kind kInternal.
template <class T>
using Task = boost::asio::awaitable<T>;

using ReadBody = std::function<Result<void>(storage::Reader&)>;
using TransactionBody = std::function<Result<void>(storage::Transaction&)>;
using StorageWork = std::function<Result<void>(storage::ObjectStorage&)>;

/// What an object has of the world. It belongs to the object, and is used on the object's strand
/// only; the bodies given to it run on another thread, while the object waits or, with `commit`,
/// goes on.
class ObjectContext {
 public:
  virtual ~ObjectContext() = default;

  virtual const storage::ObjectName& name() const = 0;
  /// Lets third parties refuse a former owner of the object.
  virtual std::uint64_t generation() const = 0;
  virtual Time now() = 0;

  /// Reads, writes and deletions happen in the order of these calls.
  virtual Task<Result<void>> read(ReadBody body) = 0;
  virtual Task<Result<void>> transact(TransactionBody body) = 0;
  /// Like `transact`, without waiting: the reply waits. If it fails, the replies from here on
  /// become that error, and the object is dropped and made again from what is stored. `body` must
  /// own what it uses.
  virtual void commit(TransactionBody body) = 0;
  /// Deletes all the object's state. It is made anew for the next message.
  virtual Task<Result<void>> destroy() = 0;

  /// Runs something that blocks on a thread of its own, so that other objects are not held up. If
  /// the message is cancelled meanwhile, `on_cancel` is called, on the object's strand, to make the
  /// work end early; if it was cancelled before, the work is not begun, and kUnavailable is
  /// returned.
  virtual Task<Result<void>> run_blocking(std::function<Result<void>()> work,
                                          std::function<void()> on_cancel = {}) = 0;

  /// Runs something that blocks and uses the storage itself, for as long as it likes: on a thread
  /// of its own, once the jobs asked for before have ended. Until it is over nothing else may be
  /// asked of the storage. It gets the same ObjectStorage each time, which lives as long as this
  /// context, and may be used in such work only. A commit that fails there ends this life of the
  /// object as one by `commit` would, and so does its `destroy`.
  /// Cancelling: as with `run_blocking`.
  virtual Task<Result<void>> run_with_storage(StorageWork work,
                                              std::function<void()> on_cancel = {}) = 0;

  /// Whether the message under way has been cancelled. It is never torn out of a wait: it ends as
  /// it sees fit, so that memory and storage stay in step.
  virtual bool cancelled() const = 0;
};

class Object {
 public:
  virtual ~Object() = default;

  /// Called before the first message: to read the state. An error is the answer to that message,
  /// and the object is made again for the next one.
  virtual Task<Result<void>> start();

  /// The alarm has gone off; it comes as a message among others. If this succeeds and sets no other
  /// alarm, the alarm is removed; if it fails, it is called again later. A crash in between may
  /// call it twice.
  virtual Task<Result<void>> on_alarm(Time scheduled);
};

}  // namespace sw::object
