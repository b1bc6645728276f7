/* SPDX-FileCopyrightText: The sandbox-workers authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What the host calls: sw_boot once, at bake; then sw_fresh and sw_run for each cell; sw_finish when the interpreter
 * is not used again. What a cell ends with goes out through the import sw.answer: a line of JSON, a line feed, and the
 * value's text (src/engine/language.h has the form).
 *
 * A request lies in the buffer that sw_buffer gives: numbers of 32 bits, little-endian, and strings as a number of
 * bytes and the bytes:
 *   the largest value wanted, code, file name, folder to go to (or nothing), count of arguments, arguments, count of environment entries, names and values in turn. */
#define PERL_CORE
#include "EXTERN.h"
#include "perl.h"
#include "XSUB.h"

#include "driver.h"
#include "perliol.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#undef malloc
#undef realloc
#undef free

#define EXPORT(name) __attribute__((export_name(#name), used)) name

extern void xs_init(pTHX);
void sw_install_cell_hooks(void);

__attribute__((import_module("sw"), import_name("answer"))) void host_answer(const char *at, size_t size);

enum { kKeptBytesMax = 1 << 16, kExceptionBytesMax = 2 << 20, kRoomForACell = 1 << 18 };

static char *buffer;
static size_t buffer_room;
static volatile int stop_flag; /* raised by the host, with PL_sig_pending: the run is to end */
static int stopped;            /* this cell has been told */
static unsigned cells;
static struct text answer, shown;
static struct failure failure;

void *EXPORT(sw_buffer)(size_t size) {
  if (size > buffer_room) {
    free(buffer);
    buffer = malloc(size);
    if (buffer == NULL && sw_has_reserve()) {
      sw_release_reserve();
      buffer = malloc(size);
    }
    buffer_room = buffer == NULL ? 0 : size;
  }
  return buffer;
}

/* Words the host raises while a cell runs. Each is an int. */
volatile int *EXPORT(sw_stop_flag)(void) { return &stop_flag; }
volatile int *EXPORT(sw_alarm_flag_address)(void) { return &sw_alarm_flag; }
volatile int *EXPORT(sw_pending_flag)(void) { return &PL_sig_pending; }

static void at_pending_signal(pTHX) {
  if (stop_flag) {
    stop_flag = 0;
    PL_sig_pending = 0;
    stopped = 1;
    Perl_croak(aTHX_ "Interrupted: the run has reached its limit\n");
  }
  if (sw_alarm_flag) sw_ring_alarm();
  Perl_despatch_signals(aTHX);
}

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

static const char *read_string(struct reader *in, size_t *size) {
  *size = read_number(in);
  if ((size_t)(in->end - in->at) < *size) *size = 0;
  const char *const at = in->at;
  in->at += *size;
  return at;
}

static SV *read_sv(struct reader *in) {
  dTHX;
  size_t size;
  const char *const at = read_string(in, &size);
  return newSVpvn_utf8(at, size, !is_utf8_invariant_string((const U8 *)at, size));
}

/* A byte order mark goes; a text whose first line ends as on Windows has all its lines so. */
static SV *read_code(struct reader *in) {
  dTHX;
  size_t size;
  const char *at = read_string(in, &size);
  if (size >= 3 && memcmp(at, "\xEF\xBB\xBF", 3) == 0) at += 3, size -= 3;
  SV *const code = newSVpvn_utf8(at, size, 1);
  const char *const line_end = memchr(at, '\n', size);
  if (line_end == NULL || line_end == at || line_end[-1] != '\r') return code;
  char *to = SvPVX(code);
  for (size_t i = 0; i < size; i++) {
    if (at[i] != '\r' || i + 1 == size || at[i + 1] != '\n') *to++ = at[i];
  }
  *to = '\0';
  SvCUR_set(code, (STRLEN)(to - SvPVX(code)));
  return code;
}

