/* SPDX-FileCopyrightText: The sandbox-workers authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Arrays and hashes as JSON: symbols, and objects of other kinds, are strings. */
#include <ruby.h>
#include <ruby/encoding.h>
#include <ruby/util.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "internal/numeric.h"
#include "internal/util.h"
#include "vm_core.h"

#include "driver.h"

enum { kDepthMax = 100, kFixedDigitsMax = 16 };

static int put_value(struct text *text, VALUE value, int depth);

static int put_string(struct text *text, VALUE string) {
  rb_encoding *const utf8 = rb_utf8_encoding();
  if (rb_enc_get(string) != utf8 && rb_enc_str_coderange(string) != ENC_CODERANGE_7BIT) {
    if (rb_enc_get(string) == rb_ascii8bit_encoding()) return 0;
    string = rb_str_encode(string, rb_enc_from_encoding(utf8), 0, Qnil);
  }
  const int range = rb_enc_str_coderange(string);
  if (range != ENC_CODERANGE_7BIT && range != ENC_CODERANGE_VALID) return 0;
  text_put_json(text, RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
  RB_GC_GUARD(string);
  return 1;
}

/* As Float#to_s writes it: the shortest digits that give the same number. */
static int put_float(struct text *text, double value) {
  if (!isfinite(value)) return 0;
  int point, is_negative;
  char *end;
  char *const digits = ruby_dtoa(value, 0, 0, &point, &is_negative, &end);
  const int count = (int)(end - digits);
  if (is_negative) text_puts(text, "-");
  if (0 < point && point <= kFixedDigitsMax) {
    text_put(text, digits, (size_t)(count < point ? count : point));
    for (int i = count; i < point; i++) text_puts(text, "0");
    text_puts(text, ".");
    if (count > point) text_put(text, digits + point, (size_t)(count - point));
    else text_puts(text, "0");
  } else if (-4 < point && point <= 0) {
    text_puts(text, "0.");
    for (int i = point; i < 0; i++) text_puts(text, "0");
    text_put(text, digits, (size_t)count);
  } else {
    text_put(text, digits, 1);
    text_puts(text, ".");
    if (count > 1) text_put(text, digits + 1, (size_t)(count - 1));
    else text_puts(text, "0");
    text_printf(text, "e%+03d", point - 1);
  }
  free(digits);
  return 1;
}

static int put_array(struct text *text, VALUE array, int depth) {
  text_puts(text, "[");
  for (long i = 0; i < RARRAY_LEN(array); i++) { /* its end may move: to_s of an element is the program's */
    if (i > 0) text_puts(text, ",");
    if (!put_value(text, RARRAY_AREF(array, i), depth)) return 0;
  }
  text_puts(text, "]");
  return 1;
}

struct pairs {
  struct text *text;
  int depth, count, good;
};

static int put_pair(VALUE key, VALUE value, VALUE argument) {
  struct pairs *const pairs = (struct pairs *)argument;
  if (pairs->count++ > 0) text_puts(pairs->text, ",");
  if (NIL_P(key)) key = rb_str_new(NULL, 0);
  else if (SYMBOL_P(key)) key = rb_sym2str(key);
  pairs->good = put_string(pairs->text, rb_obj_as_string(key));
  text_puts(pairs->text, ":");
  if (pairs->good) pairs->good = put_value(pairs->text, value, pairs->depth);
  return pairs->good ? ST_CONTINUE : ST_STOP;
}

static int put_hash(struct text *text, VALUE hash, int depth) {
  struct pairs pairs = {text, depth, 0, 1};
  text_puts(text, "{");
  rb_hash_foreach(hash, put_pair, (VALUE)&pairs);
  text_puts(text, "}");
  return pairs.good;
}

static int put_value(struct text *text, VALUE value, int depth) {
  if (text_is_full(text)) return 1;
  if (depth > kDepthMax) return 0;
  RUBY_VM_CHECK_INTS(GET_EC());
  if (NIL_P(value)) {
    text_puts(text, "null");
    return 1;
  }
  switch (TYPE(value)) {
    case T_TRUE: text_puts(text, "true"); return 1;
    case T_FALSE: text_puts(text, "false"); return 1;
    case T_FIXNUM:
    case T_BIGNUM: sw_put_string(text, rb_int2str(value, 10)); return 1;
    case T_FLOAT: return put_float(text, RFLOAT_VALUE(value));
    case T_STRING: return put_string(text, value);
    case T_SYMBOL: return put_string(text, rb_sym2str(value));
    case T_ARRAY: return put_array(text, value, depth + 1);
    case T_HASH: return put_hash(text, value, depth + 1);
    default: return put_string(text, rb_obj_as_string(value));
  }
}

int sw_put_json(struct text *text, VALUE value) { return put_value(text, value, 0); }
