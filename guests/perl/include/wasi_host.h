/* SPDX-FileCopyrightText: The sandbox-workers authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Included before everything else of Perl: what its sources call and wasi-libc does not declare. The bodies are in
 * driver/host.c, driver/clock.c and driver/time_zone.c. Where wasi-libc has a function that does something else, a
 * macro puts ours in its place, so that the two never meet in the linker. */
#ifndef SW_WASI_HOST_H
#define SW_WASI_HOST_H

#include <signal.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* Files. WASI keeps no permissions: ours are invented (0644, 0755), and chmod takes any. */
int dup(int descriptor);
int dup2(int from, int to);
/* wasi-libc keeps ".." in the working folder's name, which then depends on folders that may go. */
int sw_chdir(const char *path);
#define chdir(path) sw_chdir(path)
int sw_chmod(const char *path, mode_t mode);
int sw_fchmod(int descriptor, mode_t mode);
#define chmod(path, mode) sw_chmod(path, mode)
#define fchmod(descriptor, mode) sw_fchmod(descriptor, mode)
mode_t umask(mode_t mask);
int mknod(const char *path, mode_t mode, dev_t device);
int mkstemp(char *pattern);
char *tmpnam(char *buffer);
char *ttyname(int descriptor);
int pipe(int *ends);
#ifndef LOCK_SH
#define LOCK_SH 1
#define LOCK_EX 2
#define LOCK_NB 4
#define LOCK_UN 8
#endif
int flock(int descriptor, int operation);
int sw_stat(const char *path, struct stat *result);
int sw_lstat(const char *path, struct stat *result);
int sw_fstat(int descriptor, struct stat *result);
#define stat(path, result) sw_stat(path, result)
#define lstat(path, result) sw_lstat(path, result)
#define fstat(descriptor, result) sw_fstat(descriptor, result)

/* Processes and users. There are none: one process, which is root's. */
int kill(pid_t process, int signal);
pid_t getppid(void);
uid_t getuid(void);
uid_t geteuid(void);
gid_t getgid(void);
gid_t getegid(void);
int setuid(uid_t user);
int setgid(gid_t group);
int system(const char *command);
int execv(const char *path, char *const *arguments);
int execvp(const char *file, char *const *arguments);
int execl(const char *path, const char *first, ...);
pid_t wait(int *status);
pid_t waitpid(pid_t process, int *status, int options);

/* Signals. wasi-libc emulates signal() and raise(); POSIX.xs wants the rest of the vocabulary. */
typedef unsigned long long sw_sigset_t;
#define sigset_t sw_sigset_t
#define SIG_BLOCK 0
#define SIG_UNBLOCK 1
#define SIG_SETMASK 2
typedef struct {
  int si_signo;
} siginfo_t;
struct sigaction {
  void (*sa_handler)(int);
  sigset_t sa_mask;
  int sa_flags;
};
int sigaction(int signal, const struct sigaction *action, struct sigaction *old);
int sigprocmask(int how, const sigset_t *set, sigset_t *old);
int sigpending(sigset_t *set);
int sigsuspend(const sigset_t *set);
int sigemptyset(sigset_t *set);
int sigfillset(sigset_t *set);
int sigaddset(sigset_t *set, int signal);
int sigdelset(sigset_t *set, int signal);
int sigismember(const sigset_t *set, int signal);
int pause(void);

int sw_raise(int signal);
#define raise(signal) sw_raise(signal)

/* Waiting, which a signal or the end of the run's time cuts short. */
unsigned sw_alarm(unsigned seconds);
unsigned sw_sleep(unsigned seconds);
int sw_nanosleep(const struct timespec *wanted, struct timespec *left);
int sw_clock_nanosleep(clockid_t clock, int flags, const struct timespec *wanted,
                       struct timespec *left);
/* Perl passes bit strings, and WASI's fd_set is a list of numbers. */
int sw_select(int count, void *read, void *write, void *except, struct timeval *timeout);
#define alarm(seconds) sw_alarm(seconds)
#define sleep(seconds) sw_sleep(seconds)
#define nanosleep(wanted, left) sw_nanosleep(wanted, left)
#define clock_nanosleep(clock, flags, wanted, left) sw_clock_nanosleep(clock, flags, wanted, left)
#define select(count, read, write, except, timeout) sw_select(count, read, write, except, timeout)

/* What the patches call; see driver.h. */
int sw_in_eval_of_program(void);
void sw_note_death(void *exception);
void sw_out_of_memory(void);

/* Local time, as TZ asks for; wasi-libc knows UTC only. */
extern char *sw_tzname[2];
void sw_tzset(void);
struct tm *sw_localtime(const time_t *moment);
struct tm *sw_localtime_r(const time_t *moment, struct tm *result);
time_t sw_mktime(struct tm *local);
size_t sw_strftime(char *to, size_t size, const char *format, const struct tm *moment);
#define tzname sw_tzname
#define tzset sw_tzset
#define localtime(moment) sw_localtime(moment)
#define localtime_r(moment, result) sw_localtime_r(moment, result)
#define mktime(local) sw_mktime(local)
#define strftime(to, size, format, moment) sw_strftime(to, size, format, moment)

#endif
