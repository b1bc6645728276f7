/* SPDX-FileCopyrightText: The sandbox-workers authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Running a cell: as perl's eval_sv does it, with these differences.
 * - The cell's eval is marked like the block of a `try`, which caller() and `return` do not see: to the program it
 *   is the main program. ($^S is told by a patch, which asks sw_in_eval_of_program.)
 * - The file's name is the cell's, and lines are the cell's.
 * - __END__ and __DATA__ make a handle of the rest.
 * - File-scoped variables are kept (lexicals.c). */
#define PERL_CORE
#include "EXTERN.h"
#include "perl.h"
#include "XSUB.h"

#include "driver.h"

static UNOP entry; /* the op that starts the cell */
static const struct cell *running;
static const char *last_file = ""; /* of the cell in progress, or the last one, until it has been answered */
static CV *running_cv;
static yy_parser *outer_parser; /* not the cell's own, but the one around it */
static int no_memory;

CV *sw_cell_cv(void) { return running_cv; }
const char *sw_cell_file(void) { return last_file; }

void sw_out_of_memory(void) { no_memory = 1; }

int sw_in_eval_of_program(void) {
  dTHX;
  for (const PERL_SI *stack = PL_curstackinfo; stack != NULL; stack = stack->si_prev) {
    for (I32 i = stack->si_cxix; i >= 0; i--) {
      const PERL_CONTEXT *const context = &stack->si_cxstack[i];
      if (CxTYPE(context) != CXt_EVAL) continue;
      if (running_cv == NULL || context->blk_eval.cv != running_cv) return 1;
    }
  }
  return 0;
}

/* Called when an eval is about to be parsed. */
static void at_eval(pTHX_ OP *op) {
  if (op != (OP *)&entry) return;
  PERL_CONTEXT *const context = CX_CUR();
  context->cx_type |= CXp_TRY;
  PL_curstackinfo->si_cxsubix = context->blk_eval.old_cxsubix;
  running_cv = context->blk_eval.cv;
  outer_parser = PL_parser->old_parser;
  CopFILE_free(&PL_compiling);
  CopFILE_set(&PL_compiling, running->file);
}

/* __END__ and __DATA__: perl itself makes a handle only where it reads a file. */
static void open_data(pTHX_ HV *stash, const char *at, const char *end) {
  GV *const gv = gv_fetchpvn_flags("DATA", 4, GV_ADD, SVt_PVIO);
  GV *const own = stash == PL_defstash ? gv : *(GV **)hv_fetchs(stash, "DATA", 1);
  if (own != gv && SvTYPE(own) != SVt_PVGV) gv_init(own, stash, "DATA", 4, 0);
  const char *const line_end = memchr(at, '\n', (size_t)(end - at));
  at = line_end == NULL ? end : line_end + 1;
  /* As in a file, the handle is on the whole text, and stands where the data begin. */
  const STRLEN rest = (STRLEN)(end - at);
  SV *const text = newSVpvn(SvPVX(running->code), SvCUR(running->code));
  SV *const reference = newRV_noinc(text);
  PerlIO *const file = PerlIO_openn(aTHX_ ":scalar", "r", -1, 0, 0, NULL, 1, (SV **)&reference);
  SvREFCNT_dec_NN(reference);
  if (file == NULL) return;
  PerlIO_binmode(aTHX_ file, '<', O_BINARY, ":utf8");
  if (rest <= SvCUR(text)) PerlIO_seek(file, (Off_t)(SvCUR(text) - rest), SEEK_SET);
  IO *const io = GvIOn(own);
  if (IoIFP(io) != NULL) PerlIO_close(IoIFP(io));
  IoIFP(io) = file;
  IoTYPE(io) = IoTYPE_RDONLY;
}

static int (*next_plugin)(pTHX_ char *word, STRLEN size, OP **op);

static int at_word(pTHX_ char *word, STRLEN size, OP **op) {
  const int is_data = size == 8 && memcmp(word, "__DATA__", 8) == 0;
  const int is_end = size == 7 && memcmp(word, "__END__", 7) == 0;
  if ((is_data || is_end) && running != NULL && PL_in_eval && PL_parser->old_parser == outer_parser &&
      running_cv != NULL && strcmp(CopFILE(&PL_compiling), running->file) == 0) {
    /* perl ended the text with a line feed and a semicolon of its own. */
    const char *const end = PL_parser->bufend - 2;
    const char *const at = PL_parser->bufptr; /* behind the word, which `word` is a copy of */
    if (at <= end) open_data(aTHX_ is_data && PL_curstash != NULL ? PL_curstash : PL_defstash, at, end);
  }
  return next_plugin(aTHX_ word, size, op);
}

void sw_install_cell_hooks(void) {
  dTHX;
  static BHK hooks;
  BhkENTRY_set(&hooks, bhk_eval, at_eval);
  Perl_blockhook_register(aTHX_ &hooks);
  wrap_keyword_plugin(at_word, &next_plugin);
}

