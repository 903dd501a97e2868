/*
 * Memory, ending, numbers, sorting, random numbers, environment.
 */
#pragma once

#include "kernel/lib/types.h"

#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
/* A server that finds nothing to serve, its device or disk not being there:
 * init does not start it again. */
#define EXIT_ABSENT 69
#define RAND_MAX    0x7fffffff

/* ---- memory (user/lib/malloc.c) ----------------------------------------- */

/* mm/'s slab allocator over sbrk. Aligned to 8 bytes. NULL and ENOMEM when
 * there is none; malloc(0) is a place of its own, to be freed like others.
 * A pointer that is not malloc's, given to free or realloc, ends the program
 * with a message. */
void *malloc(size_t size);
void *calloc(size_t n, size_t size);
void *realloc(void *p, size_t size);
void free(void *p);

/* Bytes that may be used behind a pointer: those asked for, or a few more. */
size_t malloc_usable_size(void *p);

/* Prints the allocator's own kmastat: a row for each cache that has a slab,
 * and what the heap consists of. */
void malloc_stats(void);

/* Gives free slabs, and what of them lies at the heap's end, back to the
 * system: pages by which the heap is smaller now. */
size_t malloc_trim(void);

/* NULL, or the first broken invariant of the heap; *where says where. */
const char *malloc_verify(const char **where);

/* ---- ending ------------------------------------------------------------- */

/* Runs the atexit functions, last first, flushes all streams, ends. */
void exit(int status) __attribute__((noreturn));
int atexit(void (*f)(void)); /* 8 functions; -1 and ENOMEM after that */

/* Ends with SIGILL, so that a parent sees that it was no exit. */
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

/* The value, which is the environment's own, or NULL. */
char *getenv(const char *name);
