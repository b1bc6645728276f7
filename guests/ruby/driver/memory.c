/* SPDX-FileCopyrightText: The sandbox-workers authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Memory. The C library's own allocator rounds sizes up to powers of two and never joins what was freed; this one is
 * Doug Lea's. Pages of Ruby's heap have the size and alignment of pages of the linear memory and are taken from there
 * without any loss (patches/0012). */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "wasm/machine.h"

enum { kPageBytes = 1 << 16, kSparePages = 16 };

struct page {
  struct page *next;
};
static struct page *free_pages;
/* Kept for the time when there is no other memory. */
static struct page *reserve;
static size_t reserved;
static bool is_released;

static void put(struct page **list, struct page *page) {
  page->next = *list;
  *list = page;
}

static struct page *take(struct page **list) {
  struct page *const page = *list;
  if (page != NULL) *list = page->next;
  return page;
}

static void *grow(size_t pages) {
  const size_t before = __builtin_wasm_memory_grow(0, pages);
  return before == SIZE_MAX ? NULL : (void *)(before * kPageBytes);
}

static struct page *take_unreserved_page(void) {
  struct page *const page = take(&free_pages);
  return page != NULL ? page : grow(1);
}

void *rb_wasm_take_page(void) {
  struct page *page = take_unreserved_page();
  if (page == NULL && is_released && (page = take(&reserve)) != NULL) reserved--;
  return page;
}

void rb_wasm_give_page(void *page) { put(&free_pages, page); }

static bool keep_reserve(size_t pages) {
  for (; reserved < pages; reserved++) {
    struct page *const page = take_unreserved_page();
    if (page == NULL) return false;
    put(&reserve, page);
  }
  return true;
}

static size_t pages_of(size_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes; }

bool rb_wasm_may_grow(size_t bytes) { return is_released || keep_reserve(pages_of(bytes)); }

void rb_wasm_release_reserve(void) { is_released = true; }

void rb_wasm_renew_reserve(size_t bytes) {
  /* What has just been released is not taken back before it was of use. */
  if (!is_released || !keep_reserve(pages_of(bytes) + kSparePages)) return;
  for (int i = 0; i < kSparePages; i++, reserved--) put(&free_pages, take(&reserve));
  is_released = false;
}

/* As sbrk(), but for places that need not follow one another; 0 asks for the end of the last. */
static void *more_core(ptrdiff_t bytes) {
  static char *end;
  if (bytes == 0) return end;
  char *const begin = bytes < 0 ? NULL : bytes == kPageBytes ? rb_wasm_take_page() : grow(pages_of((size_t)bytes));
  if (begin == NULL) return (void *)SIZE_MAX;
  end = begin + bytes;
  return begin;
}

#define USE_DL_PREFIX 1
#define DLMALLOC_EXPORT static
#define NO_MALLINFO 1
#define NO_MALLOC_STATS 1
#define HAVE_MMAP 0
#define MORECORE more_core
#define MORECORE_CONTIGUOUS 0
#define MORECORE_CANNOT_TRIM 1
#define DEFAULT_GRANULARITY ((size_t)kPageBytes)
#define malloc_getpagesize ((size_t)kPageBytes)
#define MALLOC_ALIGNMENT ((size_t)16)
#define ABORT __builtin_trap()
#define LACKS_TIME_H 1 /* its seed is no matter of chance */
#define LACKS_SYS_MMAN_H 1
#define LACKS_FCNTL_H 1
#define LACKS_SYS_PARAM_H 1
/* Not what wasi-libc added: it would take all memory up to what MORECORE(0) says for its own. */
#define __wasilibc_unmodified_upstream 1
static size_t dlmalloc_usable_size(void *at);
#include "dlmalloc.c"

void *malloc(size_t size) { return dlmalloc(size); }
void free(void *at) { dlfree(at); }
void *calloc(size_t count, size_t size) { return dlcalloc(count, size); }
void *realloc(void *at, size_t size) { return dlrealloc(at, size); }
int posix_memalign(void **at, size_t alignment, size_t size) { return dlposix_memalign(at, alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) { return dlmemalign(alignment, size); }
void *memalign(size_t alignment, size_t size) { return dlmemalign(alignment, size); }
size_t malloc_usable_size(void *at) { return dlmalloc_usable_size(at); }
void *reallocarray(void *at, size_t count, size_t size) {
  size_t bytes;
  if (!__builtin_mul_overflow(count, size, &bytes)) return dlrealloc(at, bytes);
  errno = ENOMEM;
  return NULL;
}
