// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/ruby/ruby_guest.h"

#include <utility>

#include "engine/ruby/request.h"

namespace sw::engine {

namespace {

constexpr DriverFacts kDriver = {
    .interrupt_word = "sw_interrupt_address",
    .stop_word = "sw_stop_flag_address",
    .alarm_word = "sw_timer_flag_address",
    .warm_file = "warm.rb",
    .failing_code =
        "Module.new do\n  def self.fail_once = raise(ArgumentError, %(cold))\n"
        "  def self.walk\n    fail_once\n  rescue\n    raise IOError, %(warm)\n"
        "  end\nend.walk",
    .endless_code = "nil while true"};

// A program that knows the workspace as /home/user finds its own modules there.
constexpr char kMoveHome[] =
    "$LOAD_PATH.map! { |folder| folder == '/workspace' ? '/home/user' : folder } "
    "if $LOAD_PATH.include?('/workspace'); nil";

}  // namespace

RubyGuest::RubyGuest(const Manifest& manifest, std::shared_ptr<const wasi::Layout> layout,
                     const wasi::Clocks& clocks)
    : DriverGuest(manifest, kDriver, std::move(layout), clocks) {}

std::string RubyGuest::boot_code() const { return ruby_boot_code(manifest()); }

std::string RubyGuest::cell(const Run& request, std::string_view file_name, bool fresh) const {
  return ruby_request(request, file_name, fresh);
}

Result<void> RubyGuest::find_more_entry_points() {
  SW_TRY(finish_, instance().function<std::int32_t()>("sw_finish"));
  return {};
}

Result<void> RubyGuest::after_restore() {
  renewed_ = true;
  return DriverGuest::after_restore();
}

Result<Reply> RubyGuest::evaluate(const Run& request, std::string_view file_name) {
  if (std::exchange(renewed_, false) && request.home) {
    Run before = request;
    before.code = kMoveHome;
    SW_TRY(Reply reply, evaluate_cell(before, "<home>"));
    if (reply.error) return reply;  // it met a limit
  }
  return evaluate_cell(request, file_name);
}

Result<Reply> RubyGuest::evaluate_cell(const Run& request, std::string_view file_name) {
  auto reply = DriverGuest::evaluate(request, file_name);
  if (reply.ok() || reply.error().code != ErrorCode::kGuestExit) return reply;
  // A program's own exit comes back as an answer. Ruby itself exits where memory ends before it can
  // make an error.
  return Error{ErrorCode::kGuestTrap, "Ruby aborted", 0};
}

Result<void> RubyGuest::finish() {
  exit_status_.reset();
  SW_TRY(const std::int32_t status, instance().call(finish_));
  if (status >= 0) exit_status_ = status;
  return {};
}

bool RubyGuest::is_out_of_memory(const GuestError& error) const {
  return error.name == "NoMemoryError";
}

}  // namespace sw::engine
