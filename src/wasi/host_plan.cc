// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "wasi/host_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "wasi/host_links.h"

namespace sw::wasi {
namespace {

// Names on the way of all links together: about a second's work.
constexpr std::size_t kStepsMax = 10'000'000;

class Planner {
 public:
  Planner(const TreeState& before, const TreeState& now, const HostEntries& loaded,
          const HostEntries& host)
      : before_(before), loaded_(loaded), host_(host) {
    plan_.after = now;
  }

  Result<HostPlan> run() {
    refuse_temporary_names();
    SW_CHECK_OK(refuse_links());
    find_changes();
    order_links();
    std::erase_if(plan_.removed,
                  // gone already
                  [this](const std::string& path) { return !host_.contains(path); });
    for (const std::string& path : plan_.removed) check(path);
    for (const std::string& path : plan_.placed) check(path);
    for (const std::string& path : plan_.links) {
      if (!changed_.contains(parent_path(path))) check(path);
    }
    return std::move(plan_);
  }

 private:
  using Refusals = std::map<std::string, std::string>;  // path to reason

  TreeState::Entries& after() { return plan_.after.entries(); }
  bool is_link(const std::string& path) {
    const TreeState::Entry* const found = after().find(path);
    return found != nullptr && found->type == FileType::kSymbolicLink;
  }

  void find_changes();
  void refuse_temporary_names();
  Result<void> refuse_links();
  Refusals unsafe_links(const LinkModel& old);
  void blame(const std::string& link, const LinkModel::Resolution& resolution, Refusals& refusals);
  LinkModel& changed_model(LinkModel& model);
  void refuse(const std::string& path, const std::string& reason);
  void order_links();

  void check(const std::string& path);
  void check_replaced(const std::string& path, const HostEntry& there);
  void check_below(const std::string& path);
  void conflict(const std::string& path, std::string_view reason) {
    plan_.conflicts.push_back(fmt::format("{} {}", shown(path), reason));
  }

