/*
 * Handle tables: copies, exec and the verifier, with objects that count what
 * happens to them. What each call does is tested by usertests (t_handle.c).
 */
#include "kernel/object/handle.h"
#include "tools/workshop/ktest/ktest.h"

static struct {
    int opened, closed;
    uint32_t flags; /* of the last handle made or ended */
} seen;

static void release(struct object *o)
{
    (void)o;
}

static void note_open(struct object *o, uint32_t flags)
{
    (void)o;
    seen.opened++;
    seen.flags = flags;
}

static void note_close(struct object *o, uint32_t flags)
{
    (void)o;
    seen.closed++;
    seen.flags = flags;
}

static const struct object_type counted = {"counted", release, note_open,
                                           note_close};

static void destroy(void *table)
{
    handle_table_destroy(table);
}

/* A table in which handles 0 … n-1 are open, all to `o`. */
static struct handle_table *table_with(struct object *o, int n)
{
    struct handle_table *t = handle_table_create();

    seen.opened = seen.closed = 0;
    object_init(o, &counted);
    for (int i = 0; t != NULL && i < n; i++)
        KT_EQ(handle_install(t, object_get(o), 0), i);
    return t;
}

KTEST(handle, copy_and_close_on_exec)
{
    struct object o;
    struct handle_table *t = table_with(&o, 20);
    struct handle_table *copy;

    KT_REQUIRE(t != NULL);
    t->table_slot[7].handle_flags = HANDLE_CLOEXEC;
    t->table_slot[19].handle_flags = HANDLE_CLOEXEC | HANDLE_RECEIVE;
    ktest_undo(destroy, t);
    copy = handle_table_copy(t);
    KT_REQUIRE(copy != NULL);
    KT_EQ(o.object_refs, 41);
    KT_EQ(seen.opened, 40);
    KT_EQ(copy->table_slot[7].handle_flags, HANDLE_CLOEXEC);
    handle_close_on_exec(t);
    KT_EQ(seen.closed, 2);
    KT_EQ(seen.flags, HANDLE_CLOEXEC | HANDLE_RECEIVE);
    KT_TRUE(handle_slot(t, 7) == NULL && handle_slot(t, 19) == NULL);
    KT_TRUE(handle_slot(copy, 7) != NULL);
    KT_TRUE(handle_verify(t) == NULL && handle_verify(copy) == NULL);
    handle_table_destroy(copy);
    handle_table_destroy(t);
    KT_EQ(o.object_refs, 1);
}

KTEST(handle, verify_finds_a_wrong_count)
{
    struct object o;
    struct handle_table *t = table_with(&o, 3);

    KT_REQUIRE(t != NULL);
    t->table_used = 2;
    KT_TRUE(handle_verify(t) != NULL);
    t->table_used = 3;
    KT_TRUE(handle_verify(t) == NULL);
    handle_table_destroy(t);
}
