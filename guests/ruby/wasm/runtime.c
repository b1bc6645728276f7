/* SPDX-FileCopyrightText: The sandbox-workers authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Ruby's own runs main() in a loop that unwinds and winds up its stack. Ours never does. */
int rb_wasm_rt_start(int (*main)(int, char **), int argc, char **argv) { return main(argc, argv); }
