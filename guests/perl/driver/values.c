/* SPDX-FileCopyrightText: The sandbox-workers authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * How a cell's value is shown: references to plain arrays and hashes as JSON, objects by their own string form, other
 * references as Data::Dumper writes them, everything else as its text. Objects, ties and overloads run code of the
 * program, which may die: callers use sw_protect. */
#define PERL_CORE
#include "EXTERN.h"
#include "perl.h"

#include "driver.h"

#include <math.h>

/* The host shows what is nested deeper as text. */
enum { kDepthMax = 500 };

static SV *dumper; /* a sub of boot.pl */

void sw_set_dumper(SV *code) { dumper = code; }

static int put_json(struct text *text, SV *value, int depth);

static int put_array(struct text *text, AV *array, int depth) {
  dTHX;
  text_put(text, "[", 1);
  const SSize_t last = av_top_index(array);
  for (SSize_t i = 0; i <= last; i++) {
    if (text_is_full(text)) break;
    if (i > 0) text_put(text, ",", 1);
    SV **const item = av_fetch(array, i, 0);
    if (item == NULL) text_puts(text, "null");
    else if (!put_json(text, *item, depth + 1)) return 0;
    if (text->failed) return 0;
  }
  text_put(text, "]", 1);
  return 1;
}

static int by_bytes(pTHX_ SV *const left, SV *const right) { return sv_cmp_flags(left, right, 0); }

/* Keys in order, so that the same hash is always the same text. */
static int put_hash(struct text *text, HV *hash, int depth) {
  dTHX;
  AV *const keys = (AV *)sv_2mortal((SV *)newAV());
  HE *entry;
  hv_iterinit(hash);
  while ((entry = hv_iternext(hash)) != NULL) av_push(keys, newSVsv(hv_iterkeysv(entry)));
  if (av_top_index(keys) > 0) sortsv(AvARRAY(keys), (size_t)av_top_index(keys) + 1, by_bytes);
  text_put(text, "{", 1);
  for (SSize_t i = 0; i <= av_top_index(keys); i++) {
    if (text_is_full(text)) break;
    SV *const key = AvARRAY(keys)[i];
    entry = hv_fetch_ent(hash, key, 0, 0);
    if (i > 0) text_put(text, ",", 1);
    text_put_json_sv(text, key);
    text_put(text, ":", 1);
    if (entry == NULL) text_puts(text, "null");
    else if (!put_json(text, HeVAL(entry), depth + 1)) return 0;
    if (text->failed) return 0;
  }
  text_put(text, "}", 1);
  return 1;
}

static int put_reference(struct text *text, SV *to, int depth) {
  dTHX;
  if (SvOBJECT(to)) {
    const char *const name = HvNAME(SvSTASH(to));
    if (name == NULL || strcmp(name, "JSON::PP::Boolean") != 0) return 0;
    text_puts(text, SvTRUE(to) ? "true" : "false");
    return 1;
  }
  if (SvTYPE(to) == SVt_PVAV) return put_array(text, (AV *)to, depth);
  if (SvTYPE(to) == SVt_PVHV) return put_hash(text, (HV *)to, depth);
  /* \1 and \0, as Perl's JSON modules take them. */
  if (SvTYPE(to) < SVt_PVAV && !SvROK(to) && SvOK(to)) {
    STRLEN size;
    const char *const digits = SvPV(to, size);
    if (size == 1 && (*digits == '0' || *digits == '1')) {
      text_puts(text, *digits == '1' ? "true" : "false");
      return 1;
    }
  }
  return 0;
}

/* Integers with all digits, other numbers as print shows them. */
static int put_number(struct text *text, SV *value) {
  dTHX;
  if (SvIOK(value)) {
    if (SvIsUV(value)) text_printf(text, "%llu", (unsigned long long)SvUVX(value));
    else text_printf(text, "%lld", (long long)SvIVX(value));
    return 1;
  }
  const NV number = SvNV(value);
  if (!isfinite(number)) return 0;
  text_put_sv(text, sv_2mortal(newSVnv(number)));
  return 1;
}

