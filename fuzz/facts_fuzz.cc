// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// facts.json of the artifact cache, and the addresses in it that are written to while a guest runs.

#include "bake/facts_file.h"

#include <algorithm>
#include <vector>

#include "engine/python/interrupt.h"
#include "fuzz/fuzz.h"

namespace sw::fuzz {
namespace {

void check_state_facts(std::string_view text) {
  const auto facts = bake::parse_state_facts(text);
  if (!facts.ok()) return;
  const std::string saved = bake::to_json(*facts);
  const auto again = bake::parse_state_facts(saved);
  require(again.ok() && bake::to_json(*again) == saved, "what was read is written and read again",
          saved);
  require(facts->keepable() == facts->reason_not_keepable().empty(),
          "there is a reason for what is not kept");
}

/// The words of the facts are written, and nothing else.
void check_interrupt(const engine::BakeFacts& facts) {
  const auto interrupt = engine::Interrupt::load(facts);
  if (!interrupt.ok()) return;
  std::vector<std::uint64_t> words(64);
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(words));
  const wasm::MemoryView memory(bytes);
  interrupt->request(memory);
  const Bytes asked = copy_of(bytes);
  for (const char* name : {"eval_breaker", "async_exc"}) {
    const std::uint64_t at = facts.find(name)->second;
    if (at < bytes.size())
      std::ranges::fill(bytes.subspan(at).first(std::min(bytes.size() - at, sizeof(std::uint32_t))),
                        std::byte{0});
  }
  require(std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; }),
          "only the words are written");
  std::ranges::copy(asked, bytes.begin());
  const bool taken_back = interrupt->withdraw(memory).ok();
  const bool clean =
      std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
  require(!taken_back || clean, "a request is taken back");
}

}  // namespace

SW_FUZZ(facts) {
  const std::string_view text = as_text(input);
  check_state_facts(text);
  const auto facts = bake::parse_bake_facts(text);
  if (!facts.ok()) return;
  const auto again = bake::parse_bake_facts(bake::to_json(*facts));
  require(again.ok() && *again == *facts, "what was read is written and read again");
  check_interrupt(*facts);
}

}  // namespace sw::fuzz
