// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where durable objects keep their state. An object has a class and an id, ordered tables of bytes,
// a schema version and at most one alarm; all of it changes together, in transactions, and several
// objects can change in one. Whoever opens an object owns it: a later `open` gets a higher
// generation, and from then on the earlier owner can change nothing. An object can be copied as a
// whole in a time that does not depend on its size: the copies share what was there.
//
// Everything blocks (disk, network) and is called from threads that may wait. Threads: any. Handles
// to objects may live on while their Storage still exists. After kConflict the caller no longer owns
// the object, and what it remembers of it may be out of date.

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox_workers/base/durability.h"
#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"

namespace sw::storage {

using Time = std::chrono::sys_time<std::chrono::milliseconds>;

inline constexpr std::size_t kClassBytesMax = 64;
inline constexpr std::size_t kIdBytesMax = 256;
// paths of files are keys, and have up to 4096 bytes
inline constexpr std::size_t kKeyBytesMax = 8192;
inline constexpr std::size_t kValueBytesMax = 256U << 20U;

/// class_name: lower-case letters, digits and `_`, beginning with a letter. id: any bytes but none
/// that are 0.
struct ObjectName {
  std::string class_name;
  std::string id;

  auto operator<=>(const ObjectName&) const = default;
  bool operator==(const ObjectName&) const = default;
};

/// kInvalidArgument, saying which rule a name breaks.
Result<void> check_name(const ObjectName& name);

/// "class/id", what is not printable escaped: for messages.
std::string to_string(const ObjectName& name);

/// A number chosen by the object's class. Small ones (below 128) take a byte less in each row.
using TableId = std::uint16_t;

/// The keys of a table from `from` on, and before `to` (empty: to the end). Keys are compared as
/// unsigned bytes.
struct Range {
  TableId table = 0;
  std::string from;
  std::string to;

  /// All keys that begin with `prefix`.
  static Range of_prefix(TableId table, std::string_view prefix);
};

/// A number as 8 bytes, so that keys compare as the numbers do.
std::string ordered_key(std::uint64_t number);
std::optional<std::uint64_t> number_of_key(std::string_view key);

enum class Order : std::uint8_t { kAscending, kDescending };
enum class Scan : std::uint8_t { kContinue, kStop };

/// Called for each row of a scan. Both views are valid until it returns; it must not change the
/// table.
using RowCallback = std::function<Result<Scan>(std::string_view key, BytesView value)>;
using KeyCallback = std::function<Result<Scan>(std::string_view key, std::size_t value_bytes)>;

/// What can be read within a transaction. It sees one state of the object, with the transaction's
/// own changes.
class Reader {
 public:
  virtual ~Reader() = default;

  virtual Result<std::optional<Bytes>> get(TableId table, std::string_view key) = 0;
  virtual Result<void> scan(const Range& range, Order order, const RowCallback& each) = 0;
  /// The same without reading the values.
  virtual Result<void> scan_keys(const Range& range, Order order, const KeyCallback& each) = 0;
  virtual Result<std::optional<Time>> alarm() = 0;
};

/// A transaction that also writes.
/// Errors: kLimitExceeded for a key or value too large, kUnavailable (disk full, …), kCorrupt.
/// After an error the transaction cannot commit, whatever the callback returns.
class Transaction : public Reader {
 public:
  virtual Result<void> put(TableId table, std::string_view key, BytesView value) = 0;
  /// Nothing happens if there is no such row.
  virtual Result<void> erase(TableId table, std::string_view key) = 0;
  virtual Result<void> erase_range(const Range& range) = 0;
  virtual Result<void> set_alarm(std::optional<Time> time) = 0;
};

/// A change that others see already, and that is on its way to the disk.
class PendingCommit {
 public:
  virtual ~PendingCommit() = default;
  /// Returns once it is done.
  /// Errors: kUnavailable: it was not committed, nor was what came after it.
  virtual Result<void> wait() = 0;
};

using ReadBody = std::function<Result<void>(Reader&)>;
using TransactionBody = std::function<Result<void>(Transaction&)>;

class ObjectStorage;

/// What a transaction does to another object.
struct Part {
  ObjectStorage& object;  ///< of the same Storage; each object once
  TransactionBody body;
};

struct CommitOptions {
  Durability durability = Durability::kCommit;
  /// Changes of other objects, committed with it. Their bodies run after the first, in this order.
  std::vector<Part> also = {};
  /// Where to put the rest of the waiting; null: `transact` waits itself.
  std::unique_ptr<PendingCommit>* pending = nullptr;
};

/// One open object. The first write brings it into being: opening alone leaves no trace.
class ObjectStorage {
 public:
  virtual ~ObjectStorage() = default;

