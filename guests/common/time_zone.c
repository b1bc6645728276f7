/* SPDX-FileCopyrightText: The sandbox-workers authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Local time as the environment variable TZ asks for: a POSIX zone ("CET-1CEST,M3.5.0,M10.5.0/3", "UTC+3") or a name of
 * the zone database ("Europe/Berlin"), which the host shows at /usr/share/zoneinfo. Anything else is UTC, as on
 * Linux. wasi-libc knows UTC only; guests are compiled with macros that put these functions in place of its own. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#undef localtime
#undef localtime_r
#undef mktime
#undef tzset
#undef tzname
#undef strftime
#undef stat
#undef fstat

enum { kNameMax = 15, kDaySeconds = 86400 };

struct kind {
  int32_t offset; /* seconds east of UTC */
  int is_daylight;
  char name[kNameMax + 1];
};

struct day { /* a date of each year: Mm.w.d, Jn or n */
  char form;
  int month, week, weekday, number;
  int32_t seconds; /* of local time */
};

struct rule {
  struct kind standard, daylight;
  int has_daylight;
  struct day begin, end;
};

static struct zone {
  char *text; /* of TZ; NULL: never read */
  size_t count;
  int64_t *at;         /* moments of change, ascending */
  unsigned char *type; /* the kind from each on */
  struct kind *kinds;
  size_t kind_count;
  int has_rule;
  struct rule rule; /* after the last change */
} zone;

char *sw_tzname[2];

static const struct kind kUtc = {0, 0, "UTC"};

/* POSIX zones */

static const char *read_name(const char *at, char *name) {
  size_t size = 0;
  const char *begin = at;
  if (*at == '<') {
    begin = ++at;
    while (*at != '>' && *at != '\0') at++;
    if (*at == '\0') return NULL;
    size = (size_t)(at++ - begin);
  } else {
    while ((*at | 0x20) >= 'a' && (*at | 0x20) <= 'z') at++;
    size = (size_t)(at - begin);
    if (size < 3) return NULL;
  }
  if (size == 0 || size > kNameMax) return NULL;
  memcpy(name, begin, size);
  name[size] = '\0';
  return at;
}

static const char *read_number(const char *at, int max, int *value) {
  const char *const begin = at;
  *value = 0;
  while (*at >= '0' && *at <= '9' && at - begin < 4) *value = *value * 10 + (*at++ - '0');
  return at == begin || *value > max ? NULL : at;
}

/* [+-]h[:m[:s]] */
static const char *read_time(const char *at, int32_t *seconds) {
  const int sign = *at == '-' ? -1 : 1;
  if (*at == '-' || *at == '+') at++;
  int part = 0;
  at = read_number(at, 167, &part);
  if (at == NULL) return NULL;
  *seconds = part * 3600;
  for (int unit = 60; unit >= 1 && *at == ':'; unit /= 60) {
    at = read_number(at + 1, 59, &part);
    if (at == NULL) return NULL;
    *seconds += part * unit;
  }
  *seconds *= sign;
  return at;
}

static const char *read_day(const char *at, struct day *day) {
  if (*at++ != ',') return NULL;
  day->form = *at == 'M' || *at == 'J' ? *at++ : 'n';
  if (day->form == 'M') {
    at = read_number(at, 12, &day->month);
    if (at == NULL || day->month < 1 || *at++ != '.') return NULL;
    at = read_number(at, 5, &day->week);
    if (at == NULL || day->week < 1 || *at++ != '.') return NULL;
    at = read_number(at, 6, &day->weekday);
  } else {
    at = read_number(at, 365, &day->number);
  }
  if (at == NULL) return NULL;
  day->seconds = 7200;
  return *at == '/' ? read_time(at + 1, &day->seconds) : at;
}

