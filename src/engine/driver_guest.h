// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Interpreters whose driver is a part of the guest, in C (guests/perl/driver, guests/ruby/driver).
// Requests go into a buffer of the driver's, answers come through the import sw.answer. Words of
// guest memory stop a running cell or ring its alarm: the interpreter looks at one of them wherever
// it looks for signals.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/alarm.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/engine/language.h"
#include "sandbox_workers/wasm/linker.h"

namespace sw::engine {

/// What differs from one language to the other. The strings are literals.
struct DriverFacts {
  /// Entry points that tell, at bake, where the words lie: "look at the others", "stop", "the alarm
  /// rings".
  const char* interrupt_word;
  const char* stop_word;
  const char* alarm_word;
  std::string_view warm_file;     ///< driver file whose code walks the usual paths once
  std::string_view failing_code;  ///< so does this, and ends in an error with a traceback
  std::string_view endless_code;  ///< runs for ever, to prove that it can be interrupted
};

class DriverGuest : public Guest {
 public:
  /// `manifest` must outlive this.
  DriverGuest(const Manifest& manifest, const DriverFacts& driver,
              std::shared_ptr<const wasi::Layout> layout, const wasi::Clocks& clocks);

  Result<void> boot(BakeFacts& facts) override;
  Result<void> bind(const BakeFacts& facts) override;
  Result<void> after_restore() override;
  Result<Reply> evaluate(const Run& request, std::string_view file_name) override;
  void soft_stop() override;

  /// For the imports. Trust: any code in the guest can call them.
  Result<void> take_answer(wasm::MemoryView memory, std::uint32_t address, std::uint32_t length);
  void set_alarm(std::uint64_t milliseconds);

 protected:
  const Manifest& manifest() const { return manifest_; }

 private:
  /// The code that the driver runs first.
  virtual std::string boot_code() const = 0;
  /// A cell, in the form that the driver reads. `fresh`: the first after the image or a saved
  /// state.
  virtual std::string cell(const Run& request, std::string_view file_name, bool fresh) const = 0;
  /// Finds entry points beyond those that every driver has.
  virtual Result<void> find_more_entry_points() = 0;

  Result<void> find_entry_points();
  /// Copies to the driver's buffer and returns the size, as the entry points want it.
  Result<std::int32_t> send(std::string_view request);
  Result<void> start_driver();
  Result<void> warm_up();
  Result<void> prove_interrupt();
  void raise(std::uint32_t word);

  const Manifest& manifest_;
  const DriverFacts& driver_;
  wasm::Function<std::int32_t(std::int32_t)> buffer_;
  wasm::Function<void(std::int32_t)> run_;
  wasm::Function<void()> renew_;
  // Addresses of ints in guest memory.
  std::uint32_t interrupt_word_ = 0;
  std::uint32_t stop_word_ = 0;
  std::uint32_t alarm_word_ = 0;
  bool fresh_ = false;
  std::string answer_;
  std::uint64_t answer_bytes_max_ = kReplyHeadBytesMax;
  Alarm alarm_;  // last: its thread uses what is above
};

/// Defines sw.answer, sw.alarm and sw.fd_dup for instances whose HostState is a DriverGuest.
Result<void> define_driver_imports(wasm::Linker& linker);

/// What a driver reads: numbers of 32 bits, little-endian, and strings as their size and their
/// bytes.
void put_number(std::string& request, std::size_t value);
void put_string(std::string& request, std::string_view text);

/// The size of the largest value that is wanted, code, file name, folder (of the first cell only),
/// arguments, environment. The first argument, the program's name, is `program` unless that is
/// empty.
std::string driver_request(const Run& request, std::string_view file_name, bool fresh,
                           std::string_view program = {});

/// The driver file of that name; empty if there is none.
std::string_view driver_file(const Manifest& manifest, std::string_view name);

}  // namespace sw::engine