static void leave_everything(I32 scopes) {
  dTHX;
  if (PL_curstash != PL_defstash) {
    SvREFCNT_dec(PL_curstash);
    PL_curstash = (HV *)SvREFCNT_inc_simple_NN(PL_defstash);
  }
  while (PL_scopestack_ix > scopes) LEAVE;
  FREETMPS;
}

/* Compiles the cell and makes its first statement the next to run. */
static int start(SV *code, SSize_t mark) {
  dTHX;
  Zero(&entry, 1, UNOP);
  entry.op_type = OP_ENTEREVAL;
  entry.op_ppaddr = PL_ppaddr[OP_ENTEREVAL];
  entry.op_flags = OPf_STACKED | OP_GIMME_REVERSE(G_LIST);
  /* Not HINT_UTF8: the text says itself that it is UTF-8, and bytes that the program evals are what they are. */
  entry.op_targ = HINT_BLOCK_SCOPE;
  PL_op = (OP *)&entry;
  rpp_extend(1);
  *++PL_stack_sp = code;
  OP *const first = PL_ppaddr[OP_ENTEREVAL](aTHX);
  if (first == NULL) {
    PL_stack_sp = PL_stack_base + mark;
    return 0;
  }
  sw_lexicals_keep(running_cv);
  /* A program's CHECK and INIT blocks, which perl runs between compiling a main program and starting it. */
  if (PL_checkav != NULL) call_list(PL_scopestack_ix, PL_checkav);
  if (PL_initav != NULL) call_list(PL_scopestack_ix, PL_initav);
  PL_op = first;
  return 1;
}

enum ending sw_run_cell(const struct cell *cell, AV *values) {
  dTHX;
  dJMPENV;
  int how;
  volatile enum ending ending = kReturned;
  const I32 scopes = PL_scopestack_ix;
  const SSize_t mark = PL_stack_sp - PL_stack_base;
  running = cell;
  last_file = cell->file;
  running_cv = NULL;
  no_memory = 0;
  sw_lexicals_offer();
  ENTER;
  SAVETMPS;
  SAVEOP();
  PL_curcop = &PL_compiling;
  JMPENV_PUSH(how);
  switch (how) {
    case 0:
      if (!start(cell->code, mark)) {
        ending = kNotCompiled;
        break;
      }
    run:
      CALLRUNOPS(aTHX);
      for (SV **value = PL_stack_base + mark + 1; value <= PL_stack_sp; value++) {
        av_push(values, SvGMAGICAL(*value) ? newSVsv(*value) : SvREFCNT_inc_simple_NN(*value));
      }
      CLEAR_ERRSV();
      break;
    case 3: /* something died, and an eval of the program goes on with the rest; or none does */
      PL_restartjmpenv = NULL;
      if (PL_restartop != NULL) {
        PL_op = PL_restartop;
        PL_restartop = NULL;
        goto run;
      }
      ending = kDied;
      break;
    default: ending = no_memory ? kOutOfMemory : kExited; break;
  }
  JMPENV_POP;
  running_cv = NULL;
  running = NULL;
  PL_stack_sp = PL_stack_base + mark;
  leave_everything(scopes);
  PL_curcop = &PL_compiling;
  /* A file's name is a glob, one for each cell, which nobody needs once the ops refer to it. */
  SV *const name = newSVpvf("_<%s", cell->file);
  (void)hv_delete_ent(PL_defstash, name, G_DISCARD, 0);
  SvREFCNT_dec_NN(name);
  return ending;
}

static void (*protected_function)(void *);
static void *protected_argument;

XS(sw_protected) {
  dXSARGS;
  PERL_UNUSED_VAR(items);
  protected_function(protected_argument);
  XSRETURN_EMPTY;
}

int sw_protect(void (*function)(void *), void *argument) {
  dTHX;
  dJMPENV;
  int how;
  volatile int result = 0;
  static CV *bridge;
  const I32 scopes = PL_scopestack_ix;
  if (bridge == NULL) bridge = newXS(NULL, sw_protected, __FILE__);
  protected_function = function;
  protected_argument = argument;
  ENTER;
  SAVETMPS;
  /* The program's handlers are for its own errors. */
  SAVESPTR(PL_diehook);
  PL_diehook = NULL;
  SAVESPTR(PL_warnhook);
  PL_warnhook = NULL;
  SAVEOP();
  JMPENV_PUSH(how);
  if (how == 0) {
    PUSHMARK(PL_stack_sp);
    call_sv((SV *)bridge, G_EVAL | G_DISCARD | G_VOID | G_NOARGS);
    result = SvROK(ERRSV) || (SvPOK(ERRSV) && SvCUR(ERRSV) > 0);
  } else {
    result = how == 3 ? 1 : 2;
  }
  JMPENV_POP;
  leave_everything(scopes);
  return result;
}
