/*
 * Objects that handles refer to: open files, pipe ends, ports.
 *
 * Each kind has its own slab cache and begins with a struct object. The object
 * returns to its cache when the last reference is dropped.
 */
#pragma once

#include "kernel/lib/types.h"

struct object;

/* Functions of a kind of object, called as handles to it come and go. */
struct object_type {
    const char *type_name; /* for `files`: "file", "pipe", "port" */
    /* Drops the last reference. May sleep. */
    void (*type_release)(struct object *o);
    /* A handle with these flags has been created, or closed. May be NULL. */
    void (*type_open)(struct object *o, uint32_t flags);
    void (*type_close)(struct object *o, uint32_t flags);
};

struct object {
    const struct object_type *object_type;
    uint32_t object_refs; /* changed only by these functions */
};

static inline void object_init(struct object *o, const struct object_type *type)
{
    o->object_type = type;
    o->object_refs = 1;
}

static inline struct object *object_get(struct object *o)
{
    __atomic_add_fetch(&o->object_refs, 1, __ATOMIC_RELAXED);
    return o;
}

/* For an object in a list from which type_release removes it. False: its last
 * reference was dropped. */
static inline bool object_get_live(struct object *o)
{
    uint32_t refs = o->object_refs;

    while (refs != 0 &&
           !__atomic_compare_exchange_n(&o->object_refs, &refs, refs + 1, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
    return refs != 0;
}

/* May sleep: dropping the last reference releases the object. */
static inline void object_put(struct object *o)
{
    if (__atomic_sub_fetch(&o->object_refs, 1, __ATOMIC_ACQ_REL) == 0)
        o->object_type->type_release(o);
}
