// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "bake/facts_file.h"

#include <boost/json.hpp>

namespace sw::bake {

namespace {

namespace json = boost::json;

/// What `read` makes of the object. It throws what Boost.JSON throws when something is missing or
/// of another kind than wanted.
template <class Facts>
Result<Facts> parse(std::string_view text, Facts (*read)(const json::object&)) {
  try {
    return read(json::parse(text).as_object());
  } catch (const std::exception&) {
    return Error{ErrorCode::kCorrupt, "the facts are damaged", 0};
  }
}

wasm::StateFacts state_facts_from(const json::object& object) {
  return {.has_start = object.at("has_start").as_bool(),
          .writes_tables = object.at("writes_tables").as_bool(),
          .drops_segments = object.at("drops_segments").as_bool(),
          .passive_data = object.at("passive_data").as_bool(),
          .imports_state = object.at("imports_state").as_bool(),
          .mutable_globals = object.at("mutable_globals").to_number<std::uint32_t>()};
}

BakeFacts bake_facts_from(const json::object& object) {
  BakeFacts facts;
  for (const auto& [name, value] : object) facts.emplace(name, value.to_number<std::uint64_t>());
  return facts;
}

}  // namespace

std::string to_json(const wasm::StateFacts& facts) {
  return json::serialize(json::object{{"has_start", facts.has_start},
                                      {"writes_tables", facts.writes_tables},
                                      {"drops_segments", facts.drops_segments},
                                      {"passive_data", facts.passive_data},
                                      {"imports_state", facts.imports_state},
                                      {"mutable_globals", facts.mutable_globals}});
}

std::string to_json(const BakeFacts& facts) {
  json::object object;
  for (const auto& [name, value] : facts) object[name] = value;
  return json::serialize(object);
}

Result<wasm::StateFacts> parse_state_facts(std::string_view text) {
  return parse(text, &state_facts_from);
}

Result<BakeFacts> parse_bake_facts(std::string_view text) { return parse(text, &bake_facts_from); }

}  // namespace sw::bake
