/* SPDX-FileCopyrightText: The sandbox-workers authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What the host calls: sw_boot once, at bake; then sw_fresh and sw_run for each cell; sw_finish when the interpreter
 * is not used again. What a cell ends with goes out through the import sw.answer: a line of JSON, a line feed, and the
 * value's text (include/sandbox_workers/engine/language.h has the form).
 *
 * A request lies in the buffer that sw_buffer gives: numbers of 32 bits, little-endian, and strings as a number of
 * bytes and the bytes:
 *   the largest value wanted, code, file name, folder to go to (or nothing), count of arguments, arguments, count of
 *   environment entries, names and values in turn. */
#include <ruby.h>
#include <ruby/encoding.h>
#include <ruby/io.h>

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "eval_intern.h"
#include "internal/time.h"
#include "vm_core.h"

#include "driver.h"

#define EXPORT(name) __attribute__((export_name(#name), used)) name

__attribute__((import_module("sw"), import_name("answer"))) void host_answer(const char *at, size_t size);

enum { kKeptBytesMax = 1 << 16 };

void rb_ec_exec_end_proc(rb_execution_context_t *ec);
void rb_reset_random_seed(void);

static char *buffer;
static size_t buffer_room;
static unsigned cells;
static struct text answer, shown;
static struct failure failure;
static VALUE standard_output, standard_error, standard_input; /* as they were at boot */
static VALUE last_exception;                                  /* what the last cell ended with, or nil */
static VALUE no_file;                                         /* "" */

void *EXPORT(sw_buffer)(size_t size) {
  if (size > buffer_room) {
    free(buffer);
    buffer = malloc(size);
    buffer_room = buffer == NULL ? 0 : size;
  }
  return buffer;
}

/* Words the host raises while a cell runs. Each is an int. */
volatile int *EXPORT(sw_stop_flag_address)(void) { return &sw_stop_flag; }
volatile int *EXPORT(sw_timer_flag_address)(void) { return &sw_timer_flag; }
volatile int *EXPORT(sw_interrupt_address)(void) { return &sw_interrupt; }

/* Requests */

struct reader {
  const char *at, *end;
};

static uint32_t read_number(struct reader *in) {
  uint32_t value = 0;
  if (in->end - in->at >= 4) {
    memcpy(&value, in->at, 4);
    in->at += 4;
  }
  return value;
}

static const char *read_bytes(struct reader *in, size_t *size) {
  *size = read_number(in);
  if ((size_t)(in->end - in->at) < *size) *size = 0;
  const char *const at = in->at;
  in->at += *size;
  return at;
}

static VALUE read_string(struct reader *in) {
  size_t size;
  const char *const at = read_bytes(in, &size);
  return rb_enc_str_new(at, (long)size, rb_utf8_encoding());
}

/* For the C library; the caller frees it. */
static char *read_c_string(struct reader *in) {
  size_t size;
  const char *const at = read_bytes(in, &size);
  char *const string = malloc(size + 1);
  if (string == NULL) return NULL;
  memcpy(string, at, size);
  string[size] = '\0';
  return string;
}

static VALUE read_code(struct reader *in) {
  size_t size;
  const char *at = read_bytes(in, &size);
  if (size >= 3 && memcmp(at, "\xEF\xBB\xBF", 3) == 0) at += 3, size -= 3;
  return rb_enc_str_new(at, (long)size, rb_utf8_encoding());
}

static void set_arguments(struct reader *in, VALUE file) {
  const uint32_t count = read_number(in);
  if (count == 0) {
    if (cells == 0) rb_ary_clear(rb_get_argv());
    ruby_set_script_name(file);
    return;
  }
  rb_ary_clear(rb_get_argv());
  for (uint32_t i = 0; i < count; i++) {
    const VALUE argument = read_string(in);
    if (i > 0) rb_ary_push(rb_get_argv(), argument);
    else ruby_set_script_name(argument);
  }
}

static void change_folder(struct reader *in) {
  char *const folder = read_c_string(in);
  if (folder != NULL && *folder != '\0') (void)chdir(folder); /* it may be gone */
  free(folder);
}

/* The environment becomes what the request has; ENV is a view of it. */
static void set_environment(struct reader *in) {
  const uint32_t count = read_number(in);
  if (count == 0 && (environ == NULL || *environ == NULL)) return;
  clearenv();
  for (uint32_t i = 0; i < count; i++) {
    char *const name = read_c_string(in);
    char *const value = read_c_string(in);
    if (name != NULL && value != NULL) setenv(name, value, 1);
    free(name);
    free(value);
  }
  ruby_reset_timezone(getenv("TZ"));
}

/* What the cell before did not read of its input is gone. */
static void renew_input(void) {
  rb_io_t *const in = RFILE(standard_input)->fptr;
  if (in != NULL && in->fd >= 0) in->rbuf.len = 0;
}

