/* SPDX-FileCopyrightText: The sandbox-workers authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the driver know of one another. The driver is C throughout: nothing it needs goes by a name or
 * a method that a program could change. Include it after ruby.h. */
#ifndef SW_DRIVER_H
#define SW_DRIVER_H

#include <stddef.h>

/* text.c: bytes that grow, up to `limit` where one is set. `failed`: memory ran out, and the text is cut. */
struct text {
  char *at;
  size_t size, room, limit;
  int failed;
};
void text_put(struct text *text, const char *bytes, size_t size);
void text_puts(struct text *text, const char *string);
void text_printf(struct text *text, const char *format, ...)
    __attribute__((__format__(__printf__, 2, 3)));
/* Bytes as valid UTF-8: what is not becomes U+FFFD. */
void text_put_utf8(struct text *text, const char *bytes, size_t size);
/* The same as a string of JSON. */
void text_put_json(struct text *text, const char *bytes, size_t size);
void text_clear(struct text *text);
void text_free(struct text *text);
int text_is_full(const struct text *text);

/* cell.c */
enum ending { kReturned, kRaised, kExited };
struct cell {
  VALUE code, file; /* strings */
};
/* Runs a cell. kReturned: *result is its value; kRaised: the exception; kExited: sw_exit_status. */
enum ending sw_run_cell(const struct cell *cell, VALUE *result);
extern int sw_exit_status;
/* Calls `function` so that whatever happens in it ends here. Returns as sw_run_cell does. */
enum ending sw_protect(VALUE (*function)(VALUE), VALUE argument, VALUE *result);
void sw_start_cells(void);

/* values.c */
enum value_kind { kNoValue, kTextValue, kJsonValue };
/* The value a cell shows. Runs the program's code: an exception of it goes through. */
enum value_kind sw_show_value(struct text *text, VALUE value);
/* A string's characters as UTF-8, whatever its encoding. */
void sw_put_string(struct text *text, VALUE string);

/* json.c: 0 if the value cannot be JSON as it is. */
int sw_put_json(struct text *text, VALUE value);

/* errors.c */
struct failure {
  struct text name, message, frames; /* frames: lines, each with its line feed */
  long line;                         /* 0: unknown */
};
void sw_describe_failure(struct failure *failure, VALUE exception, VALUE file);

/* clock.c */
extern volatile int sw_interrupt, sw_stop_flag, sw_timer_flag; /* raised by the host */
void sw_start_clock(void);
void sw_forget_timer(void);

#endif
