/* SPDX-FileCopyrightText: The sandbox-workers authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The value that a cell shows. */
#include <ruby.h>
#include <ruby/encoding.h>

#include "driver.h"

static VALUE encode(VALUE string) {
  return rb_str_encode(string, rb_enc_from_encoding(rb_utf8_encoding()), ECONV_INVALID_REPLACE | ECONV_UNDEF_REPLACE,
                       Qnil);
}

void sw_put_string(struct text *text, VALUE string) {
  const rb_encoding *const encoding = rb_enc_get(string);
  const int is_bytes = encoding == rb_utf8_encoding() || encoding == rb_usascii_encoding() ||
                       encoding == rb_ascii8bit_encoding();
  VALUE encoded;
  if (!is_bytes && sw_protect(encode, string, &encoded) == kReturned) string = encoded;
  text_put_utf8(text, RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
  RB_GC_GUARD(string);
}

struct attempt {
  struct text *text;
  VALUE value;
};

static VALUE put_json(VALUE argument) {
  const struct attempt *const attempt = (const struct attempt *)argument;
  return sw_put_json(attempt->text, attempt->value) ? Qtrue : Qfalse;
}

/* An object of a class below BasicObject, which need not know how to show itself. */
static int is_bare(VALUE value) {
  return !RTEST(rb_class_inherited_p(CLASS_OF(value), rb_mKernel)) && !rb_method_boundp(CLASS_OF(value), rb_intern("inspect"), 0);
}

enum value_kind sw_show_value(struct text *text, VALUE value) {
  if (NIL_P(value)) return kNoValue;
  if (RB_TYPE_P(value, T_ARRAY) || RB_TYPE_P(value, T_HASH)) {
    struct attempt attempt = {text, value};
    VALUE good = Qfalse;
    const enum ending ending = sw_protect(put_json, (VALUE)&attempt, &good);
    if (ending == kReturned && RTEST(good)) return kJsonValue;
    /* Being asked to stop is no reason to go on in another way. */
    if (ending == kRaised && RTEST(rb_obj_is_kind_of(good, rb_eInterrupt))) rb_exc_raise(good);
    text_clear(text);
  }
  if (is_bare(value)) sw_put_string(text, rb_any_to_s(value));
  else sw_put_string(text, rb_inspect(value));
  return kTextValue;
}