static int put_json(struct text *text, SV *value, int depth) {
  dTHX;
  if (depth > kDepthMax) return 0;
  SvGETMAGIC(value);
  if (SvROK(value)) return put_reference(text, SvRV(value), depth);
  if (!SvOK(value)) text_puts(text, "null");
  else if (SvIsBOOL(value)) text_puts(text, SvTRUE_nomg(value) ? "true" : "false");
  else if ((SvIOK(value) || SvNOK(value)) && !SvPOK(value)) return put_number(text, value);
  else text_put_json_sv(text, sv_2mortal(newSVsv_nomg(value)));
  return 1;
}

int sw_put_json(struct text *text, SV *value) { return put_json(text, value, 0) && !text->failed; }

int sw_put_string_form(struct text *text, SV *object) {
  dTHX;
  if (SvTYPE(SvRV(object)) == SVt_REGEXP) {
    text_put_sv(text, object);
    return 1;
  }
  if (!SvAMAGIC(object)) return 0;
  SV *const shown = AMG_CALLunary(object, string_amg);
  if (shown == NULL || SvROK(shown)) return 0;
  text_put_sv(text, shown);
  return 1;
}

int sw_put_dump(struct text *text, SV *value) {
  dTHX;
  dSP;
  if (dumper == NULL) return 0;
  ENTER;
  SAVETMPS;
  PUSHMARK(SP);
  XPUSHs(value);
  PUTBACK;
  const SSize_t count = call_sv(dumper, G_SCALAR);
  SPAGAIN;
  SV *const shown = count > 0 ? POPs : NULL;
  PUTBACK;
  const int good = shown != NULL && SvPOK(shown);
  if (good) text_put_sv(text, shown);
  FREETMPS;
  LEAVE;
  return good;
}

static void put_address(struct text *text, SV *reference) {
  dTHX;
  const SV *const to = SvRV(reference);
  if (SvOBJECT(to)) {
    SV *const name = sv_2mortal(newSVhek(HvNAME_HEK(SvSTASH(to))));
    text_put_sv(text, name);
    text_put(text, "=", 1);
  }
  text_printf(text, "%s(0x%" UVxf ")", sv_reftype(to, 0), PTR2UV(to));
}

static int is_opaque(const SV *to) {
  return SvTYPE(to) == SVt_PVCV || SvTYPE(to) == SVt_PVGV || SvTYPE(to) == SVt_PVIO || SvTYPE(to) == SVt_PVFM ||
         SvTYPE(to) == SVt_PVOBJ;
}

struct showing {
  struct text *text;
  SV *value;
  int (*put)(struct text *text, SV *value);
  int good;
};

static void show(void *argument) {
  struct showing *const showing = argument;
  showing->good = showing->put(showing->text, showing->value);
}

static int try_to_put(struct text *text, SV *value, int (*put)(struct text *text, SV *value)) {
  struct showing showing = {text, value, put, 0};
  text_clear(text);
  return sw_protect(show, &showing) == 0 && showing.good && !text->failed;
}

static int put_plain(struct text *text, SV *value) {
  text_put_sv(text, value);
  return 1;
}

static enum value_kind show_reference(struct text *text, SV *value) {
  const SV *const to = SvRV(value);
  if (!SvOBJECT(to) && (SvTYPE(to) == SVt_PVAV || SvTYPE(to) == SVt_PVHV) && try_to_put(text, value, sw_put_json)) {
    return kJsonValue;
  }
  if (SvOBJECT(to) && try_to_put(text, value, sw_put_string_form)) return kTextValue;
  if (!is_opaque(to) && try_to_put(text, value, sw_put_dump)) return kTextValue;
  text_clear(text);
  put_address(text, value);
  return kTextValue;
}

enum value_kind sw_show_values(struct text *text, AV *values) {
  dTHX;
  const SSize_t last = av_top_index(values);
  if (last < 0) return kNoValue;
  if (last > 0) {
    SV *const all = sv_2mortal(newRV_inc((SV *)values));
    return show_reference(text, all);
  }
  SV *const value = AvARRAY(values)[0];
  SvGETMAGIC(value);
  if (!SvOK(value)) return kNoValue;
  if (SvROK(value)) return show_reference(text, value);
  if (!try_to_put(text, value, put_plain) && !text->failed) text_clear(text);
  return kTextValue;
}