  const TreeState& before_;
  const HostEntries& loaded_;
  const HostEntries& host_;
  HostPlan plan_;
  std::set<std::string> changed_;                // all paths that differ, roots and what is below
  std::map<std::string, std::size_t> followed_;  // of changed links
  std::size_t steps_left_ = kStepsMax;
};

/// The roots of what changed. What is below a changed path changed as well.
void Planner::find_changes() {
  plan_.removed.clear();
  plan_.placed.clear();
  changed_.clear();
  for (const Change& change : before_.changes_to(plan_.after)) {
    changed_.insert(change.path);
    if (changed_.contains(parent_path(change.path))) continue;
    if (change.kind == Change::Kind::kRemoved) plan_.removed.push_back(change.path);
    else if (change.type != FileType::kSymbolicLink) plan_.placed.push_back(change.path);
  }
}

void Planner::refuse_temporary_names() {
  std::vector<std::string> found;
  for (const auto& [path, entry] : after()) {
    if (is_temporary_name(name_of(path))) found.push_back(path);
  }
  for (const std::string& path : found)
    refuse(path, "the name is reserved for unfinished write-backs");
}

/// Each round may make other links unsafe, or safe: what was refused is as it was before.
Result<void> Planner::refuse_links() {
  const LinkModel old(host_);
  for (;;) {
    find_changes();
    const Refusals refusals = unsafe_links(old);
    if (steps_left_ == 0) {
      return Error{ErrorCode::kLimitExceeded,
                   "there are too many links to check where each one leads", 0};
    }
    if (refusals.empty()) return {};
    for (const auto& [path, reason] : refusals) refuse(path, reason);
  }
}

LinkModel& Planner::changed_model(LinkModel& model) {
  for (const std::string& path : changed_) {
    const TreeState::Entry* const entry = after().find(path);
    if (entry == nullptr) model.remove(path);
    else model.put(path, entry->type, entry->target);
  }
  return model;
}

Planner::Refusals Planner::unsafe_links(const LinkModel& old) {
  LinkModel fresh(host_);
  const LinkModel& model = changed_model(fresh);
  steps_left_ -= std::min(steps_left_, host_.size() + changed_.size());
  Refusals refusals;
  for (const std::string& link : model.links()) {
    const LinkModel::Resolution resolution = model.resolve(link, steps_left_);
    if (steps_left_ == 0) break;
    if (changed_.contains(link)) {
      followed_[link] = resolution.links_followed;
      if (resolution.escape != LinkModel::Escape::kNone) refusals[link] = resolution.problem;
    } else if (resolution.escape > old.resolve(link, steps_left_).escape) {
      blame(link, resolution, refusals);
    }
  }
  return refusals;
}

/// Refuses what makes a link unsafe that is not changed itself: the changed links on its way, or
/// else all changes.
void Planner::blame(const std::string& link, const LinkModel::Resolution& resolution,
                    Refusals& refusals) {
  const std::string reason =
      fmt::format("with this change, the link {} {}", shown(link), resolution.problem);
  bool found = false;
  for (const std::string& path : resolution.visited) {
    if (!changed_.contains(path) || !is_link(path)) continue;
    refusals.emplace(path, reason);
    found = true;
  }
  if (found) return;
  for (const std::string& path : resolution.visited) {
    if (changed_.contains(path) && !changed_.contains(parent_path(path)))
      refusals.emplace(path, reason);
  }
}

/// What is at `path` on the host stays, with what is below it.
void Planner::refuse(const std::string& path, const std::string& reason) {
  plan_.refused.push_back(is_link(path) ? fmt::format("{} -> {}: {}", shown(path),
                                                      shown(after().find(path)->target), reason)
                                        : fmt::format("{}: {}", shown(path), reason));
  const TreeState now = plan_.after;
  const auto [begin, end] = below(now.entries(), path);
  for (auto entry = begin; entry != end; ++entry) after().erase(entry->first);
  after().erase(path);
  const TreeState::Entry* const old = before_.entries().find(path);
  if (old == nullptr) return;
  after().set(path, *old);
  const auto [old_begin, old_end] = below(before_.entries(), path);
  for (auto entry = old_begin; entry != old_end; ++entry) after().set(entry->first, entry->second);
}

/// Who leads through another link follows more of them.
void Planner::order_links() {
  for (const std::string& path : changed_) {
    if (is_link(path)) plan_.links.push_back(path);
  }
  std::stable_sort(
      plan_.links.begin(), plan_.links.end(),
      [this](const std::string& a, const std::string& b) { return followed_[a] < followed_[b]; });
}

/// Is the host, where `path` is to be changed, as it was when it was loaded?
void Planner::check(const std::string& path) {
  const std::string parent = parent_path(path);
  const auto folder = host_.find(parent);
  const auto there = host_.find(path);
  const bool known = before_.entries().contains(path);
  if (!parent.empty() && (folder == host_.end() || !folder->second.is_directory())) {
    conflict(path, "no longer has its folder on the host");
  } else if (there == host_.end()) {
    if (known) conflict(path, "was removed on the host during the run");
  } else if (!known) {
    conflict(path, fmt::format("is {} on the host, which was not loaded", kind_of(there->second)));
  } else {
    check_replaced(path, there->second);
  }
}

void Planner::check_replaced(const std::string& path, const HostEntry& there) {
  const auto old = loaded_.find(path);
  if (old == loaded_.end() || !same_entry(old->second, there)) {
    conflict(path, "was changed on the host during the run");
    return;
  }
  const TreeState::Entry* const fresh = after().find(path);
  const bool is_written = fresh != nullptr && fresh->type == FileType::kRegularFile;
  if (is_written && there.is_file() && (there.status.st_mode & S_IWUSR) == 0)
    conflict(path, "is read-only");
  if (there.is_directory()) check_below(path);
}

/// What a folder holds that goes.
void Planner::check_below(const std::string& path) {
  const auto [begin, end] = below(host_, path);
  for (auto entry = begin; entry != end; ++entry) {
    const auto old = loaded_.find(entry->first);
    if (!before_.entries().contains(entry->first)) {
      conflict(entry->first,
               fmt::format("is {} on the host, which was not loaded", kind_of(entry->second)));
    } else if (old == loaded_.end() || !same_entry(old->second, entry->second)) {
      conflict(entry->first, "was changed on the host during the run");
    }
  }
}

}  // namespace

Result<HostPlan> plan_write_back(const TreeState& before, const TreeState& now,
                                 const HostEntries& loaded, const HostEntries& host) {
  return Planner(before, now, loaded, host).run();
}

}  // namespace sw::wasi
