/* SPDX-FileCopyrightText: The sandbox-workers authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What clang's lowering of setjmp and longjmp to Wasm exceptions calls (-mllvm -wasm-enable-sjlj). A longjmp throws
 * the tag __c_longjmp (sjlj_tag.s) with the address of an argument block; each function that calls setjmp catches
 * it and asks whether the buffer was filled by this very activation of it. */
#include <stdint.h>

struct argument {
  void *env;
  int value;
};

struct buffer {
  void *activation; /* of the function that called setjmp */
  uint32_t label;   /* which of its calls */
  struct argument argument;
};

enum { kTagCLongjmp = 1 };

void __wasm_setjmp(struct buffer *env, uint32_t label, void *activation) {
  env->activation = activation;
  env->label = label;
}

uint32_t __wasm_setjmp_test(struct buffer *env, void *activation) {
  return env->activation == activation ? env->label : 0;
}

_Noreturn void __wasm_longjmp(struct buffer *env, int value) {
  env->argument.env = env;
  env->argument.value = value != 0 ? value : 1;
  __builtin_wasm_throw(kTagCLongjmp, &env->argument);
}