static int read_rule(const char *text, struct rule *rule) {
  memset(rule, 0, sizeof *rule);
  int32_t behind = 0;
  const char *at = read_name(text, rule->standard.name);
  if (at == NULL) return 0;
  if (*at == '\0') return 0; /* a bare name is one of the database */
  at = read_time(at, &behind);
  if (at == NULL) return 0;
  rule->standard.offset = -behind;
  if (*at == '\0') return 1;
  rule->has_daylight = rule->daylight.is_daylight = 1;
  at = read_name(at, rule->daylight.name);
  if (at == NULL) return 0;
  rule->daylight.offset = rule->standard.offset + 3600;
  if (*at != ',' && *at != '\0') {
    at = read_time(at, &behind);
    if (at == NULL) return 0;
    rule->daylight.offset = -behind;
  }
  if (*at == '\0') at = ",M3.2.0,M11.1.0"; /* what POSIX leaves open, as others fill it */
  at = read_day(at, &rule->begin);
  if (at == NULL) return 0;
  at = read_day(at, &rule->end);
  return at != NULL && *at == '\0';
}

static int is_leap(int64_t year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

static int64_t local_moment(const struct day *day, int64_t year) {
  static const int kBefore[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};
  struct tm first = {.tm_year = (int)(year - 1900), .tm_mday = 1};
  int64_t moment = timegm(&first);
  if (day->form == 'n') moment += (int64_t)day->number * kDaySeconds;
  if (day->form == 'J') {
    moment += (int64_t)(day->number - 1 + (is_leap(year) && day->number >= 60)) * kDaySeconds;
  }
  if (day->form == 'M') {
    const int leap = is_leap(year) && day->month > 2;
    const int length = kBefore[day->month] - kBefore[day->month - 1] + (is_leap(year) && day->month == 2);
    const int days_before = kBefore[day->month - 1] + leap;
    const int weekday_of_first = (first.tm_wday + days_before) % 7;
    int date = (day->weekday - weekday_of_first + 7) % 7 + 7 * (day->week - 1);
    while (date >= length) date -= 7;
    moment += (int64_t)(days_before + date) * kDaySeconds;
  }
  return moment + day->seconds;
}

static const struct kind *kind_by_rule(const struct rule *rule, int64_t moment) {
  if (!rule->has_daylight) return &rule->standard;
  const time_t local = moment + rule->standard.offset;
  struct tm date;
  if (gmtime_r(&local, &date) == NULL) return &rule->standard;
  const int64_t year = date.tm_year + 1900LL;
  const int64_t begin = local_moment(&rule->begin, year) - rule->standard.offset;
  const int64_t end = local_moment(&rule->end, year) - rule->daylight.offset;
  const int is_daylight =
      begin < end ? moment >= begin && moment < end : moment >= begin || moment < end;
  return is_daylight ? &rule->daylight : &rule->standard;
}

/* The zone database's files */

struct bytes {
  const unsigned char *at, *end;
  int failed;
};

static int64_t take(struct bytes *in, size_t size) {
  if ((size_t)(in->end - in->at) < size) {
    in->failed = 1;
    return 0;
  }
  uint64_t value = *in->at >= 0x80 ? ~0ULL : 0;
  while (size-- > 0) value = value << 8 | *in->at++;
  return (int64_t)value;
}
static void skip(struct bytes *in, uint64_t size) {
  if ((uint64_t)(in->end - in->at) < size) in->failed = 1;
  else in->at += size;
}

struct counts {
  uint32_t utc, standard, leap, times, types, names;
};

static struct counts take_counts(struct bytes *in) {
  struct counts counts;
  skip(in, 20); /* magic, version, reserved */
  uint32_t *const all[] = {&counts.utc, &counts.standard, &counts.leap, &counts.times, &counts.types, &counts.names};
  for (size_t i = 0; i < 6; i++) *all[i] = (uint32_t)take(in, 4) & 0xFFFF;
  return counts;
}

static int read_zone(struct bytes *in) {
  if (in->end - in->at < 44 || memcmp(in->at, "TZif", 4) != 0) return 0;
  /* The first block has 32-bit times; the second, with 64 bits, says all of it and more. */
  const struct counts old = take_counts(in);
  skip(in, old.times * 5ULL + old.types * 6ULL + old.names + old.leap * 8ULL + old.standard + old.utc);
  const struct counts counts = take_counts(in);
  if (in->failed || counts.types == 0) return 0;
  zone.at = calloc(counts.times + 1, sizeof *zone.at);
  zone.type = calloc(counts.times + 1, 1);
  zone.kinds = calloc(counts.types, sizeof *zone.kinds);
  unsigned char *const names = calloc(counts.types, 1);
  if (zone.at == NULL || zone.type == NULL || zone.kinds == NULL || names == NULL) {
    free(names);
    return 0;
  }
  for (uint32_t i = 0; i < counts.times; i++) zone.at[i] = take(in, 8);
  for (uint32_t i = 0; i < counts.times; i++) {
    zone.type[i] = (unsigned char)take(in, 1);
    if (zone.type[i] >= counts.types) in->failed = 1;
  }
  for (uint32_t i = 0; i < counts.types; i++) {
    zone.kinds[i].offset = (int32_t)take(in, 4);
    zone.kinds[i].is_daylight = (int)take(in, 1) != 0;
    names[i] = (unsigned char)take(in, 1);
  }
  for (uint32_t i = 0; i < counts.types && !in->failed; i++) {
    if (names[i] < counts.names && in->end - in->at >= (ptrdiff_t)counts.names) {
      snprintf(zone.kinds[i].name, sizeof zone.kinds[i].name, "%.*s", (int)(counts.names - names[i]),
               (const char *)in->at + names[i]);
    }
  }
  free(names);
  skip(in, counts.names + counts.leap * 12ULL + counts.standard + counts.utc + 1);
  if (in->failed) return 0;
  zone.count = counts.times;
  zone.kind_count = counts.types;
  char footer[128] = "";
  const size_t left = (size_t)(in->end - in->at);
  const unsigned char *const line = memchr(in->at, '\n', left);
  if (line != NULL && (size_t)(line - in->at) < sizeof footer) memcpy(footer, in->at, (size_t)(line - in->at));
  zone.has_rule = read_rule(footer, &zone.rule);
  return 1;
}

static int load(const char *name) {
  char path[96];
  if (*name == '\0' || strlen(name) > 64 || *name == '/' || strstr(name, "..") != NULL) return 0;
  snprintf(path, sizeof path, "/usr/share/zoneinfo/%s", name);
  const int file = open(path, O_RDONLY);
  if (file < 0) return 0;
  struct stat about;
  int good = 0;
  if (fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size < 1 << 20) {
    unsigned char *const buffer = malloc((size_t)about.st_size + 1);
    if (buffer != NULL) {
      const ssize_t size = read(file, buffer, (size_t)about.st_size);
      struct bytes in = {buffer, buffer + (size > 0 ? size : 0), 0};
      good = read_zone(&in);
      free(buffer);
    }
  }
  close(file);
  return good;
}

static const struct kind *kind_at(int64_t moment) {
  size_t low = 0;
  size_t high = zone.count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (zone.at[middle] <= moment) low = middle + 1;
    else high = middle;
  }
  if (low == zone.count && zone.has_rule) return kind_by_rule(&zone.rule, moment);
  if (zone.kind_count == 0) return &kUtc;
  if (low > 0) return &zone.kinds[zone.type[low - 1]];
  /* Before the first change: the first kind that is no daylight saving time. */
  for (size_t i = 0; i < zone.kind_count; i++) {
    if (!zone.kinds[i].is_daylight) return &zone.kinds[i];
  }
  return &zone.kinds[0];
}

