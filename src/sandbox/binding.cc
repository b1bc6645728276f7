// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox/binding.h"

#include <fmt/format.h>

#include "sandbox/names.h"
#include "sandbox_workers/protocol/answers.h"

namespace sw::sandbox {

Result<Binding> Binding::find(const protocol::Bindings& bindings, std::string_view name) {
  const auto found = bindings.find(name);
  if (!is_identifier(name) || found == bindings.end() || !found->second) {
    return protocol::refusal(fmt::format("Unknown binding '{}'", name));
  }
  return Binding(found->first, found->second);
}

Result<protocol::WorkerInfo> Binding::probe() const {
  auto info = worker_->info();
  if (!info.ok()) {
    return protocol::refusal(
        fmt::format("Binding '{}' is not a sandbox-workers runtime Worker", name_));
  }
  if (info->protocol != protocol::kProtocolVersion) {
    return protocol::refusal(
        fmt::format("Binding '{}' speaks interpreter protocol {}; this caller supports {}", name_,
                    info->protocol, protocol::kProtocolVersion));
  }
  return info;
}

Result<std::shared_ptr<protocol::Interpreter>> Binding::interpreter(std::string_view key) const {
  return answer(worker_->interpreter(key));
}

}  // namespace sw::sandbox
