/* SPDX-FileCopyrightText: The sandbox-workers authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Functions that Perl links against and WASI preview 1 cannot offer: done in another way where there is one, otherwise
 * failing with the error that says so. */
#include "wasi_host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#undef stat
#undef lstat
#undef fstat
#undef chdir

#define NOT_HERE(declaration) \
  declaration {               \
    errno = ENOSYS;           \
    return -1;                \
  }

/* Files */

/* The one file function beyond WASI: another descriptor for an open file, or a negative errno. */
__attribute__((import_module("sw"), import_name("fd_dup"))) int host_fd_dup(int descriptor);
int __wasilibc_fd_renumber(int from, int to);

int dup(int descriptor) {
  const int copy = host_fd_dup(descriptor);
  if (copy >= 0) return copy;
  errno = -copy;
  return -1;
}

int dup2(int from, int to) {
  if (from == to) return fcntl(from, F_GETFD) < 0 ? -1 : to;
  /* WASI renumbers onto open descriptors only; opening files until the number is reached makes it one. */
  int filler[64];
  int fillers = 0;
  while (fcntl(to, F_GETFD) < 0) {
    const int copy = dup(from);
    if (copy < 0) break;
    if (copy == to) {
      while (fillers > 0) close(filler[--fillers]);
      return to;
    }
    if (copy > to || fillers == 64) {
      close(copy);
      errno = EBADF;
      break;
    }
    filler[fillers++] = copy;
  }
  int copy = -1;
  if (fcntl(to, F_GETFD) >= 0) {
    copy = dup(from);
    if (copy >= 0 && __wasilibc_fd_renumber(copy, to) != 0) {
      close(copy);
      copy = -1;
    }
  }
  while (fillers > 0) close(filler[--fillers]);
  return copy < 0 ? -1 : to;
}

static int with_permissions(int status, struct stat *result) {
  if (status == 0 && (result->st_mode & 07777) == 0) result->st_mode |= S_ISDIR(result->st_mode) ? 0755 : 0644;
  return status;
}
int sw_stat(const char *path, struct stat *result) { return with_permissions(stat(path, result), result); }
int sw_lstat(const char *path, struct stat *result) { return with_permissions(lstat(path, result), result); }
int sw_fstat(int descriptor, struct stat *result) { return with_permissions(fstat(descriptor, result), result); }

/* The path without ".", ".." and doubled slashes, as an absolute one. Links are taken for folders. */
static int plain_path(const char *path, char *plain, size_t room) {
  size_t length = 0;
  if (*path != '/') {
    if (getcwd(plain, room) == NULL) return -1;
    length = strlen(plain);
    if (length == 1) length = 0;
  }
  while (*path != '\0') {
    const size_t size = strcspn(path, "/");
    if (size == 2 && path[0] == '.' && path[1] == '.') {
      while (length > 0 && plain[--length] != '/') continue;
    } else if (size > 0 && !(size == 1 && *path == '.')) {
      if (length + size + 2 > room) {
        errno = ENAMETOOLONG;
        return -1;
      }
      plain[length++] = '/';
      memcpy(plain + length, path, size);
      length += size;
    }
    path += size + (path[size] == '/');
  }
  if (length == 0) plain[length++] = '/';
  plain[length] = '\0';
  return 0;
}

int sw_chdir(const char *path) {
  char plain[4097];
  if (*path == '\0') {
    errno = ENOENT;
    return -1;
  }
  return plain_path(path, plain, sizeof plain) != 0 ? -1 : chdir(plain);
}

int sw_chmod(const char *path, mode_t mode) {
  struct stat found;
  (void)mode;
  return stat(path, &found);
}
int sw_fchmod(int descriptor, mode_t mode) {
  struct stat found;
  (void)mode;
  return fstat(descriptor, &found);
}
mode_t umask(mode_t mask) {
  static mode_t current = 022;
  const mode_t before = current;
  current = mask & 0777;
  return before;
}

/* Nobody else has the file. */
int flock(int descriptor, int operation) {
  (void)operation;
  return fcntl(descriptor, F_GETFD) < 0 ? -1 : 0;
}

int mkstemp(char *pattern) {
  static const char kLetters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
  const size_t length = strlen(pattern);
  if (length < 6 || strcmp(pattern + length - 6, "XXXXXX") != 0) {
    errno = EINVAL;
    return -1;
  }
  for (int attempt = 0; attempt < 100; attempt++) {
    unsigned char random[6];
    if (getentropy(random, sizeof random) != 0) return -1;
    for (size_t i = 0; i < 6; i++) pattern[length - 6 + i] = kLetters[random[i] % 36];
    const int file = open(pattern, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (file >= 0 || errno != EEXIST) return file;
  }
  return -1;
}

char *tmpnam(char *buffer) {
  (void)buffer;
  errno = ENOSYS;
  return NULL;
}
char *ttyname(int descriptor) {
  (void)descriptor;
  errno = ENOTTY;
  return NULL;
}
NOT_HERE(int mknod(const char *path, mode_t mode, dev_t device))
NOT_HERE(int pipe(int *ends))

/* Processes and users */

int kill(pid_t process, int signal) {
  if (process != getpid() && process != 0) {
    errno = ESRCH;
    return -1;
  }
  return signal == 0 ? 0 : sw_raise(signal);
}
pid_t getppid(void) { return 0; }
uid_t getuid(void) { return 0; }
uid_t geteuid(void) { return 0; }
gid_t getgid(void) { return 0; }
gid_t getegid(void) { return 0; }
NOT_HERE(int setuid(uid_t user))
NOT_HERE(int setgid(gid_t group))
NOT_HERE(int system(const char *command))
NOT_HERE(int execv(const char *path, char *const *arguments))
NOT_HERE(int execvp(const char *file, char *const *arguments))
NOT_HERE(int execl(const char *path, const char *first, ...))
pid_t wait(int *status) {
  (void)status;
  errno = ECHILD;
  return -1;
}
pid_t waitpid(pid_t process, int *status, int options) {
  (void)process, (void)options;
  return wait(status);
}

/* Signals */

NOT_HERE(int sigaction(int signal, const struct sigaction *action, struct sigaction *old))
NOT_HERE(int sigsuspend(const sigset_t *set))
NOT_HERE(int pause(void))
int sigprocmask(int how, const sigset_t *set, sigset_t *old) {
  (void)how, (void)set;
  if (old != NULL) *old = 0;
  return 0;
}
int sigpending(sigset_t *set) {
  *set = 0;
  return 0;
}
int sigemptyset(sigset_t *set) {
  *set = 0;
  return 0;
}
int sigfillset(sigset_t *set) {
  *set = ~0ULL;
  return 0;
}
static int is_signal(int signal) {
  if (signal >= 1 && signal <= 64) return 1;
  errno = EINVAL;
  return 0;
}
int sigaddset(sigset_t *set, int signal) {
  if (!is_signal(signal)) return -1;
  *set |= 1ULL << (signal - 1);
  return 0;
}
int sigdelset(sigset_t *set, int signal) {
  if (!is_signal(signal)) return -1;
  *set &= ~(1ULL << (signal - 1));
  return 0;
}
int sigismember(const sigset_t *set, int signal) {
  return is_signal(signal) ? (int)(*set >> (signal - 1) & 1) : -1;
}