static void name_kinds(void) {
  static struct kind shown[2];
  shown[0] = shown[1] = kUtc;
  if (zone.has_rule) {
    shown[0] = zone.rule.standard;
    shown[1] = zone.rule.has_daylight ? zone.rule.daylight : zone.rule.standard;
  } else if (zone.kind_count > 0) {
    for (size_t i = 0; i < zone.kind_count; i++) shown[zone.kinds[i].is_daylight != 0] = zone.kinds[i];
  }
  sw_tzname[0] = shown[0].name;
  sw_tzname[1] = shown[1].name;
}

void sw_tzset(void) {
  const char *text = getenv("TZ");
  if (text == NULL) text = "";
  if (zone.text != NULL && strcmp(zone.text, text) == 0) return;
  free(zone.text);
  free(zone.at);
  free(zone.type);
  free(zone.kinds);
  memset(&zone, 0, sizeof zone);
  zone.text = strdup(text);
  if (*text == ':') text++;
  zone.has_rule = read_rule(text, &zone.rule);
  if (!zone.has_rule && !load(text)) zone.count = zone.kind_count = 0;
  name_kinds();
}

struct tm *sw_localtime_r(const time_t *moment, struct tm *result) {
  sw_tzset();
  const struct kind *const kind = kind_at(*moment);
  const time_t local = *moment + kind->offset;
  if (gmtime_r(&local, result) == NULL) return NULL;
  result->tm_isdst = kind->is_daylight;
  result->__tm_gmtoff = kind->offset;
  result->__tm_zone = kind->name;
  return result;
}

