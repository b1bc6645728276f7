/* SPDX-FileCopyrightText: The sandbox-workers authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The primitives of Binaryen's asyncify, and the buffer that frames are unwound into. */
#ifndef SW_RUBY_ASYNCIFY_H
#define SW_RUBY_ASYNCIFY_H

#define ASYNCIFY(name) __attribute__((import_module("asyncify"), import_name(#name)))

struct asyncify_buffer {
  char *top, *end;
};

ASYNCIFY(start_unwind) void asyncify_start_unwind(struct asyncify_buffer *buffer);
ASYNCIFY(stop_unwind) void asyncify_stop_unwind(void);
ASYNCIFY(start_rewind) void asyncify_start_rewind(struct asyncify_buffer *buffer);
ASYNCIFY(stop_rewind) void asyncify_stop_rewind(void);

#undef ASYNCIFY
#endif
