/* SPDX-FileCopyrightText: The sandbox-workers authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What the host is told of an error: the exception's class and text, and the calls that led to it. The calls are
 * noted when an exception that nothing in the cell will catch begins to unwind the stack (a patch calls
 * sw_note_death); perl itself keeps no traceback. */
#define PERL_CORE
#include "EXTERN.h"
#include "perl.h"

#include "driver.h"

#include <string.h>

/* More than the host shows of an error (docs/limits.md), so that it can say how much there was. */
enum { kFramesMax = 200, kMessageBytesMax = 1 << 20, kNameBytesMax = 1 << 16, kFramesBytesMax = 4 << 20 };

static struct text noted;
static long noted_line;

void sw_forget_death(void) {
  text_clear(&noted);
  noted.limit = kFramesBytesMax;
  noted_line = 0;
}

/* The innermost eval is the cell's own. */
static int nothing_catches(void) {
  dTHX;
  const CV *const cell = sw_cell_cv();
  if (cell == NULL) return 0;
  for (const PERL_SI *stack = PL_curstackinfo; stack != NULL; stack = stack->si_prev) {
    for (I32 i = stack->si_cxix; i >= 0; i--) {
      const PERL_CONTEXT *const context = &stack->si_cxstack[i];
      if (CxTYPE(context) == CXt_EVAL) return context->blk_eval.cv == cell;
    }
  }
  return 0;
}

static void note_place(const char *what, const COP *at) {
  dTHX;
  const char *const file = CopFILE(at) != NULL ? CopFILE(at) : "?";
  const long line = (long)CopLINE(at);
  if (noted_line == 0 && strcmp(file, sw_cell_file()) == 0) noted_line = line;
  text_puts(&noted, what);
  text_puts(&noted, file);
  text_printf(&noted, " line %ld\n", line);
}

void sw_note_death(void *exception) {
  dTHX;
  PERL_UNUSED_ARG(exception);
  if (!nothing_catches()) return;
  sw_forget_death();
  if (PL_curcop == NULL || PL_curcop == &PL_compiling) return;
  note_place("at ", PL_curcop);
  for (I32 level = 0; level < kFramesMax; level++) {
    const PERL_CONTEXT *const context = caller_cx(level, NULL);
    if (context == NULL) break;
    if (CxTYPE(context) == CXt_SUB) {
      SV *const name = cv_name(context->blk_sub.cv, NULL, 0);
      text_put_sv(&noted, name);
    } else {
      text_puts(&noted, "eval");
    }
    note_place(" called at ", context->blk_oldcop);
  }
}

/* The number after "FILE line " in a message of perl's. */
static long line_in(const struct text *message, const char *file) {
  char wanted[600];
  const int size = snprintf(wanted, sizeof wanted, " at %s line ", file);
  if (size < 0 || size >= (int)sizeof wanted) return 0;
  for (size_t i = 0; i + (size_t)size < message->size; i++) {
    if (memcmp(message->at + i, wanted, (size_t)size) != 0) continue;
    long line = 0;
    for (i += (size_t)size; i < message->size && message->at[i] >= '0' && message->at[i] <= '9' && line < 1 << 24; i++) {
      line = line * 10 + (message->at[i] - '0');
    }
    return line;
  }
  return 0;
}

static int contains(const struct text *text, const char *what) {
  return text->size > 0 && memmem(text->at, text->size, what, strlen(what)) != NULL;
}

struct description {
  SV *exception;
  struct text *message;
  int good;
};

static void put_message(void *argument) {
  dTHX;
  struct description *const description = argument;
  SV *const exception = description->exception;
  struct text *const message = description->message;
  if (!SvROK(exception)) {
    text_put_sv(message, exception);
    description->good = 1;
  } else if (sv_isobject(exception) && SvTYPE(SvRV(exception)) != SVt_PVCV) {
    description->good = sw_put_string_form(message, exception) || sw_put_dump(message, exception);
  } else {
    description->good = sw_put_json(message, exception);
    if (!description->good) {
      text_clear(message);
      description->good = sw_put_dump(message, exception);
    }
  }
}

void sw_describe_failure(struct failure *failure, SV *exception, int compiling) {
  dTHX;
  struct description description = {exception, &failure->message, 0};
  failure->message.limit = kMessageBytesMax;
  failure->name.limit = kNameBytesMax;
  text_put(&failure->frames, noted.at, noted.size);
  failure->line = noted_line;
  if (sv_isobject(exception)) {
    HV *const stash = SvSTASH(SvRV(exception));
    SV *const name = newSVhek(HvNAME_HEK(stash));
    text_put_sv(&failure->name, name);
    SvREFCNT_dec_NN(name);
  }
  if (sw_protect(put_message, &description) != 0 || !description.good) {
    text_clear(&failure->message);
    text_puts(&failure->message, "(the exception's text cannot be shown: making it failed)");
  }
  while (failure->message.size > 0 && failure->message.at[failure->message.size - 1] == '\n') failure->message.size--;
  if (failure->line == 0) failure->line = line_in(&failure->message, sw_cell_file());
  if (failure->name.size > 0) return;
  /* An error of the program's own, in BEGIN or in a module it uses, is none of its syntax. */
  const int is_syntax = compiling && !contains(&failure->message, "BEGIN failed--compilation aborted");
  text_puts(&failure->name, is_syntax ? "SyntaxError" : "PerlError");
}