struct tm *sw_localtime(const time_t *moment) {
  static struct tm result;
  return sw_localtime_r(moment, &result);
}

time_t sw_mktime(struct tm *local) {
  sw_tzset();
  struct tm copy = *local;
  const int64_t seconds = timegm(&copy);
  const struct kind *const before = kind_at(seconds - kDaySeconds);
  const struct kind *const after = kind_at(seconds + kDaySeconds);
  const int before_fits = kind_at(seconds - before->offset)->offset == before->offset;
  const int after_fits = kind_at(seconds - after->offset)->offset == after->offset;
  const struct kind *chosen = before_fits || !after_fits ? before : after;
  /* An hour that comes twice: the caller may say which. */
  if (before_fits && after_fits && local->tm_isdst >= 0 && before->is_daylight != (local->tm_isdst > 0)) {
    chosen = after;
  }
  const time_t moment = seconds - chosen->offset;
  return sw_localtime_r(&moment, local) == NULL ? (time_t)-1 : moment;
}

/* %Z and %z here, all else by the library, which does not know zones. */
size_t sw_strftime(char *to, size_t size, const char *format, const struct tm *moment) {
  const size_t room = strlen(format) * 8 + 64;
  char *const expanded = malloc(room);
  if (expanded == NULL) return 0;
  size_t length = 0;
  for (; *format != '\0' && length + kNameMax + 2 < room; format++) {
    if (format[0] == '%' && format[1] == 'Z') {
      const char *const name = moment->__tm_zone != NULL ? moment->__tm_zone : "UTC";
      if (moment->tm_isdst >= 0) length += (size_t)snprintf(expanded + length, room - length, "%.15s", name);
      format++;
    } else if (format[0] == '%' && format[1] == 'z') {
      const int minutes = moment->__tm_gmtoff / 60;
      const int size_of = minutes < 0 ? -minutes : minutes;
      if (moment->tm_isdst >= 0) {
        length += (size_t)snprintf(expanded + length, room - length, "%c%02d%02d", minutes < 0 ? '-' : '+',
                                   size_of / 60 % 100, size_of % 60);
      }
      format++;
    } else {
      expanded[length++] = *format;
      if (format[0] == '%' && format[1] != '\0') expanded[length++] = *++format;
    }
  }
  expanded[length] = '\0';
  const size_t written = length == 0 ? 0 : strftime(to, size, expanded, moment);
  if (length == 0 && size > 0) *to = '\0';
  free(expanded);
  return written;
}
