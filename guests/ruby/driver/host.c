/* SPDX-FileCopyrightText: The sandbox-workers authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Functions that Ruby links against and WASI preview 1 cannot offer: done in another way where there is one, otherwise
 * failing with the error that says so. Ruby has weak ones for most; these are what it lacks, and what can be done
 * better. Some stand in for the C library's own. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

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
  if (from == to) return fcntl(from, F_GETFL) < 0 ? -1 : to;
  const int copy = dup(from);
  if (copy < 0 || copy == to) return copy;
  /* WASI renumbers onto open descriptors only. */
  if (__wasilibc_fd_renumber(copy, to) == 0) return to;
  close(copy);
  errno = EBADF;
  return -1;
}

/* WASI keeps no permissions: they are invented (0644, 0755; patches/0011), and chmod takes any. */
static int with_permissions(int status, struct stat *result) {
  if (status == 0 && (result->st_mode & 07777) == 0) result->st_mode |= S_ISDIR(result->st_mode) ? 0755 : 0644;
  return status;
}
int sw_stat(const char *path, struct stat *result) { return with_permissions(stat(path, result), result); }
int sw_lstat(const char *path, struct stat *result) { return with_permissions(lstat(path, result), result); }
int sw_fstat(int descriptor, struct stat *result) { return with_permissions(fstat(descriptor, result), result); }
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
/* All files belong to the one user there is: to give one to him is nothing, to others not permitted. */
int sw_chown(const char *path, uid_t owner, gid_t group) {
  struct stat found;
  if (stat(path, &found) != 0) return -1;
  if ((owner == (uid_t)-1 || owner == found.st_uid) && (group == (gid_t)-1 || group == found.st_gid)) return 0;
  errno = EPERM;
  return -1;
}
mode_t umask(mode_t mask) {
  static mode_t current = 022;
  const mode_t before = current;
  current = mask & 0777;
  return before;
}

/* Users. There is no list of them. */

struct passwd *getpwnam(const char *name) {
  (void)name;
  return NULL;
}
struct passwd *getpwuid(uid_t user) {
  (void)user;
  return NULL;
}
struct passwd *getpwent(void) { return NULL; }
void setpwent(void) {}
void endpwent(void) {}

/* Local time, as TZ asks for (common/time_zone.c). */

struct tm *sw_localtime(const time_t *moment);
struct tm *sw_localtime_r(const time_t *moment, struct tm *result);
time_t sw_mktime(struct tm *local);
struct tm *localtime(const time_t *moment) { return sw_localtime(moment); }
struct tm *localtime_r(const time_t *moment, struct tm *result) { return sw_localtime_r(moment, result); }
time_t mktime(struct tm *local) { return sw_mktime(local); }
