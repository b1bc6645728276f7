/* SPDX-FileCopyrightText: The sandbox-workers authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Waiting and alarms. A wait ends early when the host asks the run to stop, or when an alarm goes off: Perl's
 * pending signals are dealt with right here, so a handler that dies does so out of sleep. */
#include "EXTERN.h"
#include "perl.h"

#include <errno.h>
#include <time.h>

#include "driver.h"

#undef nanosleep
#undef clock_nanosleep
#undef raise

/* Makes the host raise *flag and PL_sig_pending once `milliseconds` have gone by; 0 forgets an earlier wish. */
__attribute__((import_module("sw"), import_name("alarm"))) void host_alarm(unsigned long long milliseconds);

/* wasi-libc aborts where a signal's own action is to end the process. Here it ends the cell, as exit does. */
int sw_raise(int number) {
  dTHX;
  if (number == SIGKILL || number == SIGSTOP) my_exit(128 + (U32)number); /* what nothing can handle */
  void (*const handler)(int) = signal(number, SIG_DFL);
  if (handler == SIG_ERR) return -1;
  (void)signal(number, handler);
  const int is_ignored = number == SIGCHLD || number == SIGCONT || number == SIGURG || number == SIGWINCH;
  if (handler == SIG_DFL && !is_ignored) my_exit(128 + (U32)number);
  return raise(number);
}

typedef long long Nanoseconds;
enum { kNanosecondsPerSecond = 1000000000 };

static Nanoseconds now(void) {
  struct timespec moment;
  clock_gettime(CLOCK_MONOTONIC, &moment);
  return moment.tv_sec * (Nanoseconds)kNanosecondsPerSecond + moment.tv_nsec;
}

static Nanoseconds alarm_at; /* 0: none */

volatile int sw_alarm_flag;

void sw_forget_alarm(void) {
  if (alarm_at != 0) host_alarm(0);
  alarm_at = 0;
  sw_alarm_flag = 0;
}

void sw_ring_alarm(void) {
  sw_alarm_flag = 0;
  /* A call from the host may be an alarm's that was set anew meanwhile. */
  if (alarm_at == 0 || now() < alarm_at) return;
  alarm_at = 0;
  sw_raise(SIGALRM);
}

unsigned sw_alarm(unsigned seconds) {
  const Nanoseconds left = alarm_at == 0 ? 0 : alarm_at - now();
  alarm_at = seconds == 0 ? 0 : now() + seconds * (Nanoseconds)kNanosecondsPerSecond;
  host_alarm(seconds * 1000ULL);
  if (left <= 0) return 0;
  return (unsigned)((left + kNanosecondsPerSecond - 1) / kNanosecondsPerSecond);
}

static void handle_signals(void) {
  dTHX;
  if (alarm_at != 0 && now() >= alarm_at) sw_alarm_flag = 1;
  if (sw_alarm_flag) PL_sig_pending = 1;
  PERL_ASYNC_CHECK();
}

/* Sleeps until `until` or until a signal was handled; returns what is left of the time. */
static Nanoseconds wait_until(Nanoseconds until) {
  for (;;) {
    const Nanoseconds left = until - now();
    if (left <= 0) return 0;
    Nanoseconds nap = left;
    if (alarm_at != 0 && alarm_at - now() < nap) nap = alarm_at - now();
    if (nap > 0) {
      const struct timespec wanted = {nap / kNanosecondsPerSecond, nap % kNanosecondsPerSecond};
      clock_nanosleep(CLOCK_MONOTONIC, 0, &wanted, NULL);
    }
    const int rang = PL_sig_pending || (alarm_at != 0 && now() >= alarm_at);
    handle_signals();
    if (rang) return until > now() ? until - now() : 0;
  }
}

static Nanoseconds span_of(const struct timespec *time) {
  const Nanoseconds longest = 1LL << 61;
  if (time->tv_sec > longest / kNanosecondsPerSecond) return longest;
  return time->tv_sec * (Nanoseconds)kNanosecondsPerSecond + time->tv_nsec;
}

int sw_nanosleep(const struct timespec *wanted, struct timespec *left) {
  if (wanted->tv_sec < 0 || wanted->tv_nsec < 0 || wanted->tv_nsec >= kNanosecondsPerSecond) {
    errno = EINVAL;
    return -1;
  }
  const Nanoseconds rest = wait_until(now() + span_of(wanted));
  if (left != NULL) *left = (struct timespec){rest / kNanosecondsPerSecond, rest % kNanosecondsPerSecond};
  if (rest == 0) return 0;
  errno = EINTR;
  return -1;
}

int sw_clock_nanosleep(clockid_t clock, int flags, const struct timespec *wanted, struct timespec *left) {
  struct timespec span = *wanted;
  if (flags & TIMER_ABSTIME) {
    struct timespec moment;
    clock_gettime(clock, &moment);
    const Nanoseconds until = span_of(wanted) - span_of(&moment);
    if (until <= 0) return 0;
    span = (struct timespec){until / kNanosecondsPerSecond, until % kNanosecondsPerSecond};
  }
  return sw_nanosleep(&span, left) == 0 ? 0 : errno;
}

unsigned sw_sleep(unsigned seconds) {
  const Nanoseconds rest = wait_until(now() + seconds * (Nanoseconds)kNanosecondsPerSecond);
  return (unsigned)((rest + kNanosecondsPerSecond / 2) / kNanosecondsPerSecond);
}

/* Files and the standard streams are always ready, and there is nothing else. */
int sw_select(int count, void *read, void *write, void *except, struct timeval *timeout) {
  const int bytes = (count + 7) / 8;
  int ready = 0;
  for (int i = 0; i < bytes; i++) {
    if (read != NULL) ready += __builtin_popcount(((unsigned char *)read)[i]);
    if (write != NULL) ready += __builtin_popcount(((unsigned char *)write)[i]);
    if (except != NULL) ((unsigned char *)except)[i] = 0;
  }
  if (ready > 0) return ready;
  struct timespec span = {1 << 30, 0};
  if (timeout != NULL) span = (struct timespec){timeout->tv_sec, timeout->tv_usec * 1000L};
  return sw_nanosleep(&span, NULL);
}
