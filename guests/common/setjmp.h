/* SPDX-FileCopyrightText: The sandbox-workers authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * <setjmp.h> for wasm32-wasi, whose libc has none without legacy exceptions. clang turns the calls into Wasm
 * exceptions
 * (-mllvm -wasm-enable-sjlj); what it calls for that is in sjlj.c. */
#ifndef SW_SETJMP_H
#define SW_SETJMP_H

typedef struct sw_jmp_buf {
  unsigned long words[8];
} jmp_buf[1];
typedef jmp_buf sigjmp_buf;

int setjmp(jmp_buf) __attribute__((__returns_twice__));
_Noreturn void longjmp(jmp_buf, int);

/* Programs test for these with #ifdef. */
#define setjmp setjmp
#define _setjmp(env) setjmp(env)
#define _longjmp(env, value) longjmp(env, value)
#define sigsetjmp(env, mask) ((void)(mask), setjmp(env))
#define siglongjmp(env, value) longjmp(env, value)

#endif
