/*
 * The handle table of a task: small numbers for objects.
 *
 * A table belongs to its task alone, so it needs no lock: only the task itself
 * changes it, or whoever holds that task blocked (a message that passes a
 * handle, the kernel shell that looks). For the same reason handle_object()
 * returns a borrowed pointer: nobody else can close the handle meanwhile.
 */
#pragma once

#include "kernel/task/object.h"

#define HANDLE_CLOEXEC 1u /* closed by exec */
#define HANDLE_RECEIVE 2u /* of a port: this task may receive there */

struct handle {
    struct object *handle_object; /* NULL: free */
    uint32_t handle_flags;
};

#define HANDLES_INLINE 16 /* without a second allocation */

struct handle_table {
    uint32_t table_size; /* slots */
    uint32_t table_used;
    uint32_t table_lowest; /* no number below it is free */
    struct handle *table_slot;
    struct handle table_first[HANDLES_INLINE];
};

/* The cache. Boot only. */
void handle_init(void);

/* An empty table, NULL if there is no memory. */
struct handle_table *handle_table_create(void);

/* A table with the same handles, those with HANDLE_CLOEXEC too, each with a
 * reference of its own; NULL if there is no memory. */
struct handle_table *handle_table_copy(const struct handle_table *from);

/* Closes every handle and ends the table. May sleep. */
void handle_table_destroy(struct handle_table *t);

/* Closes those with HANDLE_CLOEXEC: exec. May sleep. */
void handle_close_on_exec(struct handle_table *t);

/* Gives `o` the lowest free number of at least `least`; the table takes over
 * the caller's reference. Returns it, or -EMFILE, -ENOMEM: then the reference
 * is still the caller's. */
int handle_install(struct handle_table *t, int least, struct object *o,
                   uint32_t flags);

/* Makes sure that the next `n` handle_installs with least 0 succeed. Returns
 * 0, -EMFILE or -ENOMEM. (Check first, then commit.) */
int handle_reserve(struct handle_table *t, unsigned n);

/* Puts `o` at number `h` (0 … HANDLES_MAX - 1), closing what was there. Takes
 * over the reference unless it fails: -EBADF, -ENOMEM. May sleep. */
int handle_install_at(struct handle_table *t, int h, struct object *o,
                      uint32_t flags);

/* The slot of an open handle, or NULL. */
static inline struct handle *handle_slot(const struct handle_table *t, int h)
{
    if ((uint32_t)h >= t->table_size || t->table_slot[h].handle_object == NULL)
        return NULL;
    return &t->table_slot[h];
}

/* The object behind a handle, borrowed; NULL if there is none, or it is not of
 * `type` (NULL: any). */
static inline struct object *handle_object(const struct handle_table *t, int h,
                                           const struct object_type *type)
{
    const struct handle *slot = handle_slot(t, h);

    if (slot == NULL ||
        (type != NULL && slot->handle_object->object_type != type))
        return NULL;
    return slot->handle_object;
}

/* Ends a handle: 0 or -EBADF. May sleep. */
int handle_close(struct handle_table *t, int h);

/* Ends it without dropping the reference, which is the caller's now. NULL if
 * there is no such handle. */
struct object *handle_take(struct handle_table *t, int h);

/* NULL, or the first broken invariant of a table that does not change. */
const char *handle_verify(const struct handle_table *t);
