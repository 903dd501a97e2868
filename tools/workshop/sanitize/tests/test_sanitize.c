/*
 * The sanitizers' run time: each mistake causes its report, and correct code
 * causes none. Only in kernels built with it.
 */
#ifdef CONFIG_SANITIZE
#include "tools/workshop/ktest/ktest.h"
#include "kernel/lib/string.h"
#include "tools/workshop/sanitize/kasan.h"
#include "tools/workshop/sanitize/mistakes.h"
#include "kernel/task/task.h"
#include "kernel/vm/user.h"
#include "mm/buddy.h"
#include "mm/kmem.h"

KTEST(sanitize, every_mistake_is_reported_and_named)
{
    for (size_t i = 0; i < mistake_count; i++) {
        const struct mistake *m = &mistakes[i];
        struct sanitizer_report r;

        if (strcmp(m->mistake_kind, "division") == 0)
            continue; /* the processor would fault */
        sanitizer_expect(&r);
        m->mistake_make();
        sanitizer_expect(NULL);
        if (r.report_count == 0)
            KT_FAIL("%s: no sanitizer reported it", m->mistake_name);
        else if (strcmp(r.report_kind, m->mistake_kind) != 0)
            KT_FAIL("%s: reported as %s: %s", m->mistake_name, r.report_kind,
                    r.report_text);
    }
}

static __attribute__((noipa)) uint32_t read_at(const char *p, size_t size)
{
    return size == 1   ? *(const volatile uint8_t *)p
           : size == 2 ? *(const volatile uint16_t *)p
                       : *(const volatile uint32_t *)p;
}

/* Each access beyond the end of an object of `size` bytes is reported, at the
 * first byte past the end, and no other access is. */
static void try_all(size_t size)
{
    char *p = kmem_zalloc(size, KM_SLEEP);
    struct sanitizer_report r;

    for (size_t width = 1; width <= 4; width *= 2) {
        for (size_t at = 0; at < size + width; at += width) {
            bool beyond = at + width > size;

            sanitizer_expect(&r);
            read_at(p + at, width);
            sanitizer_expect(NULL);
            KT_EQ(r.report_count, beyond);
            if (beyond && r.report_count != 0) {
                KT_EQ(r.report_addr, (uintptr_t)p + MAX(at, size));
                KT_EQ(r.report_size, width);
                KT_TRUE(!r.report_write);
            }
        }
    }
    kmem_free(p, size);
}

KTEST(sanitize, objects_end_to_the_byte)
{
    for (size_t size = 1; size <= 40; size++)
        try_all(size);
    try_all(KMEM_MAXBUF + 5);
}

KTEST(sanitize, the_whole_of_an_object_again_and_again)
{
    static const size_t sizes[] = {1, 8, 100, 512, 1000, 4096, 20000};
    struct sanitizer_report r;

    sanitizer_expect(&r);
    for (size_t i = 0; i < 3 * ARRAY_SIZE(sizes); i++) {
        size_t size = sizes[i % ARRAY_SIZE(sizes)];
        char *p = kmem_alloc(size, KM_SLEEP);

        memset(p, (int)i, size);
        KT_EQ(memcmp(p, p, size), 0);
        kmem_free(p, size);
    }
    sanitizer_expect(NULL);
    KT_EQ(r.report_count, 0);
}

KTEST(sanitize, pages_until_they_are_free)
{
    struct page *p = buddy_alloc_run(3);
    struct sanitizer_report r;
    char *at;

    KT_REQUIRE(p != NULL);
    at = page_to_virt(p);
    sanitizer_expect(&r);
    memset(at, 0, 3 * PAGE_SIZE);
    KT_EQ(r.report_count, 0);
    buddy_free_run(p, 3);
    read_at(at + 2 * PAGE_SIZE, 4);
    sanitizer_expect(NULL);
    KT_EQ(r.report_count, 1);
    KT_EQ(r.report_addr, (uintptr_t)at + 2 * PAGE_SIZE);
}

static volatile int deepest = 16;

/* Fills much of a stack with arrays and ends without returning. */
static __attribute__((noipa)) void leave_arrays(int depth)
{
    char array[64];

    memset(array, depth, sizeof(array));
    if (depth == deepest)
        task_exit(0);
    if (depth < deepest)
        leave_arrays(depth + 1);
    read_at(array, 4);
}

static void die_deep(void *arg)
{
    (void)arg;
    leave_arrays(0);
}

static void use_whole_stack(void *arg)
{
    char bytes[2048];

    memset(bytes, 0, sizeof(bytes));
    *(volatile char *)arg = bytes[1000];
}

KTEST(sanitize, a_stack_is_clean_for_its_next_task)
{
    struct sanitizer_report r;
    char result = 1;
    int status;

    sanitizer_expect(&r);
    for (int i = 0; i < 4; i++) {
        struct task *t =
            task_create("stack", i % 2 == 0 ? die_deep : use_whole_stack,
                        &result, PRIORITY_KERNEL);

        if (t != NULL)
            task_wait(t->task_pid, &status, 0);
    }
    sanitizer_expect(NULL);
    KT_EQ(r.report_count, 0);
    KT_EQ(result, 0);
}

static void *way_back[5];
static const char *dead_array;

static __attribute__((noipa)) void jump_back(void)
{
    char array[64];

    memset(array, 1, sizeof(array));
    dead_array = array;
    __builtin_longjmp(way_back, 1);
}

/* The room below an array, closed while its function runs, is opened when that
 * ends without returning. */
KTEST(sanitize, a_jump_leaves_nothing_closed)
{
    struct sanitizer_report r;

    sanitizer_expect(&r);
    if (__builtin_setjmp(way_back) == 0)
        jump_back();
    read_at(dead_array - 8, 4);
    sanitizer_expect(NULL);
    KT_EQ(r.report_count, 0);
}

KTEST(sanitize, a_free_object_may_not_be_read_and_a_new_one_may)
{
    struct kmem_cache *cp =
        kmem_cache_create("test_sanitize", 24, 0, NULL, NULL);
    struct sanitizer_report r;
    char *first;
    char *second;

    KT_REQUIRE(cp != NULL);
    first = kmem_cache_alloc(cp, KM_SLEEP);
    sanitizer_expect(&r);
    kmem_cache_free(cp, first);
    read_at(first, 4);
    KT_EQ(r.report_count, 1);
    sanitizer_expect(&r);
    second = kmem_cache_alloc(cp, KM_SLEEP);
    KT_TRUE(first == second);
    read_at(first, 4);
    KT_EQ(r.report_count, 0);
    sanitizer_expect(NULL);
    kmem_cache_free(cp, second);
    KT_EQ(kmem_cache_destroy(cp), 0);
}
#endif
