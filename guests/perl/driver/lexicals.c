/* SPDX-FileCopyrightText: The sandbox-workers authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * File-scoped variables from cell to cell.
 *
 * A cell is compiled as a string eval. Perl looks up a name that the cell itself does not declare in the code around
 * it, and takes PL_main_cv for that where no sub is running. So a "scope" is put there: a CV without any code, whose pad
 * holds the variables that earlier cells declared at their outermost level. They are taken from a cell's pad as soon as
 * it has been compiled, before its first statement runs: what it did before it died or exited stays.
 *
 * How this stays bounded: there is one table, from a name to the variable declared last, and one scope, whose pad is
 * made anew when a cell added names. A name that is declared again replaces what was there; the old variable lives only
 * as long as something refers to it. (A scope for each cell would not do: closures hold the code they were compiled in,
 * which holds its scope, and so a closure that replaces an older one would hold that through the older scope.)
 * docs/adr has the decision. */
#define PERL_CORE
#include "EXTERN.h"
#include "perl.h"

#include "driver.h"

static HV *variables; /* "$x" -> the variable itself */
static HV *globals;   /* "$x" -> the stash that an `our` named */
static CV *scope;
static int stale; /* the scope is not what the tables say */

/* To the pad of the sub that is being compiled. */
static void add_name(HE *entry, HV *ourstash) {
  dTHX;
  STRLEN size;
  const char *const name = HePV(entry, size);
  const PADOFFSET slot = pad_add_name_pvn(name, size, padadd_NO_DUP_CHECK | (ourstash != NULL ? padadd_OUR : 0),
                                          NULL, ourstash);
  if (ourstash != NULL) return;
  SvREFCNT_dec(PL_curpad[slot]);
  PL_curpad[slot] = SvREFCNT_inc(HeVAL(entry));
}

/* The names come from cells that were compiled before anything that can ask, so all of them are in scope. */
static void put_in_scope(PADNAMELIST *names) {
  for (SSize_t i = 1; i <= PadnamelistMAX(names); i++) {
    PADNAME *const name = PadnamelistARRAY(names)[i];
    if (name != NULL && PadnamePV(name) != NULL) COP_SEQ_RANGE_LOW(name) = 0;
  }
}

/* Gives the scope a new pad. */
static void fill_scope(void) {
  dTHX;
  HE *entry;
  const I32 floor = start_subparse(FALSE, 0);
  hv_iterinit(variables);
  while ((entry = hv_iternext(variables)) != NULL) add_name(entry, NULL);
  hv_iterinit(globals);
  while ((entry = hv_iternext(globals)) != NULL) add_name(entry, (HV *)HeVAL(entry));
  intro_my();
  CV *const filled = PL_compcv; /* ours to free: no sub becomes of it */
  LEAVE_SCOPE(floor);
  put_in_scope(PadlistNAMES(CvPADLIST(filled)));
  if (scope == NULL) {
    scope = filled;
    CvUNIQUE_on(scope);
    /* Nothing lies around it. */
    SvREFCNT_dec(CvOUTSIDE(scope));
    CvOUTSIDE(scope) = NULL;
    return;
  }
  PADLIST *const old = CvPADLIST(scope);
  CvPADLIST_set(scope, CvPADLIST(filled));
  CvPADLIST_set(filled, old);
  SvREFCNT_dec_NN(filled);
}

void sw_lexicals_offer(void) {
  dTHX;
  if (variables == NULL) {
    variables = newHV();
    globals = newHV();
    stale = 1;
  }
  if (stale) fill_scope();
  stale = 0;
  PL_main_cv = scope;
}

static int is_kept(PADNAME *name, U32 end_of_file) {
  if (name == NULL || PadnamePV(name) == NULL || PadnameLEN(name) < 2 || PadnameOUTER(name)) return 0;
  if (PadnameIsFIELD(name) || *PadnamePV(name) == '&') return 0;
  return COP_SEQ_RANGE_LOW(name) != PERL_PADSEQ_INTRO && COP_SEQ_RANGE_HIGH(name) == end_of_file;
}

void sw_lexicals_keep(CV *cell) {
  dTHX;
  /* The block that ends last is the file: its names end at the sequence number before the next one. */
  const U32 end_of_file = PL_cop_seqmax - 1;
  PADNAMELIST *const names = PadlistNAMES(CvPADLIST(cell));
  SV **const pad = AvARRAY(PadlistARRAY(CvPADLIST(cell))[1]);
  /* In order, so that of two declarations of a name the later one stays. */
  for (SSize_t i = 1; i <= PadnamelistMAX(names); i++) {
    PADNAME *const name = PadnamelistARRAY(names)[i];
    if (!is_kept(name, end_of_file)) continue;
    /* Keys are the bytes of names, which are UTF-8. A key said to be UTF-8 might be stored as Latin-1. */
    const I32 size = (I32)PadnameLEN(name);
    HV *const table = PadnameIsOUR(name) ? globals : variables;
    HV *const other = PadnameIsOUR(name) ? variables : globals;
    SV *const kept = PadnameIsOUR(name) ? (SV *)PadnameOURSTASH(name) : pad[i];
    if (kept == NULL) continue;
    SvPADSTALE_off(kept);
    (void)hv_delete(other, PadnamePV(name), size, G_DISCARD);
    if (hv_store(table, PadnamePV(name), size, SvREFCNT_inc_simple_NN(kept), 0) == NULL) SvREFCNT_dec_NN(kept);
    stale = 1;
  }
}

void sw_lexicals_drop(void) {
  dTHX;
  if (variables == NULL) return;
  hv_clear(variables);
  hv_clear(globals);
  fill_scope();
  stale = 0;
}
