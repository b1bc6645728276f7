// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What all handles of a Host share: storage, languages, threads, sandboxes.

#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "executor/guest_pool.h"
#include "interpreter/residency_pool.h"
#include "interpreter/worker.h"
#include "object/host.h"
#include "sandbox/sandboxes.h"
#include "sandbox/transfer.h"
#include "sandbox/versions.h"
#include "sandbox_workers/engine/machine.h"
#include "sandbox_workers/host/host.h"
#include "storage/memory/memory_storage.h"
#include "storage/storage.h"

namespace sw::host {

/// A language, and the Worker that runs it.
struct HostedLanguage {
  LanguageInfo info;
  std::string binding;                          ///< what sandboxes know the Worker by
  std::shared_ptr<engine::Engine> engine;       // shared with the Worker
  std::shared_ptr<interpreter::Worker> worker;  // shared with the bindings
};

class Core {
 public:
  explicit Core(HostOptions options);
  /// Stops runs and waits for them.
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  Result<void> open();

  const HostOptions& options() const { return options_; }
  engine::Machine& machine() { return *machine_; }
  storage::Storage& storage() { return *storage_; }
  const std::vector<HostedLanguage>& languages() const { return languages_; }
  /// Errors: kInvalidArgument naming those there are.
  Result<const HostedLanguage*> language(std::string_view name) const;
  Result<std::shared_ptr<sandbox::Sandbox>> sandbox(const std::string& id) {
    return sandboxes_->get(id);
  }

  sandbox::Versions& versions() { return *versions_; }
  sandbox::Transfers& transfers() { return *transfers_; }

  RunHandle start(Run run, RunEvents& events, RunDone done);
  RunHandle start_in(const std::string& sandbox, Run run, RunEvents& events, RunDone done);
  /// Waits for what `start` or `start_in` began, and puts what it printed into the outcome.
  template <class Start>
  static Result<Outcome> collect(const Start& start) {
    RunOutput output;
    Result<Outcome> outcome = start(output).wait();
    if (!outcome.ok()) return outcome;
    outcome->out = std::move(output.out);
    outcome->err = std::move(output.err);
    return outcome;
  }

  /// The context of that name; made in `language` if it is not there and that is not empty.
  Result<void> ensure_context(sandbox::Sandbox& sandbox, const std::string& id,
                              const std::string& language);

 private:
  struct Started;

  Result<void> check_options() const;
  Result<void> open_storage();
  Result<void> add_languages();
  void add_language(std::shared_ptr<engine::Engine> engine);
  std::optional<sandbox::TypedObject> interpreter_object(const std::string& binding,
                                                         const std::string& key) const;
  std::shared_ptr<Started> begin(Run& run, RunDone done);
  /// Finds the sandbox and context of a run, and hands it over.
  Result<void> send(const std::string& sandbox, Run run, RunEvents& events,
                    const std::shared_ptr<Started>& started);

  const HostOptions options_;
  std::stop_source closing_;
  std::unique_ptr<engine::Machine> machine_;
  std::unique_ptr<object::Clock> clock_;
  executor::GuestPool guests_;  // the storage asks it to the end how many runs wait
  storage::MemoryDisk memory_;
  std::unique_ptr<storage::Storage> storage_;
  interpreter::ResidencyPool residency_;
  std::optional<object::ObjectHost> objects_;
  std::vector<HostedLanguage> languages_;
  std::optional<sandbox::SandboxParts> parts_;
  std::optional<sandbox::Sandboxes> sandboxes_;
  std::optional<sandbox::Versions> versions_;
  std::optional<sandbox::Transfers> transfers_;
};

}  // namespace sw::host
