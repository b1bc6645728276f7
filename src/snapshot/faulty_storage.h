// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A storage that fails in all the ways its contract allows.

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "storage/storage.h"

namespace sw::snapshot {

enum class Fault : std::uint8_t {
  kNone,
  kBeforeCommit,   ///< the body ran, nothing is committed
  kWithinBody,     ///< one of the body's operations fails
  kAfterCommit,    ///< committed, and reported as failed: a connection that broke too early
  kBodyRunsTwice,  ///< a conflict that the storage resolved
};

/// Counts down to an operation of a transaction that fails.
class FailingTransaction final : public storage::Transaction {
 public:
  FailingTransaction(storage::Transaction& under, std::size_t operations)
      : under_(under), left_(operations) {}

  Result<std::optional<Bytes>> get(storage::TableId table, std::string_view key) override {
    return under_.get(table, key);
  }
  Result<void> scan(const storage::Range& range, storage::Order order,
                    const storage::RowCallback& each) override {
    return under_.scan(range, order, each);
  }
  Result<void> scan_keys(const storage::Range& range, storage::Order order,
                         const storage::KeyCallback& each) override {
    return under_.scan_keys(range, order, each);
  }
  Result<std::optional<storage::Time>> alarm() override { return under_.alarm(); }
  Result<void> put(storage::TableId table, std::string_view key, BytesView value) override {
    SW_CHECK_OK(step());
    return under_.put(table, key, value);
  }
  Result<void> erase(storage::TableId table, std::string_view key) override {
    SW_CHECK_OK(step());
    return under_.erase(table, key);
  }
  Result<void> erase_range(const storage::Range& range) override {
    SW_CHECK_OK(step());
    return under_.erase_range(range);
  }
  Result<void> set_alarm(std::optional<storage::Time> time) override {
    return under_.set_alarm(time);
  }

 private:
  Result<void> step() {
    if (left_-- > 0) return {};
    return Error{ErrorCode::kUnavailable, "injected fault", 0};
  }
  storage::Transaction& under_;
  std::size_t left_;
};

/// A storage whose next transactions meet a fault.
class FaultyStorage final : public storage::ObjectStorage {
 public:
  explicit FaultyStorage(std::unique_ptr<storage::ObjectStorage> under)
      : under_(std::move(under)) {}

  void set(Fault fault, std::size_t operations) {
    fault_ = fault;
    operations_ = operations;
  }

  const storage::ObjectName& name() const override { return under_->name(); }
  std::uint64_t generation() const override { return under_->generation(); }
  bool lost() const override { return under_->lost(); }
  bool is_beside(const storage::ObjectStorage& /*other*/) const override { return false; }
  bool may_miss_changes() const override { return under_->may_miss_changes(); }
  Result<void> read(const storage::ReadBody& body) override { return under_->read(body); }
  Result<void> destroy() override { return under_->destroy(); }

  Result<void> transact(const storage::TransactionBody& body,
                        storage::CommitOptions /*options*/) override {
    const Error fault = {ErrorCode::kUnavailable, "injected fault", 0};
    switch (fault_) {
      case Fault::kNone: return under_->transact(body);
      case Fault::kBeforeCommit:
        return under_->transact([&](storage::Transaction& transaction) -> Result<void> {
          SW_CHECK_OK(body(transaction));
          return fault;
        });
      case Fault::kWithinBody:
        return under_->transact([&](storage::Transaction& transaction) -> Result<void> {
          FailingTransaction failing(transaction, operations_);
          return body(failing);
        });
      case Fault::kAfterCommit: {
        SW_CHECK_OK(under_->transact(body));
        return fault;
      }
      case Fault::kBodyRunsTwice: {
        auto discarded = under_->transact([&](storage::Transaction& transaction) -> Result<void> {
          SW_CHECK_OK(body(transaction));
          return fault;
        });
        EXPECT_FALSE(discarded.ok());
        return under_->transact(body);
      }
    }
    return fault;
  }

 private:
  std::unique_ptr<storage::ObjectStorage> under_;
  Fault fault_ = Fault::kNone;
  std::size_t operations_ = 0;
};

}  // namespace sw::snapshot
