/* SPDX-FileCopyrightText: The sandbox-workers authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Fibers for a module that holds the code twice. The plain copy runs everything on the main stack, at full speed. The
 * other is asyncified: its frames can be unwound into memory and wound up again. Both share the memory and the stack
 * pointer, and their tables have the same layout, so a function pointer means the same in both.
 *
 * Resuming a fiber from the main one calls the other copy's loop on top of the main stack, which is never unwound;
 * switching back returns from there. Between fibers, and back to the main one, only frames of the other copy unwind.
 * A suspended fiber is a block of memory and a C stack of its own, hence part of any snapshot. */
#include "wasm/fiber.h"

#include <stdlib.h>
#include <string.h>

/* Fibers have small stacks: the deepest, some thousand frames, needs less than half of this. */
enum { kUnwindBytes = 1 << 20 };

/* sw_fiber_loop() of the other copy (build.py joins the two). */
__attribute__((import_module("fiber"), import_name("loop"))) void run_fibers(void);

static char unwound[kUnwindBytes] __attribute__((aligned(16)));
static struct asyncify_buffer unwinding;
static bool in_fiber;
static rb_wasm_fiber_context *from, *to; /* of the switch in progress */

void rb_wasm_init_context(rb_wasm_fiber_context *context, void (*entry_point)(void *, void *), void *arg0,
                          void *arg1) {
  memset(context, 0, sizeof *context);
  context->entry_point = entry_point;
  context->arg0 = arg0;
  context->arg1 = arg1;
}

void rb_wasm_free_context(rb_wasm_fiber_context *context) {
  free(context->saved);
  context->saved = NULL;
  context->saved_size = context->saved_room = 0;
}

void rb_wasm_swapcontext(rb_wasm_fiber_context *leaving, rb_wasm_fiber_context *entering) {
  if (!in_fiber) {
    in_fiber = true;
    to = entering;
    run_fibers();
    in_fiber = false;
  } else if (leaving->is_rewinding) { /* this call is the one that was left, and now returns */
    asyncify_stop_rewind();
    leaving->is_rewinding = false;
    leaving->saved_size = 0;
  } else {
    from = leaving;
    to = entering;
    unwinding = (struct asyncify_buffer){unwound, unwound + sizeof unwound};
    asyncify_start_unwind(&unwinding);
  }
}

static __attribute__((noinline)) void save_unwound(rb_wasm_fiber_context *context) {
  const size_t size = (size_t)(unwinding.top - unwound);
  if (size > context->saved_room || size * 4 < context->saved_room) {
    free(context->saved);
    context->saved_room = size + size / 4;
    context->saved = malloc(context->saved_room);
    if (context->saved == NULL) abort();
  }
  memcpy(context->saved, unwound, size);
  context->saved_size = size;
  context->rewinding = (struct asyncify_buffer){context->saved + size, context->saved + size};
}

/* Asyncify leaves a function alone that ends unwinding, so this one is the bottom of every fiber. */
__attribute__((export_name("sw_fiber_loop"))) void sw_fiber_loop(void) {
  while (to->entry_point != NULL) {
    rb_wasm_fiber_context *const fiber = to;
    if (fiber->is_started) {
      fiber->is_rewinding = true;
      asyncify_start_rewind(&fiber->rewinding);
    }
    fiber->is_started = true;
    fiber->entry_point(fiber->arg0, fiber->arg1);
    asyncify_stop_unwind();
    save_unwound(from);
  }
  /* Asyncify's note of the buffer it used last is a global, and an image or a snapshot is memory only: put it back to what
   * it was at first. (A buffer is looked at, not written; at the stack's end lie zeros.) */
  asyncify_start_unwind(NULL);
  asyncify_stop_unwind();
}
