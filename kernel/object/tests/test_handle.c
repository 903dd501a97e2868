/*
 * Handle tables (kernel/object/handle.c), with objects that count what happens
 * to them.
 */
#include "kernel/object/handle.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/types.h"
#include "tools/workshop/ktest/ktest.h"

static struct {
    int released, opened, closed;
    uint32_t flags; /* of the last handle made or ended */
} seen;

static void release(struct object *o)
{
    (void)o;
    seen.released++;
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
static const struct object_type plain = {"plain", release, NULL, NULL};

static void destroy(void *table)
{
    handle_table_destroy(table);
}

/* A table in which handles 0 … n-1 are open, all to `o`. */
static struct handle_table *table_with(struct object *o, int n)
{
    struct handle_table *t = handle_table_create();

    seen.released = seen.opened = seen.closed = 0;
    object_init(o, &counted);
    for (int i = 0; t != NULL && i < n; i++)
        KT_EQ(handle_install(t, 0, object_get(o), 0), i);
    return t;
}

KTEST(handle, lowest_free_number)
{
    struct object o;
    struct handle_table *t = table_with(&o, 5);

    KT_REQUIRE(t != NULL);
    KT_EQ(handle_close(t, 1), 0);
    KT_EQ(handle_close(t, 3), 0);
    KT_EQ(handle_install(t, 2, object_get(&o), 0), 3);
    KT_EQ(handle_install(t, 0, object_get(&o), 0), 1);
    KT_EQ(handle_install(t, 0, object_get(&o), 0), 5);
    KT_EQ(handle_install(t, 40, object_get(&o), 0), 40);
    KT_EQ(t->table_used, 7);
    KT_TRUE(handle_verify(t) == NULL);
    handle_table_destroy(t);
    KT_EQ(o.object_refs, 1);
    KT_EQ(seen.opened, seen.closed);
}

KTEST(handle, all_numbers_and_no_more)
{
    struct object o;
    struct handle_table *t = table_with(&o, HANDLES_MAX);

    KT_REQUIRE(t != NULL);
    KT_EQ(o.object_refs, HANDLES_MAX + 1);
    KT_EQ(handle_install(t, 0, &o, 0), -EMFILE);
    KT_EQ(handle_install(t, HANDLES_MAX, &o, 0), -EMFILE);
    KT_EQ(handle_install(t, -1, &o, 0), -EMFILE);
    KT_EQ(handle_reserve(t, 1), -EMFILE);
    KT_EQ(o.object_refs, HANDLES_MAX + 1);
    KT_EQ(handle_close(t, 200), 0);
    KT_EQ(handle_reserve(t, 1), 0);
    KT_EQ(handle_reserve(t, 2), -EMFILE);
    KT_EQ(handle_install(t, 0, object_get(&o), 0), 200);
    KT_TRUE(handle_verify(t) == NULL);
    handle_table_destroy(t);
    KT_EQ(o.object_refs, 1);
}

KTEST(handle, wrong_numbers)
{
    struct object o;
    struct handle_table *t = table_with(&o, 1);

    KT_REQUIRE(t != NULL);
    KT_EQ(handle_close(t, -1), -EBADF);
    KT_EQ(handle_close(t, 1), -EBADF);
    KT_EQ(handle_close(t, INT32_MAX), -EBADF);
    KT_TRUE(handle_slot(t, HANDLES_MAX) == NULL);
    KT_TRUE(handle_object(t, 0, &counted) == &o);
    KT_TRUE(handle_object(t, 0, NULL) == &o);
    KT_TRUE(handle_object(t, 0, &plain) == NULL);
    KT_EQ(handle_install_at(t, HANDLES_MAX, &o, 0), -EBADF);
    KT_EQ(handle_install_at(t, -1, &o, 0), -EBADF);
    KT_EQ(o.object_refs, 2);
    handle_table_destroy(t);
}

KTEST(handle, install_at_closes_the_old_handle)
{
    struct object o, other;
    struct handle_table *t = table_with(&o, 2);

    KT_REQUIRE(t != NULL);
    object_init(&other, &plain);
    KT_EQ(handle_install_at(t, 1, object_get(&other), 0), 0);
    KT_EQ(o.object_refs, 2);
    KT_EQ(seen.closed, 1);
    KT_EQ(handle_install_at(t, 100, object_get(&other), 0), 0);
    KT_EQ(t->table_used, 3);
    KT_EQ(other.object_refs, 3);
    KT_TRUE(handle_verify(t) == NULL);
    handle_table_destroy(t);
    KT_EQ(other.object_refs, 1);
    KT_EQ(o.object_refs, 1);
    KT_EQ(seen.released, 0);
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
