/*
 * Memory, exit, numbers, sorting, random numbers, environment.
 */
#pragma once

#include "kernel/lib/types.h"

#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
/* Exit status of a server whose device or disk does not exist: init does not
 * restart it. */
#define EXIT_ABSENT 69
#define RAND_MAX    0x7fffffff

/* ---- memory (user/lib/malloc.c) ----------------------------------------- */

/* mm/'s slab allocator over sbrk. Aligned to 8 bytes. NULL and ENOMEM without
 * memory; malloc(0) returns a block, to be freed like others. Freeing or
 * reallocating a pointer not from malloc ends the program with a message. */
void *malloc(size_t size);
void *calloc(size_t n, size_t size);
void *realloc(void *p, size_t size);
void free(void *p);

/* Usable bytes of a block: those requested, or more. */
size_t malloc_usable_size(void *p);

/* Prints the allocator's statistics: a row for each cache with slabs, and a
 * summary of the heap. */
void malloc_stats(void);

/* Frees free slabs and returns pages at the heap's end to the system. Returns
 * the pages by which the heap shrank. */
size_t malloc_trim(void);

/* NULL, or the first broken invariant of the heap; *where says where. */
const char *malloc_verify(const char **where);

/* ---- ending ------------------------------------------------------------- */

/* Runs the atexit functions, last first, flushes all streams, and exits. */
void exit(int status) __attribute__((noreturn));
int atexit(void (*f)(void)); /* 8 functions; -1 and ENOMEM after that */

/* Ends with SIGILL, so that a parent can tell it from an exit. */
void abort(void) __attribute__((noreturn));

/* ---- numbers ------------------------------------------------------------ */

int atoi(const char *s);
long strtol(const char *s, char **end, int base);
unsigned long strtoul(const char *s, char **end, int base);
int abs(int n);

/* xorshift32: the same numbers for the same seed, everywhere. */
void srand(unsigned seed);
int rand(void);

/* ---- arrays ------------------------------------------------------------- */

typedef int compare_t(const void *a, const void *b);

/* Heap sort: n log n always, no memory, no recursion; not stable. */
void qsort(void *base, size_t n, size_t size, compare_t *compare);
void *bsearch(const void *key, const void *base, size_t n, size_t size,
              compare_t *compare);

/* ---- environment -------------------------------------------------------- */

/* The value, in the environment's own memory, or NULL. */
char *getenv(const char *name);
