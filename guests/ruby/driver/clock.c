/* SPDX-FileCopyrightText: The sandbox-workers authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What happens at the host's interrupts: the end of the run's time, and the timer behind Timeout (lib/timeout.rb).
 * Waiting ends early for either. */
#include <ruby.h>

#include <time.h>

#include "hrtime.h"

#include "driver.h"

/* Makes the host raise sw_timer_flag and sw_interrupt once `milliseconds` have gone by; 0 forgets an earlier wish. */
__attribute__((import_module("sw"), import_name("alarm"))) void host_alarm(unsigned long long milliseconds);

enum { kNanosecondsPerMillisecond = 1000000 };
static const rb_hrtime_t kLongestNap = 3600ULL * 1000000000;

volatile int sw_interrupt, sw_stop_flag, sw_timer_flag;
static rb_hrtime_t timer_at; /* 0: none */
static VALUE timeout;        /* the module */

static rb_hrtime_t now(void) {
  struct timespec moment;
  clock_gettime(CLOCK_MONOTONIC, &moment);
  return (rb_hrtime_t)moment.tv_sec * 1000000000 + (rb_hrtime_t)moment.tv_nsec;
}

/* Ruby calls this where it looks for interrupts, when sw_interrupt is set. */
void sw_handle_interrupt(void) {
  sw_interrupt = 0;
  if (sw_stop_flag) {
    sw_stop_flag = 0;
    rb_raise(rb_eInterrupt, "the run has reached its limit");
  }
  if (!sw_timer_flag) return;
  sw_timer_flag = 0;
  /* A call from the host may be for a timer that was set anew meanwhile. */
  if (timer_at == 0 || now() < timer_at) return;
  timer_at = 0;
  rb_funcall(timeout, rb_intern("ring"), 0);
}

void sw_forget_timer(void) {
  if (timer_at != 0) host_alarm(0);
  timer_at = 0;
  sw_timer_flag = 0;
}

/* Timeout.wake_after(seconds): calls Timeout.ring then; nil: not at all. */
static VALUE wake_after(VALUE self, VALUE seconds) {
  (void)self;
  sw_forget_timer();
  if (NIL_P(seconds)) return Qnil;
  const double wanted = NUM2DBL(seconds);
  const double longest = 1e9;
  const rb_hrtime_t span = (rb_hrtime_t)((wanted < 0 ? 0 : wanted < longest ? wanted : longest) * 1e9);
  timer_at = now() + span;
  host_alarm((span + kNanosecondsPerMillisecond - 1) / kNanosecondsPerMillisecond + 1);
  return Qnil;
}

/* NULL: for ever. May return early. */
void sw_sleep(const rb_hrtime_t *span) {
  rb_hrtime_t nap = span == NULL || *span > kLongestNap ? kLongestNap : *span;
  const rb_hrtime_t begin = now();
  if (timer_at != 0 && timer_at <= begin + nap) nap = timer_at > begin ? timer_at - begin : 0;
  const struct timespec wanted = {(time_t)(nap / 1000000000), (long)(nap % 1000000000)};
  if (!sw_interrupt && nap > 0) clock_nanosleep(CLOCK_MONOTONIC, 0, &wanted, NULL);
  if (timer_at != 0 && now() >= timer_at) sw_timer_flag = sw_interrupt = 1;
}

void sw_start_clock(void) {
  timeout = rb_define_module("Timeout");
  rb_gc_register_mark_object(timeout);
  rb_define_private_method(rb_singleton_class(timeout), "wake_after", wake_after, 1);
}
