/* SPDX-FileCopyrightText: The sandbox-workers authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "EXTERN.h"
#include "perl.h"

#include "driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The C library's own: memory that is missing must not end the cell, which is over. */
#undef malloc
#undef realloc
#undef free

enum { kReserveBytes = 1 << 20, kReserveBytesLeast = 1 << 16 };

static void *reserve;

int sw_has_reserve(void) { return reserve != NULL; }

void sw_release_reserve(void) {
  free(reserve);
  reserve = NULL;
}

/* Where memory is short, no more than what is left for the cell. */
void sw_keep_reserve(void) {
  for (size_t size = kReserveBytes; reserve == NULL && size >= kReserveBytesLeast; size /= 2) {
    reserve = malloc(2 * size);
    if (reserve == NULL) continue;
    free(reserve);
    reserve = malloc(size);
  }
}

int text_is_full(const struct text *text) { return text->failed || (text->limit != 0 && text->size >= text->limit); }

void text_put(struct text *text, const char *bytes, size_t size) {
  if (text->limit != 0 && size > text->limit - text->size) size = text->limit - text->size;
  if (text->failed || size == 0) return;
  if (size > text->room - text->size) {
    size_t room = text->room < 256 ? 256 : text->room;
    while (room - text->size < size && room < (size_t)1 << 31) room *= 2;
    char *const at = room - text->size < size ? NULL : realloc(text->at, room);
    if (at == NULL) {
      text->failed = 1;
      return;
    }
    text->at = at;
    text->room = room;
  }
  memcpy(text->at + text->size, bytes, size);
  text->size += size;
}

void text_puts(struct text *text, const char *string) { text_put(text, string, strlen(string)); }

void text_printf(struct text *text, const char *format, ...) {
  char buffer[256];
  va_list arguments;
  va_start(arguments, format);
  const int size = vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  if (size > 0) text_put(text, buffer, size < (int)sizeof buffer ? (size_t)size : sizeof buffer - 1);
}

void text_clear(struct text *text) {
  text->size = 0;
  text->failed = 0;
}

void text_free(struct text *text) {
  free(text->at);
  text->at = NULL;
  text->size = text->room = 0;
  text->failed = 0;
}

static void put_code_point(struct text *text, UV code) {
  char bytes[4];
  size_t size = 0;
  if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) code = 0xFFFD;
  if (code < 0x80) {
    bytes[size++] = (char)code;
  } else if (code < 0x800) {
    bytes[size++] = (char)(0xC0 | code >> 6);
    bytes[size++] = (char)(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    bytes[size++] = (char)(0xE0 | code >> 12);
    bytes[size++] = (char)(0x80 | (code >> 6 & 0x3F));
    bytes[size++] = (char)(0x80 | (code & 0x3F));
  } else {
    bytes[size++] = (char)(0xF0 | code >> 18);
    bytes[size++] = (char)(0x80 | (code >> 12 & 0x3F));
    bytes[size++] = (char)(0x80 | (code >> 6 & 0x3F));
    bytes[size++] = (char)(0x80 | (code & 0x3F));
  }
  text_put(text, bytes, size);
}

static int is_json_plain(unsigned char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; }

static void put_json_character(struct text *text, UV code) {
  switch (code) {
    case '"': text_puts(text, "\\\""); return;
    case '\\': text_puts(text, "\\\\"); return;
    case '\n': text_puts(text, "\\n"); return;
    case '\r': text_puts(text, "\\r"); return;
    case '\t': text_puts(text, "\\t"); return;
    default: break;
  }
  if (code < 0x20 || code == 0x7F) text_printf(text, "\\u%04x", (unsigned)code);
  else put_code_point(text, code);
}

static void put_characters(struct text *text, const U8 *at, const U8 *end, int is_utf8, int as_json) {
  while (at < end && !text_is_full(text)) {
    const U8 *const run = at;
    while (at < end && *at < 0x80 && (!as_json || is_json_plain(*at))) at++;
    text_put(text, (const char *)run, (size_t)(at - run));
    if (at == end) break;
    UV code = *at;
    STRLEN size = 1;
    if (is_utf8 && *at >= 0x80) {
      code = utf8n_to_uvchr(at, (STRLEN)(end - at), &size, UTF8_CHECK_ONLY | UTF8_ALLOW_EMPTY);
      if (size == 0 || size == (STRLEN)-1) code = 0xFFFD, size = 1;
    }
    at += size;
    if (as_json) put_json_character(text, code);
    else put_code_point(text, code);
  }
}

void text_put_sv(struct text *text, SV *sv) {
  dTHX;
  STRLEN size;
  const char *const bytes = SvPV_const(sv, size);
  put_characters(text, (const U8 *)bytes, (const U8 *)bytes + size, SvUTF8(sv) != 0, 0);
}

void text_put_json_sv(struct text *text, SV *sv) {
  dTHX;
  STRLEN size;
  const char *const bytes = SvPV_const(sv, size);
  text_put(text, "\"", 1);
  put_characters(text, (const U8 *)bytes, (const U8 *)bytes + size, SvUTF8(sv) != 0, 1);
  text_put(text, "\"", 1);
}

void text_put_json(struct text *text, const char *utf8, size_t size) {
  text_put(text, "\"", 1);
  put_characters(text, (const U8 *)utf8, (const U8 *)utf8 + size, 1, 1);
  text_put(text, "\"", 1);
}
