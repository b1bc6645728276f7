// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// facts.json, which lies beside code and beside an image in the artifact cache: what was found out
// when they were made and cannot be seen in them.

#include <string>
#include <string_view>

#include "sandbox_workers/bake/facts.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/wasm/module.h"

namespace sw::bake {

std::string to_json(const wasm::StateFacts& facts);
std::string to_json(const BakeFacts& facts);

/// Errors of both: kCorrupt when a fact is missing or of another kind than wanted.
Result<wasm::StateFacts> parse_state_facts(std::string_view text);
Result<BakeFacts> parse_bake_facts(std::string_view text);

}  // namespace sw::bake
