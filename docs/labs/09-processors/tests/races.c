/*
 * Tests of lab 9, tasks 9.8 to 9.10: structures that two processors use. Each
 * hunt tries every instruction at which the second can come in.
 */
#include "docs/labs/09-processors/services/hunt.h"
#include "docs/labs/09-processors/services/shared.h"
#include "tools/workshop/labs/lab.h"
#include "kernel/lib/symbol.h"
#include "mm/inspect/kmem_stat.h"

#define SECONDS    10
#define SAME(a, b) KT_EQ(KT_PTR(a), KT_PTR(b))

static void expect_none(const char *name)
{
    struct hunt_result r;
    char where[64];

    lab_seconds(SECONDS);
    hunt_run(hunt_find(name), &r);
    KT_REQUIRE(r.result_memory);
    if (r.result_wrong != NULL)
        KT_FAIL("the other processor comes in after %u instructions, before "
                "%s: %s (`hunt %s` shows it)",
                r.result_after,
                symbol_format(r.result_next, where, sizeof(where)),
                r.result_wrong, name);
}

LAB_TEST(9, ring, LAB_UP)
{
    struct ring r = {.ring_head = 0};
    char items[RING_SLOTS + 1];

    for (unsigned turn = 0; turn < 3; turn++) {
        SAME(ring_get(&r), NULL);
        for (unsigned i = 0; i < RING_SLOTS; i++)
            KT_TRUE(ring_put(&r, &items[i]));
        KT_TRUE(!ring_put(&r, &items[RING_SLOTS]));
        SAME(ring_get(&r), &items[0]);
        KT_TRUE(ring_put(&r, &items[RING_SLOTS]));
        for (unsigned i = 1; i <= RING_SLOTS; i++)
            SAME(ring_get(&r), &items[i]);
    }
    expect_none("ring");
}

LAB_TEST(9, stack, LAB_UP)
{
    struct stack s = {NULL};
    struct node n[3];

    SAME(stack_pop(&s), NULL);
    for (unsigned i = 0; i < 3; i++)
        stack_push(&s, &n[i]);
    for (unsigned i = 3; i-- > 0;)
        SAME(stack_pop(&s), &n[i]);
    SAME(stack_pop(&s), NULL);
    expect_none("pop");
    expect_none("push");
}

static uint64_t tables_made(void)
{
    struct kmem_cache_stat st;

    kmem_cache_stat(squares_cache, &st);
    return st.stat_allocs;
}

LAB_TEST(9, squares, LAB_UP)
{
    const struct squares *s;

    squares_cache = kmem_cache_create("squares", sizeof(*s), 0, NULL, NULL);
    KT_REQUIRE(squares_cache != NULL);
    s = squares_get();
    KT_TRUE(s != NULL);
    SAME(squares_get(), s);
    KT_EQ(tables_made(), 1);
    squares_drop();
    KT_EQ(kmem_cache_destroy(squares_cache), 0);
    expect_none("squares");
}
