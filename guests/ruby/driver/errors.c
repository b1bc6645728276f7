/* SPDX-FileCopyrightText: The sandbox-workers authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Exceptions for people: class, message, where it was raised and by way of what, and what caused it, as Ruby prints it
 * but without colours and without frames of Ruby's own. */
#include <ruby.h>
#include <ruby/encoding.h>

#include <stdlib.h>
#include <string.h>

#include "internal/eval.h"

#include "driver.h"

/* More than the host shows of an error (docs/limits.md), so that it can say how much there was. */
enum { kCausesMax = 10, kFramesMax = 120, kMessageBytesMax = 1 << 20, kFramesBytesMax = 4 << 20 };

static VALUE call_message(VALUE exception) { return rb_obj_as_string(rb_funcall(exception, rb_intern("message"), 0)); }
static VALUE call_backtrace(VALUE exception) { return rb_get_backtrace(exception); }
static VALUE class_name(VALUE exception) { return rb_class_path(rb_class_real(CLASS_OF(exception))); }
static VALUE call_cause(VALUE exception) { return rb_attr_get(exception, rb_intern("cause")); }

static void put_protected(struct text *text, VALUE (*function)(VALUE), VALUE exception, const char *instead) {
  VALUE string = Qnil;
  if (sw_protect(function, exception, &string) == kReturned && RB_TYPE_P(string, T_STRING)) sw_put_string(text, string);
  else text_puts(text, instead);
}

static int begins_with(VALUE string, const char *prefix) {
  const size_t size = strlen(prefix);
  return (size_t)RSTRING_LEN(string) >= size && memcmp(RSTRING_PTR(string), prefix, size) == 0;
}

static int is_shown(VALUE frame) { return RB_TYPE_P(frame, T_STRING) && !begins_with(frame, "<internal:"); }

/* N of "FILE:N:…", if `string` begins with the cell's name. */
static long line_in(VALUE string, VALUE file) {
  const long size = RSTRING_LEN(file);
  if (RSTRING_LEN(string) <= size + 1 || memcmp(RSTRING_PTR(string), RSTRING_PTR(file), (size_t)size) != 0) return 0;
  if (RSTRING_PTR(string)[size] != ':') return 0;
  const long line = strtol(RSTRING_PTR(string) + size + 1, NULL, 10);
  return line > 0 ? line : 0;
}

struct report {
  struct failure *failure;
  VALUE file;
};

/* "first frame: message (Class)", then the other frames. Makes no object: memory may be full. */
static void put_report(const struct report *report, VALUE exception, const struct text *name, const struct text *message) {
  struct text *const out = &report->failure->frames;
  VALUE trace = Qnil;
  const enum ending ending = sw_protect(call_backtrace, exception, &trace);
  const long frames = ending == kReturned && RB_TYPE_P(trace, T_ARRAY) ? RARRAY_LEN(trace) : 0;
  long shown = 0;
  long count = 0;
  for (long i = 0; i < frames; i++) count += is_shown(RARRAY_AREF(trace, i));
  for (long i = 0; i < frames; i++) {
    const VALUE frame = RARRAY_AREF(trace, i);
    if (!is_shown(frame)) continue;
    if (report->failure->line == 0) report->failure->line = line_in(frame, report->file);
    ++shown;
    if (count > kFramesMax && shown == kFramesMax / 2 + 1) {
      text_printf(out, "\t ... %ld levels...\n", count - kFramesMax);
    }
    if (count > kFramesMax && shown > kFramesMax / 2 && shown <= count - kFramesMax / 2) continue;
    if (shown > 1) text_puts(out, "\tfrom ");
    sw_put_string(out, frame);
    if (shown == 1) text_puts(out, ": ");
    if (shown == 1) text_put(out, message->at, message->size);
    if (shown == 1) {
      text_puts(out, " (");
      text_put(out, name->at, name->size);
      text_puts(out, ")");
    }
    text_puts(out, "\n");
  }
  if (shown == 0) {
    text_put(out, message->at, message->size);
    text_puts(out, " (");
    text_put(out, name->at, name->size);
    text_puts(out, ")\n");
  }
}

static void put_causes(const struct report *report, VALUE exception) {
  VALUE seen[kCausesMax];
  for (int depth = 0; depth < kCausesMax; depth++) {
    seen[depth] = exception;
    VALUE cause = Qnil;
    if (sw_protect(call_cause, exception, &cause) != kReturned || NIL_P(cause)) return;
    if (!RTEST(rb_obj_is_kind_of(cause, rb_eException))) return;
    for (int i = 0; i <= depth; i++) {
      if (seen[i] == cause) return;
    }
    struct text name = {0}, message = {.limit = kMessageBytesMax};
    put_protected(&name, class_name, cause, "Exception");
    put_protected(&message, call_message, cause, "(its message failed)");
    put_report(report, cause, &name, &message);
    text_free(&name);
    text_free(&message);
    exception = cause;
  }
}

/* A syntax error has no frame; its message begins with where it is. */
static void find_line_in_message(struct failure *failure, VALUE exception, VALUE file) {
  if (failure->line != 0 || !RTEST(rb_obj_is_kind_of(exception, rb_eSyntaxError))) return;
  VALUE message = Qnil;
  if (sw_protect(call_message, exception, &message) == kReturned) failure->line = line_in(message, file);
}

void sw_describe_failure(struct failure *failure, VALUE exception, VALUE file) {
  if (!RTEST(rb_obj_is_kind_of(exception, rb_eException))) {
    text_puts(&failure->name, "fatal");
    text_puts(&failure->message, "the cell was ended in an unusual way");
    return;
  }
  const struct report report = {failure, file};
  failure->message.limit = kMessageBytesMax;
  failure->frames.limit = kFramesBytesMax;
  put_protected(&failure->name, class_name, exception, "Exception");
  put_protected(&failure->message, call_message, exception, "(its message failed)");
  put_report(&report, exception, &failure->name, &failure->message);
  find_line_in_message(failure, exception, file);
  put_causes(&report, exception);
}
