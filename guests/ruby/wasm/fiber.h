/* SPDX-FileCopyrightText: The sandbox-workers authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Contexts of fibers, for coroutine/asyncify/Context.h. See fiber.c. */
#ifndef SW_RUBY_FIBER_H
#define SW_RUBY_FIBER_H

#include <stdbool.h>
#include <stddef.h>

#include "wasm/asyncify.h"

typedef struct {
  void (*entry_point)(void *, void *); /* NULL: the main fiber */
  void *arg0, *arg1;
  char *saved; /* the unwound frames, while suspended */
  size_t saved_size, saved_room;
  struct asyncify_buffer rewinding; /* says where `saved` is */
  bool is_started, is_rewinding;
} rb_wasm_fiber_context;

void rb_wasm_init_context(rb_wasm_fiber_context *context, void (*entry_point)(void *, void *),
                          void *arg0, void *arg1);
void rb_wasm_free_context(rb_wasm_fiber_context *context);
void rb_wasm_swapcontext(rb_wasm_fiber_context *from, rb_wasm_fiber_context *to);

#endif