struct preparation {
  struct reader *in;
  struct cell *cell;
};

static VALUE prepare(VALUE argument) {
  const struct preparation *const preparation = (const struct preparation *)argument;
  struct reader *const in = preparation->in;
  preparation->cell->code = read_code(in);
  preparation->cell->file = read_string(in);
  change_folder(in);
  set_arguments(in, preparation->cell->file);
  set_environment(in);
  renew_input();
  return Qnil;
}

/* Answers */

static void put_failure(void) {
  text_puts(&answer, "\"error\":{\"name\":");
  text_put_json(&answer, failure.name.at, failure.name.size);
  text_puts(&answer, ",\"message\":");
  text_put_json(&answer, failure.message.at, failure.message.size);
  text_puts(&answer, ",\"traceback\":[");
  const char *at = failure.frames.at;
  const char *const end = at + failure.frames.size;
  while (at < end) {
    const char *const line_end = memchr(at, '\n', (size_t)(end - at));
    text_put_json(&answer, at, (size_t)((line_end == NULL ? end : line_end) - at));
    at = line_end == NULL ? end : line_end + 1;
    if (at < end) text_puts(&answer, ",");
  }
  text_puts(&answer, "]");
  if (failure.line > 0) text_printf(&answer, ",\"lineNumber\":%ld", failure.line);
  text_puts(&answer, "},");
}

static void put_folder(void) {
  char folder[4097];
  text_puts(&answer, "\"cwd\":");
  if (getcwd(folder, sizeof folder) == NULL) strcpy(folder, "/");
  text_put_json(&answer, folder, strlen(folder));
}

static void clear_failure(void) {
  text_clear(&failure.name);
  text_clear(&failure.message);
  text_clear(&failure.frames);
  failure.line = 0;
}

static void fail(const char *name, const char *message) {
  clear_failure();
  text_puts(&failure.name, name);
  text_puts(&failure.message, message);
}

static void shrink(struct text *text) {
  if (text->room > kKeptBytesMax) text_free(text);
}

struct showing {
  VALUE value;
  enum value_kind kind;
};

static VALUE show(VALUE argument) {
  struct showing *const showing = (struct showing *)argument;
  showing->kind = sw_show_value(&shown, showing->value);
  return Qnil;
}

struct outcome {
  enum ending ending;
  VALUE result; /* the value, or the exception */
};

static void send_answer(struct outcome *outcome, VALUE file) {
  struct showing showing = {outcome->result, kNoValue};
  clear_failure();
  if (outcome->ending == kReturned) outcome->ending = sw_protect(show, (VALUE)&showing, &outcome->result);
  if (outcome->ending == kRaised) sw_describe_failure(&failure, outcome->result, file);
  text_clear(&answer);
  text_puts(&answer, "{");
  if (shown.failed) fail("NoMemoryError", "failed to allocate memory for the value's text");
  if (failure.name.size > 0) put_failure();
  else if (showing.kind != kNoValue) text_puts(&answer, showing.kind == kJsonValue ? "\"value\":\"json\"," : "\"value\":\"text\",");
  if (outcome->ending == kExited) text_printf(&answer, "\"exit\":%d,", sw_exit_status & 0xFF);
  put_folder();
  text_puts(&answer, "}\n");
  if (failure.name.size == 0) text_put(&answer, shown.at, shown.size);
  if (answer.failed) {
    text_free(&shown);
    text_free(&answer);
    text_puts(&answer, "{\"error\":{\"name\":\"NoMemoryError\",\"message\":\"no memory is left for the answer\"}}\n");
  }
  host_answer(answer.at, answer.size);
  shrink(&answer);
  shrink(&shown);
}

/* Also where the program has made them buffer. */
static VALUE flush_streams(VALUE unused) {
  (void)unused;
  rb_io_flush(standard_output);
  rb_io_flush(standard_error);
  return Qnil;
}

static void run(struct reader *in) {
  VALUE ignored;
  struct cell cell = {Qnil, Qnil};
  struct preparation preparation = {in, &cell};
  struct outcome outcome;
  text_clear(&shown);
  shown.limit = read_number(in);
  outcome.ending = sw_protect(prepare, (VALUE)&preparation, &outcome.result);
  if (outcome.ending == kReturned) outcome.ending = sw_run_cell(&cell, &outcome.result);
  cells++;
  last_exception = outcome.ending == kReturned ? Qnil : outcome.result;
  sw_protect(flush_streams, Qnil, &ignored);
  send_answer(&outcome, NIL_P(cell.file) ? no_file : cell.file);
  sw_protect(flush_streams, Qnil, &ignored);
  sw_forget_timer();
  sw_stop_flag = 0;
  RB_GC_GUARD(cell.code);
  RB_GC_GUARD(cell.file);
  RB_GC_GUARD(outcome.result);
}

