// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// C interface of src/prepare.rs: makes a Wasm module ready for memory images. Used by src/wasm only.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// What the scan found; the fields are explained at sw::wasm::StateFacts.
typedef struct sw_prepared_facts {
  bool has_start;
  bool writes_tables;
  bool drops_segments;
  bool passive_data;
  bool imports_state;
  uint32_t mutable_globals;
} sw_prepared_facts_t;

typedef struct sw_prepared sw_prepared_t;

/// Prepares a module. On failure returns null and sets *error to a message to free with sw_prepare_free_error.
sw_prepared_t* sw_prepare(const uint8_t* wasm, size_t length, char** error);
void sw_prepare_free_error(char* error);

sw_prepared_facts_t sw_prepared_facts(const sw_prepared_t* prepared);
const uint8_t* sw_prepared_wasm(const sw_prepared_t* prepared, size_t* length);
size_t sw_prepared_segment_count(const sw_prepared_t* prepared);
const uint8_t* sw_prepared_segment(const sw_prepared_t* prepared, size_t index, uint32_t* offset,
                                   size_t* length);
void sw_prepared_delete(sw_prepared_t* prepared);

#ifdef __cplusplus
}
#endif
