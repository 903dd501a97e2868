/*
 * Tests of malloc and the layers below it.
 *
 * Tests: user/lib/malloc*.c, user/lib/mm_*.c, user/lib/scratch.c
 */
#include "mm/inspect/kmem_stat.h"
#include "user/lib/heap.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"
#include "user/tests/libtest/libtest.h"

#define BLOCKS 300

static uint8_t *block[BLOCKS];
static size_t length[BLOCKS];

static void check_heap(void)
{
    const char *where;

    CHECK(malloc_verify(&where) == NULL);
}

static void fill(size_t i, size_t n)
{
    length[i] = n;
    if (block[i] != NULL)
        memset(block[i], (int)(i * 7 + 1), n);
}

static bool intact(size_t i)
{
    for (size_t at = 0; at < length[i]; at++)
        if (block[i][at] != (uint8_t)(i * 7 + 1))
            return false;
    return true;
}

static void free_all(void)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        CHECK(intact(i));
        free(block[i]);
        block[i] = NULL;
        length[i] = 0;
    }
    check_heap();
}

/* Sizes around every class, and of whole pages: blocks are aligned, do not
 * overlap, and are usable. */
TEST(malloc, sizes)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        size_t n = i < 160 ? i : (i - 160) * 131;

        block[i] = malloc(n);
        CHECK(block[i] != NULL);
        CHECK((uintptr_t)block[i] % 8 == 0);
        CHECK(malloc_usable_size(block[i]) >= n);
        fill(i, n);
    }
    check_heap();
    free_all();
}

static size_t random_size(void)
{
    switch (rand() % 8) {
    case 0:
        return (size_t)rand() % 40000;
    case 1:
        return (size_t)rand() % 9300;
    default:
        return (size_t)rand() % 600;
    }
}

/* One step: allocates a block, frees it, or changes its size. */
static void random_step(size_t i)
{
    size_t n = random_size();
    uint8_t *p;

    CHECK(intact(i));
    if (block[i] == NULL) {
        block[i] = malloc(n);
        fill(i, n);
    } else if (rand() % 3 != 0) {
        free(block[i]);
        block[i] = NULL;
        length[i] = 0;
    } else {
        p = realloc(block[i], n);
        CHECK(p != NULL);
        length[i] = MIN(length[i], n);
        block[i] = p;
        CHECK(intact(i));
        fill(i, n);
    }
}

TEST(malloc, random_use)
{
    srand(1994);
    for (unsigned i = 0; i < 20000; i++) {
        random_step((size_t)rand() % BLOCKS);
        if (i % 1000 == 0)
            check_heap();
    }
    free_all();
}

TEST(malloc, nothing)
{
    char *a = malloc(0);
    char *b = malloc(0);

    CHECK(a != NULL && b != NULL && a != b);
    free(a);
    free(b);
    free(NULL);
    CHECK(malloc_usable_size(NULL) == 0);
    a = realloc(NULL, 10);
    CHECK(a != NULL);
    a = realloc(a, 0);
    CHECK(a != NULL);
    free(a);
}

TEST(malloc, zeroes)
{
    uint8_t *p = malloc(3000);
    size_t set = 0;

    memset(p, 0xff, 3000);
    free(p);
    p = calloc(30, 100);
    CHECK(p != NULL);
    for (size_t i = 0; i < 3000; i++)
        set += p[i] != 0;
    CHECK(set == 0);
    free(p);
}