  virtual const ObjectName& name() const = 0;
  /// Higher with each open of this object by anyone; given along to third parties, it lets them
  /// refuse a former owner.
  virtual std::uint64_t generation() const = 0;
  /// Whether somebody else owns the object now, or a commit of it failed: then it has to be opened
  /// anew.
  virtual bool lost() const = 0;
  /// Whether relaxed changes may be missing, because the program ended without closing the storage.
  /// True until the next change.
  virtual bool may_miss_changes() const = 0;

  /// Whether both can change in one transaction: they are of the same Storage.
  virtual bool is_beside(const ObjectStorage& other) const = 0;

  /// Runs `body` over one consistent state. As in `transact`, it may be run again from the start.
  virtual Result<void> read(const ReadBody& body) = 0;

  /// Runs `body` and commits what it did; an error of `body` undoes it and is returned. `body` may be
  /// run again from the start (a database over a network resolves conflicts so), and should have no
  /// other effects. Changes of one object are committed in the order they were made: what follows a
  /// change that was lost is lost too.
  /// Errors: those of `body`; kConflict; kUnavailable and kCorrupt: nothing was committed as far as
  /// is known, and the caller has to read again what it relies on.
  virtual Result<void> transact(const TransactionBody& body, CommitOptions options) = 0;
  Result<void> transact(const TransactionBody& body) { return transact(body, {}); }

  /// Deletes everything, the alarm and the schema version too: as if the object had never been. The
  /// handle stays good for a new life.
  virtual Result<void> destroy() = 0;
};

/// How a class's objects came to look as they do: step n turns version n into version n + 1, and a
/// new object goes through all of them. Steps are never removed.
struct Schema {
  std::vector<std::function<Result<void>(Transaction&)>> steps;
};

struct ObjectInfo {
  ObjectName name;
  std::optional<Time> alarm;
};

struct DueAlarm {
  ObjectName name;
  Time time;
};

/// Changes of whole objects, in one commit and in this order.
struct Changes {
  struct Copy {
    ObjectName from;            ///< must exist; whoever owns it goes on
    ObjectName to;              ///< what was there is gone
    TransactionBody body = {};  ///< what is to be different in the copy, which has no alarm
  };
  std::vector<ObjectName> removed = {};  ///< nothing happens to those that do not exist
  std::vector<Copy> copies = {};
};

struct BackupReport {
  std::size_t objects = 0;                ///< copied
  std::vector<std::string> damaged = {};  ///< what could not be copied, and why; the rest was
};

class Storage {
 public:
  virtual ~Storage() = default;

  /// Takes the object over from whoever had it. Its schema is brought up to date at the first use,
  /// in one transaction.
  /// Errors: kInvalidArgument (name); kUnavailable (another node holds the object); from the first
  /// use: kInvalidArgument if a newer program wrote the object (it is left as it is), kCorrupt.
  virtual Result<std::unique_ptr<ObjectStorage>> open(const ObjectName& name,
                                                      const Schema& schema) = 0;

  /// Whether there is such an object, without taking it.
  virtual Result<std::optional<ObjectInfo>> find(const ObjectName& name) = 0;

  /// Up to `count_max` objects of a class with ids after `after_id`, by id.
  virtual Result<std::vector<ObjectInfo>> list(std::string_view class_name,
                                               std::string_view after_id,
                                               std::size_t count_max) = 0;

  /// Deletes the object, whoever has it open. kNotFound if there is none.
  virtual Result<void> remove(const ObjectName& name) = 0;

  /// Former owners of what is removed or copied to own it no more.
  /// Errors: kNotFound naming a `from` that does not exist; those of transactions. Then nothing has
  /// changed.
  virtual Result<void> change(const Changes& changes) = 0;

  /// Copies everything as it is at one moment, while it is in use, to a new folder that can be used in
  /// the place of the storage's. What was deleted is not copied.
  /// Errors: kInvalidArgument if `destination` exists; kNotSupported; kUnavailable.
  virtual Result<BackupReport> back_up(const std::filesystem::path& destination) = 0;

  /// Up to `count_max` alarms, earliest first, with times up to `until`. An alarm stays until its
  /// object's transaction moves or removes it.
  virtual Result<std::vector<DueAlarm>> alarms_until(Time until, std::size_t count_max) = 0;
  /// Who is told, after the commit, that an alarm was set. On the thread of the commit.
  virtual void on_alarm_set(std::function<void(Time)> listener) = 0;
};

}  // namespace sw::storage
