// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Carries out a plan on a host folder, whole or not at all as far as the file system allows.
// Everything new is written and synced under a temporary name beside its place. Then each is
// exchanged with what is at its place, and what went keeps a temporary name until all is done, so
// that a failure on the way is undone.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sandbox_workers/base/result.h"
#include "wasi/host_access.h"
#include "wasi/host_plan.h"

namespace sw::wasi {

class HostWriter {
 public:
  /// `host` is what the plan was made for. All three outlive the writer.
  HostWriter(int folder, const HostPlan& plan, const HostEntries& host)
      : folder_(folder), plan_(plan), host_(host) {}

  /// After an error the folder is as it was. Errors: kConflict when somebody else changed what the
  /// plan changes.
  Result<void> run();

  /// What should be gone and could not be removed, with the reason; or after an error what could
  /// not be put back.
  const std::vector<std::string>& left() const { return left_; }

 private:
  enum class State : std::uint8_t { kWaiting, kMovedAway, kPlaced };
  struct Step {
    std::string path;
    // the temporary name of what is to come; empty if nothing is, or it has none
    std::string fresh;
    std::string old;  // of what went; its own if it could not be moved away
    State state = State::kWaiting;
  };
  using FolderFd = std::shared_ptr<const UniqueFd>;
  // paths below a folder; is it a folder?
  using Contents = std::vector<std::pair<std::string, bool>>;

  Result<void> stage();
  Result<void> check_removable(const std::string& path);
  Result<void> stage_file(Step& step);
  Result<void> stage_folder(Step& step);
  Result<void> stage_link(Step& step);
  Result<void> fill_folder(int parent, const Step& step);

  Result<void> commit();
  Result<void> carry_out(Step& step);
  Result<void> move_away(int folder, Step& step);
  Result<void> exchange(int folder, Step& step);
  Result<void> check_old(int folder, const Step& step);
  Result<void> check_links();
  Result<void> sync_folders();

  void undo(Step& step);
  void discard_fresh(const Step& step);
  void discard_old(const Step& step);
  static bool remove_listed(int folder, const std::string& name, bool is_folder,
                            const Contents& contents);

  Result<FolderFd> folder_of(const std::string& path);
  template <class Make>
  Result<std::string> with_temporary_name(const std::string& path, Make make);
  const TreeState::Entry* planned(const std::string& path) const;
  const HostEntry* replaced(const std::string& path) const;

  int folder_;
  const HostPlan& plan_;
  const HostEntries& host_;
  std::vector<Step> steps_;
  std::map<std::string, FolderFd>
      folders_;  // kept open, so that a folder that is renamed meanwhile is still found
  std::size_t names_given_ = 0;
  std::vector<std::string> left_;
};

}  // namespace sw::wasi
