/* SPDX-FileCopyrightText: The sandbox-workers authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the driver know of one another. The driver is C throughout: nothing it needs goes by a name
 * that a program could change. Include it after perl.h. */
#ifndef SW_DRIVER_H
#define SW_DRIVER_H

#include <stddef.h>

/* text.c: bytes that grow, up to `limit` where one is set. When memory runs out the text is cut and `failed` is
 * set. */
struct text {
  char *at;
  size_t size, room, limit;
  int failed;
};
int text_is_full(const struct text *text);
void text_put(struct text *text, const char *bytes, size_t size);
void text_puts(struct text *text, const char *string);
void text_printf(struct text *text, const char *format, ...)
    __attribute__((__format__(__printf__, 2, 3)));
/* A scalar's characters as valid UTF-8: what Unicode does not have becomes U+FFFD. */
void text_put_sv(struct text *text, SV *sv);
/* The same as a string of JSON. */
void text_put_json_sv(struct text *text, SV *sv);
void text_put_json(struct text *text, const char *utf8, size_t size);
void text_clear(struct text *text);
void text_free(struct text *text);
/* Memory that is kept back for the time when a program has taken all there is. */
void sw_keep_reserve(void);
void sw_release_reserve(void);
int sw_has_reserve(void);

/* cell.c */
struct cell {
  SV *code;
  const char *file; /* as __FILE__ and messages name it */
};
enum ending { kReturned, kDied, kNotCompiled, kExited, kOutOfMemory };
/* Runs a cell in list context. `values` gets what its last statement gave. */
enum ending sw_run_cell(const struct cell *cell, AV *values);
/* Calls `function` so that whatever happens in it ends here: 0, or 1 when it died (with $@), or 2 when it exited.
 */
int sw_protect(void (*function)(void *), void *argument);
/* Where the cell in progress is, for errors.c. */
CV *sw_cell_cv(void);
const char *sw_cell_file(void);

/* lexicals.c: file-scoped variables, from cell to cell */
void sw_lexicals_offer(void);
void sw_lexicals_keep(CV *cell);
void sw_lexicals_drop(void);

/* errors.c */
struct failure {
  struct text name, message, frames; /* frames: lines, each with its line feed */
  long line;                         /* 0: unknown */
};
void sw_forget_death(void);
void sw_describe_failure(struct failure *failure, SV *exception, int compiling);

/* values.c */
enum value_kind { kNoValue, kTextValue, kJsonValue };
/* The value a cell shows. May run the program's code: call it protected. */
enum value_kind sw_show_values(struct text *text, AV *values);
int sw_put_json(struct text *text, SV *value);
/* A value as Data::Dumper writes it; 0 when that fails. */
int sw_put_dump(struct text *text, SV *value);
int sw_put_string_form(struct text *text, SV *object);
void sw_set_dumper(SV *code);

/* clock.c: alarms */
extern volatile int sw_alarm_flag; /* raised by the host, with PL_sig_pending */
void sw_ring_alarm(void);
void sw_forget_alarm(void);

#endif
