/* SPDX-FileCopyrightText: The sandbox-workers authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Text that grows. */
#include <ruby.h>

#include "driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int make_room(struct text *text, size_t size) {
  if (text->failed) return 0;
  if (size <= text->room - text->size) return 1;
  size_t room = text->room < 256 ? 256 : text->room * 2;
  if (room < text->size + size) room = text->size + size;
  char *const at = realloc(text->at, room);
  if (at == NULL) {
    text->failed = 1;
    return 0;
  }
  text->at = at;
  text->room = room;
  return 1;
}

int text_is_full(const struct text *text) { return text->failed || (text->limit != 0 && text->size >= text->limit); }

void text_put(struct text *text, const char *bytes, size_t size) {
  if (text->limit != 0 && size > text->limit - text->size) size = text->limit - text->size;
  if (size == 0 || !make_room(text, size)) return;
  memcpy(text->at + text->size, bytes, size);
  text->size += size;
}

void text_puts(struct text *text, const char *string) { text_put(text, string, strlen(string)); }

void text_printf(struct text *text, const char *format, ...) {
  char line[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  text_puts(text, line);
}

static int is_continuation(unsigned char byte) { return (byte & 0xC0) == 0x80; }

/* Bytes of the character at `at`; 0 if there is none. */
static size_t character_size(const unsigned char *at, size_t left) {
  if (at[0] < 0x80) return 1;
  if (at[0] >= 0xC2 && at[0] <= 0xDF) return left >= 2 && is_continuation(at[1]) ? 2 : 0;
  if (at[0] >= 0xE0 && at[0] <= 0xEF) {
    if (left < 3 || !is_continuation(at[1]) || !is_continuation(at[2])) return 0;
    if (at[0] == 0xE0 && at[1] < 0xA0) return 0;
    return at[0] == 0xED && at[1] > 0x9F ? 0 : 3;
  }
  if (at[0] >= 0xF0 && at[0] <= 0xF4) {
    if (left < 4 || !is_continuation(at[1]) || !is_continuation(at[2]) || !is_continuation(at[3])) return 0;
    if (at[0] == 0xF0 && at[1] < 0x90) return 0;
    return at[0] == 0xF4 && at[1] > 0x8F ? 0 : 4;
  }
  return 0;
}

static void put_escaped(struct text *text, unsigned char byte) {
  switch (byte) {
    case '"': text_puts(text, "\\\""); break;
    case '\\': text_puts(text, "\\\\"); break;
    case '\n': text_puts(text, "\\n"); break;
    case '\r': text_puts(text, "\\r"); break;
    case '\t': text_puts(text, "\\t"); break;
    default: text_printf(text, "\\u%04x", byte);
  }
}

static void put(struct text *text, const char *bytes, size_t size, int as_json) {
  const unsigned char *at = (const unsigned char *)bytes;
  const unsigned char *const end = at + size;
  const unsigned char *plain = at; /* from here to `at` nothing needs a change */
  while (at < end && !text_is_full(text)) {
    const size_t length = character_size(at, (size_t)(end - at));
    const int is_special = as_json && (*at < 0x20 || *at == '"' || *at == '\\' || *at == 0x7F);
    if (length != 0 && !is_special) {
      at += length;
      continue;
    }
    text_put(text, (const char *)plain, (size_t)(at - plain));
    if (length == 0) text_puts(text, "\xEF\xBF\xBD");
    else put_escaped(text, *at);
    plain = ++at;
  }
  text_put(text, (const char *)plain, (size_t)(at - plain));
}

void text_put_utf8(struct text *text, const char *bytes, size_t size) { put(text, bytes, size, 0); }

void text_put_json(struct text *text, const char *bytes, size_t size) {
  text_puts(text, "\"");
  put(text, bytes, size, 1);
  text_puts(text, "\"");
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
