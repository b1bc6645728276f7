/* SPDX-FileCopyrightText: The sandbox-workers authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What the garbage collector asks of the machine. Locals that may hold objects are also on the C stack
 * (wasm-opt --spill-pointers), so there is nothing else to scan. */
#include "wasm/machine.h"

#include <stdlib.h>

extern char __stack_high, __stack_low;

void rb_wasm_scan_locals(rb_wasm_scan_func scan) { scan(0, 0); }
void *rb_wasm_stack_get_base(void) { return &__stack_high; }
size_t rb_wasm_stack_size(void) { return (size_t)(&__stack_high - &__stack_low); }
