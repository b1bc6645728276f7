// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a sandbox remembers beside its files. Format: docs/formats/files.md.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/protocol/protocol.h"

namespace sw::sandbox {

using Env = std::map<std::string, std::string>;
/// nullopt unsets.
using EnvChanges = std::map<std::string, std::optional<std::string>>;

/// Lays `changes` over `env`.
void apply(Env& env, const EnvChanges& changes);

struct SandboxRecord {
  std::int64_t created_ms = 0;
  std::int64_t last_used_ms = 0;  ///< may lag behind by a tenth of the time to live
  Env env;
  std::optional<Durability> durability = {};  ///< of its runs; absent: the host's setting
};

struct ContextRecord {
  std::string id;
  std::uint64_t number = 0;  ///< in the order of their making
  std::string binding;
  std::string language;
  std::string engine;
  std::string cwd = "/workspace";
  Env env;
  std::int64_t created_ms = 0;
  std::int64_t last_used_ms = 0;
  std::uint64_t executions = 0;
  /// The Interpreter's count as of its last answer; absent while it is not known.
  std::optional<std::uint64_t> interpreter_executions;
  std::optional<protocol::SnapshotInfo> snapshot;
  std::optional<Durability> durability = {};  ///< of its runs; absent: the sandbox's
};

Bytes encode(const SandboxRecord& record);
Bytes encode(const ContextRecord& record);
/// Errors: kCorrupt.
Result<SandboxRecord> decode_sandbox_record(BytesView bytes);
Result<ContextRecord> decode_context_record(std::string_view id, BytesView bytes);

}  // namespace sw::sandbox