void EXPORT(sw_run)(size_t size) {
  RUBY_INIT_STACK;
  struct reader in = {buffer, buffer + (size <= buffer_room ? size : 0)};
  run(&in);
  if (buffer_room > kKeptBytesMax) {
    free(buffer);
    buffer = NULL;
    buffer_room = 0;
  }
}

/* The first call after the image or a saved state: random numbers must differ from every other copy's. */
void EXPORT(sw_fresh)(void) { rb_reset_random_seed(); }

static VALUE run_end_blocks(VALUE unused) {
  (void)unused;
  rb_set_errinfo(last_exception); /* $! */
  rb_ec_exec_end_proc(GET_EC());
  return Qnil;
}

static VALUE finalize(VALUE unused) {
  (void)unused;
  rb_objspace_call_finalizer(GET_VM()->objspace);
  return Qnil;
}

/* Is a file open that may have something to write? The streams and the root folder are the first four. */
static int has_open_files(void) {
  for (int descriptor = 4; descriptor < 64; descriptor++) {
    if (fcntl(descriptor, F_GETFL) >= 0) return 1; /* F_GETFD never fails in this C library */
  }
  return 0;
}

/* As at the end of a program: at_exit blocks in reverse order, then files are written. Returns the exit status that
 * they set, or -1: an error in one of them, which they have shown, is 1. */
int EXPORT(sw_finish)(void) {
  RUBY_INIT_STACK;
  VALUE result, ignored;
  sw_exit_status = -1;
  sw_protect(run_end_blocks, Qnil, &result);
  const VALUE exception = rb_errinfo();
  if (exception == last_exception) {
    /* nothing of theirs */
  } else if (RTEST(rb_obj_is_kind_of(exception, rb_eSystemExit))) {
    const VALUE status = rb_attr_get(exception, rb_intern("status"));
    if (FIXNUM_P(status)) sw_exit_status = FIX2INT(status) & 0xFF;
  } else if (!NIL_P(exception)) {
    sw_exit_status = 1;
  }
  rb_set_errinfo(Qnil);
  sw_protect(flush_streams, Qnil, &ignored);
  if (has_open_files()) sw_protect(finalize, Qnil, &ignored);
  sw_forget_timer();
  sw_stop_flag = 0;
  return sw_exit_status;
}

/* Boot */

static VALUE set_up(VALUE unused) {
  (void)unused;
  standard_input = rb_stdin;
  standard_output = rb_stdout;
  standard_error = rb_stderr;
  rb_gc_register_mark_object(standard_input);
  rb_gc_register_mark_object(standard_output);
  rb_gc_register_mark_object(standard_error);
  last_exception = Qnil;
  rb_gc_register_address(&last_exception);
  no_file = rb_str_new(NULL, 0);
  rb_gc_register_mark_object(no_file);
  /* What is printed is out at once: it may be the last thing before a limit, and the two streams stay in order. */
  rb_funcall(rb_stdout, rb_intern("sync="), 1, Qtrue);
  rb_funcall(rb_stderr, rb_intern("sync="), 1, Qtrue);
  sw_start_clock();
  sw_start_cells();
  return Qnil;
}

static int start(void) {
  static char *arguments[] = {(char *)"ruby", (char *)"-EUTF-8", (char *)"--disable-gems", (char *)"-e0", NULL};
  static char *no_environment[] = {NULL};
  int count = 4;
  char **argv = arguments;
  environ = no_environment;
  setlocale(LC_CTYPE, "C.UTF-8");
  ruby_sysinit(&count, &argv);
  RUBY_INIT_STACK;
  if (ruby_setup() != 0) return 1;
  ruby_options(count, argv);
  return 0;
}

static VALUE run_boot_code(VALUE size) {
  return rb_eval_string(RSTRING_PTR(rb_enc_str_new(buffer, (long)size, rb_utf8_encoding())));
}

/* `size` bytes of Ruby in the buffer. Answers what went wrong, or nothing. */
int EXPORT(sw_boot)(size_t size) {
  RUBY_INIT_STACK;
  VALUE result = Qnil;
  if (start() != 0) return 1;
  enum ending ending = sw_protect(set_up, Qnil, &result);
  if (ending == kReturned) ending = sw_protect(run_boot_code, (VALUE)size, &result);
  if (ending == kReturned) return 0;
  clear_failure();
  sw_describe_failure(&failure, result, rb_str_new_cstr("boot"));
  host_answer(failure.frames.at, failure.frames.size);
  return 1;
}

/* Last at bake: nothing of the cells that warmed the interpreter up is left, and nothing to collect. */
void EXPORT(sw_settle)(void) {
  RUBY_INIT_STACK;
  cells = 0;
  last_exception = Qnil;
  (void)chdir("/workspace");
  rb_gc_start();
  rb_gc_start();
}