TEST(malloc, too_much)
{
    void *p = malloc(100);

    errno = 0;
    CHECK(malloc(0xffffffffu) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(malloc(0x7fffffffu) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(calloc(0x10001, 0x10000) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(realloc(p, 0xf0000000u) == NULL && errno == ENOMEM);
    free(p);
    check_heap();
}

/* Free pages at the end of the heap are returned at once; free slabs by
 * malloc_trim. */
TEST(malloc, returns_pages)
{
    const char *before, *most;
    void *p;

    malloc_trim();
    before = sbrk(0);
    p = malloc(1000000);
    most = sbrk(0);
    CHECK(most >= before + 900000);
    free(p);
    CHECK(sbrk(0) <= (void *)(before + 128 * 1024));
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = malloc(2000);
        fill(i, 2000);
    }
    most = sbrk(0);
    free_all();
    CHECK(malloc_trim() > 0);
    CHECK((char *)sbrk(0) < most);
    check_heap();
}

/* Other code uses sbrk too. */
TEST(malloc, foreign_break)
{
    uint8_t *mine[3];
    void *p[3];
    bool same = true;

    for (size_t i = 0; i < 3; i++) {
        mine[i] = sbrk(5001);
        memset(mine[i], 0x5a, 5001);
        p[i] = malloc(200000);
        CHECK(p[i] != NULL);
        memset(p[i], 0xa5, 200000);
    }
    check_heap();
    for (size_t i = 0; i < 3; i++)
        free(p[i]);
    malloc_trim();
    for (size_t i = 0; i < 3; i++)
        for (size_t at = 0; at < 5001; at++)
            same &= mine[i][at] == 0x5a;
    CHECK(same);
    p[0] = malloc(300000);
    memset(p[0], 1, 300000);
    free(p[0]);
    check_heap();
}

#define PIECE (64 * 1024)

/* The heap outgrows the page array while runs are free: they are still known,
 * and the addresses of the old array are free. (In a child, with its own.) */
static void outgrow_array(void)
{
    struct page *before = page_array;
    const char *where;
    char *large = NULL;

    for (size_t i = 0; i < 8; i++)
        block[i] = malloc(PIECE);
    for (size_t i = 0; i < 8; i += 2)
        free(block[i]);
    for (size_t n = PIECE; page_array == before; n *= 2) {
        free(large);
        large = malloc(n);
        if (large == NULL)
            _exit(1);
    }
    if (malloc_verify(&where) != NULL || (char *)malloc(PIECE) > large)
        _exit(2);
    free(block[1]);
    free(large);
    if (malloc_verify(&where) != NULL)
        _exit(3);
    if ((char *)mmap(PAGE_SIZE, PROT_READ) > (char *)page_array)
        _exit(4);
    _exit(0);
}

TEST(malloc, array_moves)
{
    CHECK(test_in_child(outgrow_array) == 0);
}

/* Allocates untouched blocks of 1 MiB until no more is promised. Free slabs
 * must have been reclaimed by then. */
static void take_everything(void)
{
    static void *large[1200];
    struct kmem_cache_stat stat;
    const char *where;
    size_t n = 0;

    for (size_t i = 0; i < BLOCKS; i++)
        block[i] = malloc(2000);
    for (size_t i = 0; i < BLOCKS; i++)
        free(block[i]);
    while (n < ARRAY_SIZE(large) && (large[n] = malloc(1 << 20)) != NULL)
        n++;
    if (n < 10 || n == ARRAY_SIZE(large) || errno != ENOMEM)
        _exit(1);
    kmem_cache_stat(kmem_size_class(2000), &stat);
    if (malloc_verify(&where) != NULL || stat.stat_free_slabs != 0)
        _exit(2);
    if (malloc(10000) == NULL)
        _exit(3);
    while (n > 0)
        free(large[--n]);
    if (malloc_verify(&where) != NULL || malloc(1 << 20) == NULL)
        _exit(4);
    _exit(0);
}

TEST(malloc, out_of_memory)
{
    CHECK(test_in_child(take_everything) == 0);
}

/* malloc_verify must find damage. */
TEST(malloc, broken_heap)
{
    void *p = malloc(100000);
    struct page *page = page_array + page_count;
    const char *where;
    void *pages;

    while ((--page)->page_state != PAGE_FREE)
        CHECK(page > page_array);
    check_heap();
    pages = page->page_owner;
    page->page_owner = (char *)pages + 1;
    CHECK(malloc_verify(&where) != NULL);
    page->page_owner = pages;
    page->page_state = PAGE_ALLOC;
    CHECK(malloc_verify(&where) != NULL);
    page->page_state = PAGE_FREE;
    check_heap();
    free(p);
}

static void free_of_nonsense(void)
{
    int local = 0;

    free(&local);
}

static void free_of_inside(void)
{
    char *p = malloc(20000);

    free(p + 4096);
}

static void free_of_code(void)
{
    free((void *)free_of_code);
}

static void free_twice(void)
{
    char *p = malloc(20000);

    free(p);
    free(p);
}

/* Frees a small block twice: not the first one of its slab's freelist. */
static void free_small_twice(void)
{
    char *p = malloc(40);
    char *q = malloc(40);

    free(p);
    free(q);
    free(p);
}

/* Frees a block twice that the hash table of its class finds. */
static void free_medium_twice(void)
{
    char *p = malloc(1000);

    free(p);
    free(p);
}

static void free_of_moved(void)
{
    char *p = malloc(40);

    if (realloc(p, 4000) != p)
        free(p);
}

/* Frees blocks in use whose last words are like the links of free ones. */
static void free_of_lookalike(void)
{
    char *p = malloc(40);
    char *q = malloc(40);

    memset(p, 0, 40);
    memcpy(q + 40 - sizeof(p), &p, sizeof(p));
    free(p);
    free(q);
}

TEST(malloc, wrong_frees)
{
    CHECK(WTERMSIG(test_in_child(free_of_nonsense)) == SIGILL);
    CHECK(WTERMSIG(test_in_child(free_of_inside)) == SIGILL);
    CHECK(WTERMSIG(test_in_child(free_of_code)) == SIGILL);
    CHECK(WTERMSIG(test_in_child(free_twice)) == SIGILL);
    CHECK(WTERMSIG(test_in_child(free_small_twice)) == SIGILL);
    CHECK(WTERMSIG(test_in_child(free_medium_twice)) == SIGILL);
    CHECK(WTERMSIG(test_in_child(free_of_moved)) == SIGILL);
    CHECK(test_in_child(free_of_lookalike) == 0);
}
