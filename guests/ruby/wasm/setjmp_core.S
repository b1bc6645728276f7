/* SPDX-FileCopyrightText: The sandbox-workers authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Empty in place of Ruby's own: setjmp and longjmp are Wasm exceptions (guests/common/sjlj.c). */