/* Programs say -w in their first line, "#!/usr/bin/perl -w", which perl looks at although it was started otherwise. */
static int wants_warnings(SV *code) {
  dTHX;
  const char *at = SvPVX(code);
  const char *const end = SvEND(code);
  if (end - at < 2 || at[0] != '#' || at[1] != '!') return 0;
  const char *const line_end = memchr(at, '\n', (size_t)(end - at));
  const size_t size = (size_t)((line_end == NULL ? end : line_end) - at);
  const char *const name = memmem(at, size, "perl", 4);
  return name != NULL && memmem(name, size - (size_t)(name - at), " -w", 3) != NULL;
}

static void set_arguments(struct reader *in, const char *file) {
  dTHX;
  const uint32_t count = read_number(in);
  SV *const zero = GvSV(gv_fetchpvs("0", GV_ADD | GV_NOTQUAL, SVt_PV));
  AV *const argv = GvAVn(gv_fetchpvs("ARGV", GV_ADD | GV_NOTQUAL, SVt_PVAV));
  if (count == 0) {
    if (cells > 0) return; /* as the cell before left them */
    sv_setpv_mg(zero, *file == '<' ? "-e" : file);
    return;
  }
  av_clear(argv);
  for (uint32_t i = 0; i < count; i++) {
    SV *const argument = read_sv(in);
    if (i > 0) {
      av_push(argv, argument);
    } else {
      sv_setsv_mg(zero, argument);
      SvREFCNT_dec_NN(argument);
    }
  }
}

/* %ENV becomes what the request has. Its values are characters, the C library's are their bytes; assigning to an element
 * would complain of characters that are no bytes, so both are set here. The cells before may have tied it. */
static void set_environment(struct reader *in) {
  dTHX;
  HV *const env = GvHVn(PL_envgv);
  const uint32_t count = read_number(in);
  if (count == 0 && HvUSEDKEYS(env) == 0) return;
  hv_clear(env);
  for (uint32_t i = 0; i < count; i++) {
    SV *const name = read_sv(in);
    SV *const value = read_sv(in);
    HE *const entry = hv_fetch_ent(env, name, 1, 0);
    if (entry != NULL) {
      sv_setsv(HeVAL(entry), value);
      setenv(SvPVutf8_nolen(name), SvPVutf8_nolen(value), 1);
    }
    SvREFCNT_dec_NN(name);
    SvREFCNT_dec_NN(value);
  }
}

/* What the cell before did not read of its input is gone, and so is the end it may have seen. */
static void renew_stdin(void) {
  dTHX;
  PerlIO *const in = PerlIO_stdin();
  if (!PerlIOValid(in)) return;
  if (PerlIO_has_cntptr(in) && PerlIO_get_cnt(in) > 0) {
    PerlIO_set_ptrcnt(in, PerlIO_get_ptr(in) + PerlIO_get_cnt(in), 0);
  }
  PerlIO_clearerr(in);
}

/* Preparing can run code of the program, where it tied %ENV or @ARGV. */
struct preparation {
  struct reader *in;
  const char *file;
  const char *folder;
};

