/* SPDX-FileCopyrightText: The sandbox-workers authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Runs cells in the binding of the top level, where the local variables of one are there for the next. */
#include <ruby.h>
#include <ruby/encoding.h>

#include <string.h>

#include "eval_intern.h"
#include "internal/eval.h"
#include "internal/ruby_parser.h"
#include "internal/string.h"
#include "vm_core.h"

#include "driver.h"

VALUE rb_f_eval(int argc, const VALUE *argv, VALUE self); /* vm_eval.c; what Binding#eval calls */

int sw_exit_status;

static VALUE binding;       /* of the top level */
static VALUE string_io_new; /* a Method, for DATA */

/* The cell that runs: where exit! goes. */
static struct {
  rb_execution_context_t *ec;
  struct rb_vm_tag *tag;
} running;
static int exiting;

/* exit!: to the end of the cell, past rescue and ensure. A fiber's stack cannot be left that way, and it ends as by
 * exit. */
NORETURN(void sw_exit(int status));
void sw_exit(int status) {
  rb_execution_context_t *const ec = GET_EC();
  if (running.tag == NULL || ec != running.ec) rb_exit(status);
  sw_exit_status = status;
  exiting = 1;
  ec->tag = running.tag;
  ec->errinfo = Qnil;
  EC_JUMP_TAG(ec, TAG_FATAL);
}

static VALUE status_of(VALUE exception) { return rb_attr_get(exception, rb_intern("status")); }

static enum ending ending_of(int how, VALUE *result) {
  VALUE exception = rb_errinfo();
  rb_set_errinfo(Qnil);
  *result = exception;
  if (exiting) {
    exiting = 0;
    return kExited;
  }
  /* return, break and the like that found nothing to leave */
  if (!RTEST(rb_obj_is_kind_of(exception, rb_eException))) {
    *result = exception = rb_vm_make_jump_tag_but_local_jump(how, Qundef);
  }
  if (!RTEST(rb_obj_is_kind_of(exception, rb_eSystemExit))) return kRaised;
  int state = 0;
  const VALUE status = rb_protect(status_of, exception, &state);
  if (state != 0) rb_set_errinfo(Qnil);
  sw_exit_status = FIXNUM_P(status) ? FIX2INT(status) : 1;
  return kExited;
}

enum ending sw_protect(VALUE (*function)(VALUE), VALUE argument, VALUE *result) {
  int state = 0;
  *result = rb_protect(function, argument, &state);
  return state == 0 ? kReturned : ending_of(state, result);
}

/* DATA */

static VALUE compile(VALUE code) {
  const VALUE parser = rb_parser_new();
  rb_parser_set_context(parser, NULL, FALSE); /* errors are collected, not printed */
  rb_ast_t *const tree = rb_parser_compile_string_path(parser, rb_fstring_lit("-"), code, 1);
  const int is_good = tree->body.root != NULL;
  rb_ast_dispose(tree);
  return is_good ? Qtrue : Qfalse;
}

static int compiles(VALUE code) {
  VALUE good = Qfalse;
  const VALUE verbose = ruby_verbose;
  ruby_verbose = Qnil; /* warnings come when the cell runs */
  const enum ending ending = sw_protect(compile, code, &good);
  ruby_verbose = verbose;
  return ending == kReturned && RTEST(good);
}

/* Where the text after __END__ begins; -1 if nothing ends the program. The word may also be inside a string or a
 * comment; then what comes before it is no whole program. After the real one anything may stand. */
static long data_begin(VALUE code) {
  static const char kWord[] = "__END__";
  const size_t length = sizeof kWord - 1;
  const char *const begin = RSTRING_PTR(code);
  const char *const end = begin + RSTRING_LEN(code);
  for (const char *line = begin; line != NULL && line < end;) {
    const char *next = memchr(line, '\n', (size_t)(end - line));
    const char *const line_end = next == NULL ? end : next;
    if (next != NULL) ++next;
    const size_t size = (size_t)(line_end - line);
    if ((size == length || (size == length + 1 && line_end[-1] == '\r')) && memcmp(line, kWord, length) == 0) {
      const VALUE head = rb_enc_str_new(begin, line - begin, rb_utf8_encoding());
      if (compiles(head)) return next == NULL ? RSTRING_LEN(code) : next - begin;
    }
    line = next;
  }
  return -1;
}

struct data {
  VALUE code;
  long begin;
};

static VALUE set_data(VALUE argument) {
  const struct data *const data = (const struct data *)argument;
  /* As a file that has been read up to there: rewind goes to the program's own beginning. */
  const VALUE stream = rb_method_call(1, &data->code, string_io_new);
  rb_funcall(stream, rb_intern("pos="), 1, LONG2NUM(data->begin));
  if (rb_const_defined_at(rb_cObject, rb_intern("DATA"))) rb_const_remove(rb_cObject, rb_intern("DATA"));
  rb_const_set(rb_cObject, rb_intern("DATA"), stream);
  return Qnil;
}

/* Cells */

static VALUE evaluate(VALUE argument) {
  const struct cell *const cell = (const struct cell *)argument;
  running.ec = GET_EC();
  running.tag = running.ec->tag;
  const VALUE arguments[] = {cell->code, binding, cell->file, INT2FIX(1)};
  return rb_f_eval(4, arguments, Qnil);
}

enum ending sw_run_cell(const struct cell *cell, VALUE *result) {
  const long begin = data_begin(cell->code);
  if (begin >= 0) {
    struct data data = {cell->code, begin};
    const enum ending ending = sw_protect(set_data, (VALUE)&data, result);
    if (ending != kReturned) return ending;
  }
  const enum ending ending = sw_protect(evaluate, (VALUE)cell, result);
  running.tag = NULL;
  return ending;
}

void sw_start_cells(void) {
  binding = rb_const_get(rb_cObject, rb_intern("TOPLEVEL_BINDING"));
  rb_gc_register_mark_object(binding);
  rb_require("stringio");
  string_io_new = rb_obj_method(rb_const_get(rb_cObject, rb_intern("StringIO")), ID2SYM(rb_intern("new")));
  rb_gc_register_mark_object(string_io_new);
}
