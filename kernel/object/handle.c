/*
 * Handle tables.
 *
 * A table has HANDLES_INLINE slots inside it, enough for most tasks. A table
 * that needs more moves all slots to memory of twice the size, up to
 * HANDLES_MAX, and keeps that until it is destroyed. In its constructed state a
 * table is empty and uses the slots inside it.
 *
 * A slot is emptied before its object is released: releasing may sleep, and no
 * other code may then find the handle.
 */
#include "kernel/task/cache.h"
#include "kernel/object/handle.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/types.h"
#include "kernel/lib/string.h"
#include "mm/kmem.h"

static struct kmem_cache *handle_cache;

/* ---- tables ------------------------------------------------------------- */

static void use_inline(struct handle_table *t)
{
    t->table_size = HANDLES_INLINE;
    t->table_used = 0;
    t->table_lowest = 0;
    t->table_slot = t->table_first;
}

static void handles_construct(void *obj, size_t size)
{
    memset(obj, 0, size);
    use_inline(obj);
}

void handle_init(void)
{
    handle_cache = cache_create("handle_table", sizeof(struct handle_table), 0,
                                handles_construct, NULL);
}

struct handle_table *handle_table_create(void)
{
    return kmem_cache_alloc(handle_cache, KM_NOSLEEP);
}

/* Returns an empty table to its cache. */
static void handles_discard(struct handle_table *t)
{
    if (t->table_slot != t->table_first)
        kmem_free(t->table_slot, t->table_size * sizeof(struct handle));
    use_inline(t);
    kmem_cache_free(handle_cache, t);
}

/* Grows to at least `size` slots (at most HANDLES_MAX). Returns 0 or -ENOMEM.
 * The new slots are published before the new size, so a reader that preempts
 * this sees only valid slots. */
static int handles_grow(struct handle_table *t, uint32_t size)
{
    uint32_t to = t->table_size;
    struct handle *old = t->table_slot;
    size_t bytes = t->table_size * sizeof(struct handle);
    struct handle *slot;

    if (size <= to)
        return 0;
    while (to < size)
        to *= 2;
    slot = kmem_zalloc(to * sizeof(struct handle), KM_NOSLEEP);
    if (slot == NULL)
        return -ENOMEM;
    memcpy(slot, old, bytes);
    __atomic_store_n(&t->table_slot, slot, __ATOMIC_RELEASE);
    __atomic_store_n(&t->table_size, to, __ATOMIC_RELEASE);
    if (old == t->table_first)
        memset(old, 0, bytes);
    else
        kmem_free(old, bytes);
    return 0;
}

/* ---- slots -------------------------------------------------------------- */

static inline void handle_fill(struct handle_table *t, uint32_t h,
                               struct object *o, uint32_t flags)
{
    t->table_slot[h] = (struct handle){o, flags};
    t->table_used++;
    if (unlikely(o->object_type->type_open != NULL))
        o->object_type->type_open(o, flags);
}

/* Empties the slot of an open handle. The caller gets its reference. */
static inline struct object *empty(struct handle_table *t, struct handle *slot)
{
    uint32_t h = (uint32_t)(slot - t->table_slot);
    struct object *o = slot->handle_object;

    slot->handle_object = NULL;
    t->table_used--;
    if (h < t->table_lowest)
        t->table_lowest = h;
    if (unlikely(o->object_type->type_close != NULL))
        o->object_type->type_close(o, slot->handle_flags);
    return o;
}

struct handle_table *handle_table_copy(const struct handle_table *from)
{
    struct handle_table *t = handle_table_create();

    if (t == NULL)
        return NULL;
    if (handles_grow(t, from->table_size) != 0) {
        handles_discard(t);
        return NULL;
    }
    for (uint32_t h = 0; h < from->table_size; h++) {
        const struct handle *slot = &from->table_slot[h];

        if (slot->handle_object != NULL)
            handle_fill(t, h, object_get(slot->handle_object),
                        slot->handle_flags);
    }
    return t;
}

/* Closes the handles whose flags have all of `flags`. */
static void close_matching(struct handle_table *t, uint32_t flags)
{
    for (uint32_t h = 0; t->table_used > 0 && h < t->table_size; h++) {
        struct handle *slot = &t->table_slot[h];

        if (slot->handle_object != NULL &&
            (slot->handle_flags & flags) == flags)
            object_put(empty(t, slot));
    }
}

void handle_table_destroy(struct handle_table *t)
{
    close_matching(t, 0);
    handles_discard(t);
}

void handle_close_on_exec(struct handle_table *t)
{
    close_matching(t, HANDLE_CLOEXEC);
}

int handle_install(struct handle_table *t, struct object *o, uint32_t flags)
{
    uint32_t h = t->table_lowest;

    while (h < t->table_size && t->table_slot[h].handle_object != NULL)
        h++;
    if (unlikely(h >= t->table_size)) {
        if (h >= HANDLES_MAX)
            return -EMFILE;
        if (handles_grow(t, h + 1) != 0)
            return -ENOMEM;
    }
    t->table_lowest = h + 1;
    handle_fill(t, h, o, flags);
    return (int)h;
}

int handle_add(struct handle_table *t, struct object *o, uint32_t flags)
{
    int h = handle_install(t, o, flags);

    if (h < 0)
        object_put(o);
    return h;
}

int handle_reserve(struct handle_table *t, unsigned n)
{
    if (likely(n <= t->table_size - t->table_used))
        return 0;
    if (n > HANDLES_MAX - t->table_used)
        return -EMFILE;
    return handles_grow(t, t->table_used + n);
}

int handle_install_at(struct handle_table *t, int h, struct object *o,
                      uint32_t flags)
{
    struct handle *slot;

    if ((uint32_t)h >= HANDLES_MAX)
        return -EBADF;
    if (handles_grow(t, (uint32_t)h + 1) != 0)
        return -ENOMEM;
    /* Point of no return. */
    slot = &t->table_slot[h];
    if (slot->handle_object != NULL) {
        struct object *old = empty(t, slot);

        handle_fill(t, (uint32_t)h, o, flags);
        object_put(old);
    } else {
        handle_fill(t, (uint32_t)h, o, flags);
    }
    return 0;
}

int handle_close(struct handle_table *t, int h)
{
    struct handle *slot = handle_slot(t, h);

    if (slot == NULL)
        return -EBADF;
    object_put(empty(t, slot));
    return 0;
}

const char *handle_verify(const struct handle_table *t)
{
    uint32_t used = 0;

    if (t->table_size < HANDLES_INLINE || t->table_size > HANDLES_MAX)
        return "the size of a handle table is out of bounds";
    if ((t->table_slot == t->table_first) != (t->table_size == HANDLES_INLINE))
        return "a handle table's slots do not match its size";
    for (uint32_t h = 0; h < t->table_size; h++) {
        const struct object *o = t->table_slot[h].handle_object;

        used += o != NULL;
        if (o == NULL && h < t->table_lowest)
            return "a handle below the lowest free one is free";
        if (o != NULL && o->object_refs == 0)
            return "a handle refers to an object without references";
    }
    return used == t->table_used ? NULL : "a handle table's count is wrong";
}