static void prepare(void *argument) {
  struct preparation *const preparation = argument;
  if (*preparation->folder != '\0') (void)chdir(preparation->folder); /* it may be gone */
  set_arguments(preparation->in, preparation->file);
  set_environment(preparation->in);
  renew_stdin();
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

/* What the cell died with, for nobody else to change. Of a long text what can be shown is enough. */
static SV *take_exception(void) {
  dTHX;
  SV *const exception = ERRSV;
  if (SvROK(exception) || !SvPOK(exception) || SvCUR(exception) <= kExceptionBytesMax) return newSVsv(exception);
  return newSVpvn_utf8(SvPVX(exception), kExceptionBytesMax, SvUTF8(exception) != 0);
}

struct outcome {
  enum ending ending;
  AV *values;
};

static void send_answer(const struct outcome *outcome) {
  dTHX;
  enum value_kind kind = kNoValue;
  clear_failure();
  text_clear(&shown);
  switch (outcome->ending) {
    case kReturned:
      stopped = 0;
      kind = sw_show_values(&shown, outcome->values);
      /* Making the text can take until the limit. */
      if (stopped) fail("PerlError", "Interrupted: the run has reached its limit");
      break;
    case kDied:
    case kNotCompiled: {
      SV *const exception = take_exception();
      sw_describe_failure(&failure, exception, outcome->ending == kNotCompiled);
      SvREFCNT_dec_NN(exception);
      break;
    }
    case kOutOfMemory: fail("OutOfMemory", "Out of memory"); break;
    case kExited: break;
  }
  text_clear(&answer);
  text_puts(&answer, "{");
  if (shown.failed) fail("OutOfMemory", "Out of memory for the value's text");
  if (failure.name.size > 0) put_failure();
  else if (kind != kNoValue) text_puts(&answer, kind == kJsonValue ? "\"value\":\"json\"," : "\"value\":\"text\",");
  if (outcome->ending == kExited) text_printf(&answer, "\"exit\":%d,", (int)STATUS_EXIT);
  put_folder();
  text_puts(&answer, "}\n");
  if (failure.name.size == 0) text_put(&answer, shown.at, shown.size);
  if (answer.failed) {
    text_free(&shown);
    text_free(&answer);
    text_puts(&answer, "{\"error\":{\"name\":\"OutOfMemory\",\"message\":\"Out of memory for the answer\"}}\n");
  }
  host_answer(answer.at, answer.size);
  shrink(&answer);
  shrink(&shown);
}

static void copy_text(char *to, size_t room, const char *from, size_t size) {
  if (size >= room) size = room - 1;
  memcpy(to, from, size);
  to[size] = '\0';
}

/* A cell that frees what fills the memory has to be read first. */
static void make_room(size_t request_size) {
  void *const room = malloc(2 * request_size + kRoomForACell);
  if (room == NULL) sw_release_reserve();
  else if (!sw_has_reserve()) sw_keep_reserve();
  free(room);
}

static void run(struct reader *in) {
  dTHX;
  size_t file_size;
  make_room((size_t)(in->end - in->at));
  shown.limit = read_number(in);
  SV *const code = read_code(in);
  const char *const file_at = read_string(in, &file_size);
  char file[1024];
  copy_text(file, sizeof file, file_at, file_size);
  size_t folder_size;
  const char *const folder_at = read_string(in, &folder_size);
  char folder[4097];
  copy_text(folder, sizeof folder, folder_at, folder_size);
  struct preparation preparation = {in, file, folder};
  stopped = 0;
  sw_forget_death();
  if (cells == 0) PL_basetime = time(NULL);
  sw_protect(prepare, &preparation);
  if (!PL_errgv || SvROK(ERRSV) || SvTRUE_NN(ERRSV)) CLEAR_ERRSV();
  STATUS_ALL_SUCCESS;
  if (wants_warnings(code)) PL_dowarn |= G_WARN_ON;
  const struct cell cell = {code, file};
  struct outcome outcome = {kReturned, newAV()};
  outcome.ending = sw_run_cell(&cell, outcome.values);
  /* A wait that was cut short as the last thing of the cell. */
  if (outcome.ending == kReturned && stop_flag) {
    sv_setpvs(ERRSV, "Interrupted: the run has reached its limit\n");
    outcome.ending = kDied;
  }
  if (outcome.ending == kOutOfMemory) sw_release_reserve();
  stop_flag = 0;
  sw_forget_alarm();
  cells++;
  PerlIO_flush(NULL);
  send_answer(&outcome);
  SvREFCNT_dec_NN(code);
  SvREFCNT_dec_NN((SV *)outcome.values);
}

void EXPORT(sw_run)(size_t size) {
  struct reader in = {buffer, buffer + (size <= buffer_room ? size : 0)};
  run(&in);
  if (buffer_room > kKeptBytesMax) {
    free(buffer);
    buffer = NULL;
    buffer_room = 0;
  }
}

/* The first call after the image or a saved state: random numbers must differ from every other copy's. */
void EXPORT(sw_fresh)(void) {
  dTHX;
  PL_srand_called = FALSE;
}

static void run_end_blocks(void *unused) {
  dTHX;
  PERL_UNUSED_ARG(unused);
  if (PL_endav != NULL) call_list(PL_scopestack_ix, PL_endav);
}
static void drop_lexicals(void *unused) {
  PERL_UNUSED_ARG(unused);
  sw_lexicals_drop();
}
static void destroy_objects(void *unused) {
  dTHX;
  PERL_UNUSED_ARG(unused);
  sv_clean_objs();
}

static void finish_step(void (*step)(void *)) {
  dTHX;
  if (sw_protect(step, NULL) == 1) PerlIO_printf(PerlIO_stderr(), "%" SVf, SVfARG(ERRSV));
  CLEAR_ERRSV();
}

/* Only what a program blesses can have a destructor to run. Looking for objects, and destroying the image's own, writes
 * to hundreds of pages, so it is done only where there can be one. */
static int has_objects;
static OP *(*bless)(pTHX);

static OP *at_bless(pTHX) {
  has_objects = 1;
  return bless(aTHX);
}

/* As at the end of a program: file-scoped variables go, END blocks run, then what objects are left go. */
void EXPORT(sw_finish)(void) {
  dTHX;
  if (has_objects) finish_step(drop_lexicals);
  PL_phase = PERL_PHASE_END;
  if (PL_endav != NULL) finish_step(run_end_blocks);
  PL_phase = PERL_PHASE_DESTRUCT;
  if (has_objects) finish_step(destroy_objects);
  sw_forget_alarm();
  stop_flag = 0;
  PerlIO_flush(NULL);
}

/* Boot */

static void set_up_streams(void) {
  dTHX;
  PerlIO *const streams[] = {PerlIO_stdin(), PerlIO_stdout(), PerlIO_stderr()};
  for (int i = 0; i < 3; i++) PerlIO_binmode(aTHX_ streams[i], i == 0 ? '<' : '>', O_BINARY, ":utf8");
  /* What is printed is out at once: it may be the last thing before a limit, and the two streams stay in order. */
  IoFLAGS(GvIOp(PL_defoutgv)) |= IOf_FLUSH;
}

/* `size` bytes of Perl in the buffer, whose value is the sub that dumps values. Answers what went wrong, or nothing. */
int EXPORT(sw_boot)(size_t size) {
  static char *arguments[] = {(char *)"perl", (char *)"-e", (char *)"0", NULL};
  /* Keys come in the same order in every run. */
  static char *environment[] = {(char *)"PERL_HASH_SEED=0", NULL};
  static char *no_environment[] = {NULL};
  int count = 3;
  char **argv = arguments;
  char **env = environment;
  environ = environment;
  PERL_SYS_INIT3(&count, &argv, &env);
  PerlInterpreter *const interpreter = perl_alloc();
  perl_construct(interpreter);
  /* Where argv ends: perl writes over it, and over the static data behind it, when $0 is assigned to. */
  PL_origalen = 1;
  if (perl_parse(interpreter, xs_init, count, argv, NULL) != 0 || perl_run(interpreter) != 0) return 1;
  environ = no_environment;
  hv_clear(GvHVn(PL_envgv));
  PL_signalhook = at_pending_signal;
  /* The programs are still to come: it is not too late for their CHECK and INIT blocks. */
  PL_main_start = NULL;
  sw_install_cell_hooks();
  bless = PL_ppaddr[OP_BLESS];
  PL_ppaddr[OP_BLESS] = at_bless;
  set_up_streams();
  (void)chdir("/workspace");
  const struct cell cell = {newSVpvn(buffer, size), "boot.pl"};
  AV *const values = newAV();
  const enum ending ending = sw_run_cell(&cell, values);
  SvREFCNT_dec_NN(cell.code);
  sw_lexicals_drop();
  if (ending != kReturned || av_top_index(values) < 0) {
    text_clear(&answer);
    if (SvPOK(ERRSV)) text_put_sv(&answer, ERRSV);
    host_answer(answer.at, answer.size);
    return 1;
  }
  sw_set_dumper(newSVsv(AvARRAY(values)[av_top_index(values)]));
  SvREFCNT_dec_NN((SV *)values);
  return 0;
}

/* Last at bake: the cells that warmed the interpreter up leave nothing behind. */
void EXPORT(sw_settle)(void) {
  dTHX;
  sw_keep_reserve();
  PL_last_in_gv = NULL; /* or messages name the handle that was read from last */
  sw_lexicals_drop();
  cells = 0;
  has_objects = 0;
}
