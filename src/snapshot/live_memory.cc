// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "snapshot/live_memory.h"

#include "snapshot/step_encoder.h"

namespace sw::snapshot {

using Encoded = EncodedStep::State;

namespace {

void count_page(LiveMemory::State& live, PackId pack, int change) {
  if (!pack) return;
  std::uint32_t& count = live.pages_in_pack[pack];
  count = static_cast<std::uint32_t>(static_cast<int>(count) + change);
  if (count == 0) live.pages_in_pack.erase(pack);
}

/// What the pages that a step changes were in the last key step, if it is the first to.
void remember_key_pages(LiveMemory::State& live, const Encoded& step) {
  if (step.key_sequence != live.key_sequence) return live.key_pages.clear();
  for (const Encoded::Change& change : step.changes) {
    const PageState& before = live.table.at(change.page);
    const Page* const recent = live.recent.find(change.page);
    const bool in_key_step = before.stored() && before.place.pack.sequence <= live.key_sequence;
    if (in_key_step && recent != nullptr) live.key_pages.put(change.page, before, *recent);
  }
}

}  // namespace

LiveMemory::LiveMemory(std::shared_ptr<LiveMemory::State> state) : state_(std::move(state)) {}
LiveMemory::LiveMemory(LiveMemory&&) noexcept = default;
LiveMemory& LiveMemory::operator=(LiveMemory&&) noexcept = default;
LiveMemory::~LiveMemory() = default;

const std::string& LiveMemory::context() const { return state_->context; }
const std::string& LiveMemory::build() const { return state_->build; }
std::optional<VersionId> LiveMemory::version() const {
  return state_->based_on ? std::optional(state_->based_on) : std::nullopt;
}
std::uint64_t LiveMemory::stored_pages() const { return state_->stored_pages; }
std::uint64_t LiveMemory::unread_pages() const { return state_->unread_pages; }
std::size_t LiveMemory::bookkeeping_bytes() const {
  return sizeof(LiveMemory::State) + state_->table.regions().size() * sizeof(Region) +
         state_->recent.bytes() + state_->key_pages.bytes() + state_->host_tables.size();
}

Result<EncodedStep> LiveMemory::encode(const Step& step) {
  auto compression = state_->compressions->take();
  auto encoded = encode_step(*state_, step, *compression);
  state_->compressions->give_back(std::move(compression));
  if (!encoded.ok()) return std::move(encoded).error();
  return EncodedStep(std::make_unique<EncodedStep::State>(*std::move(encoded)));
}

EncodedStep::EncodedStep(std::unique_ptr<State> state) : state_(std::move(state)) {}
EncodedStep::EncodedStep(EncodedStep&&) noexcept = default;
EncodedStep& EncodedStep::operator=(EncodedStep&&) noexcept = default;
EncodedStep::~EncodedStep() = default;
const SaveStats& EncodedStep::stats() const { return state_->stats; }

void remember(LiveMemory::State& live, Encoded step) {
  remember_key_pages(live, step);
  for (const Encoded::Change& change : step.changes) {
    count_page(live, live.table.at(change.page).place.pack, -1);
    count_page(live, change.state.place.pack, +1);
    if (change.removed) live.recent.erase(change.page);
    else if (!change.moved) {
      live.recent.put(change.page, change.content.first<kPageBytes>(), step.stats.version.sequence);
    }
  }
  for (auto& [region, stored] : step.regions) live.table.region(region) = std::move(stored);
  live.based_on = step.stats.version;
  live.step = step.version.step;
  live.key_sequence = step.key_sequence;
  live.memory_bytes = step.memory_bytes;
  live.digest = step.digest;
  live.stored_pages = step.stored_pages;
  live.host_tables_pack = step.host_tables_pack;
  live.host_tables = std::move(step.host_tables);
}

}  // namespace sw::snapshot
