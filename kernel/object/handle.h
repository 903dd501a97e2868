/*
 * The handle table of a task: small numbers that refer to objects.
 *
 * A table needs no lock. Only its own task changes it, or code that holds that
 * task blocked (a message that carries a handle). For the same reason
 * handle_object() returns a borrowed pointer: no other task can close the
 * handle meanwhile.
 */
#pragma once

#include "kernel/object/object.h"

#define HANDLE_CLOEXEC 1u /* closed by exec */
#define HANDLE_RECEIVE 2u /* of a port: the task may receive on it */

struct handle {
    struct object *handle_object; /* NULL: free */
    uint32_t handle_flags;
};

#define HANDLES_INLINE 16 /* slots inside the table */

struct handle_table {
    uint32_t table_size; /* slots */
    uint32_t table_used;
    uint32_t table_lowest; /* every number below it is in use */
    struct handle *table_slot;
    struct handle table_first[HANDLES_INLINE];
};

/* Creates the cache. Boot only. */
void handle_init(void);

/* An empty table, or NULL: no memory. */
struct handle_table *handle_table_create(void);

/* A copy of the table, including handles with HANDLE_CLOEXEC, with its own
 * references. NULL: no memory. */
struct handle_table *handle_table_copy(const struct handle_table *from);

/* Closes every handle and frees the table. May sleep. */
void handle_table_destroy(struct handle_table *t);

/* For exec: closes the handles with HANDLE_CLOEXEC. May sleep. */
void handle_close_on_exec(struct handle_table *t);

/* Gives `o` the lowest free number; the table takes over the caller's
 * reference. Returns the number, or -EMFILE or -ENOMEM; the caller then keeps
 * the reference. */
int handle_install(struct handle_table *t, struct object *o, uint32_t flags);

/* The same; drops the reference if it fails. */
int handle_add(struct handle_table *t, struct object *o, uint32_t flags);

/* Ensures that the next `n` calls of handle_install succeed, so that a system
 * call can check first and commit later. Returns 0, -EMFILE or -ENOMEM. */
int handle_reserve(struct handle_table *t, unsigned n);

/* Puts `o` at number `h` (0 to HANDLES_MAX - 1) and closes what was there.
 * Takes over the reference unless it fails: -EBADF, -ENOMEM. May sleep. */
int handle_install_at(struct handle_table *t, int h, struct object *o,
                      uint32_t flags);

/* The slot of an open handle, or NULL. */
static inline struct handle *handle_slot(const struct handle_table *t, int h)
{
    if ((uint32_t)h >= t->table_size || t->table_slot[h].handle_object == NULL)
        return NULL;
    return &t->table_slot[h];
}

/* The object of a handle, borrowed. NULL: no such handle, or its object is not
 * of `type` (NULL: any type). */
static inline struct object *handle_object(const struct handle_table *t, int h,
                                           const struct object_type *type)
{
    const struct handle *slot = handle_slot(t, h);

    if (slot == NULL ||
        (type != NULL && slot->handle_object->object_type != type))
        return NULL;
    return slot->handle_object;
}

/* Closes a handle: 0 or -EBADF. May sleep. */
int handle_close(struct handle_table *t, int h);

/* NULL, or the first broken invariant. The table must not change meanwhile. */
const char *handle_verify(const struct handle_table *t);
