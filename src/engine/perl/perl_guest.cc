// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/perl/perl_guest.h"

#include "engine/perl/request.h"

namespace sw::engine {

namespace {

constexpr DriverFacts kDriver = {.interrupt_word = "sw_pending_flag",
                                 .stop_word = "sw_stop_flag",
                                 .alarm_word = "sw_alarm_flag_address",
                                 .warm_file = "warm.pl",
                                 .failing_code = "my $fail = sub { die {} }; $fail->()",
                                 .endless_code = "1 while 1"};

}  // namespace

PerlGuest::PerlGuest(const Manifest& manifest, std::shared_ptr<const wasi::Layout> layout,
                     const wasi::Clocks& clocks)
    : DriverGuest(manifest, kDriver, std::move(layout), clocks) {}

std::string PerlGuest::boot_code() const { return perl_boot_code(manifest()); }

std::string PerlGuest::cell(const Run& request, std::string_view file_name, bool fresh) const {
  return driver_request(request, file_name, fresh);
}

Result<void> PerlGuest::find_more_entry_points() {
  SW_TRY(finish_, instance().function<void()>("sw_finish"));
  return {};
}

Result<void> PerlGuest::finish() { return instance().call(finish_); }

bool PerlGuest::is_out_of_memory(const GuestError& error) const {
  return error.name == "OutOfMemory" || error.message.starts_with("Out of memory");
}

}  // namespace sw::engine
