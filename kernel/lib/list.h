/*
 * Circular doubly linked lists with the links inside the listed structure.
 *
 * A list is a struct list that points to itself when empty; the same type is
 * the link in each member. No allocation, no counts, no locks: the list's owner
 * has the lock.
 *
 *      head <-> a <-> b <-> c <-> head
 */
#pragma once

#include "kernel/lib/types.h"

struct list {
    struct list *next;
    struct list *prev;
};

#define LIST_INIT(name)                                                        \
    {                                                                          \
        &(name), &(name)                                                       \
    }

/* The structure of type T in which link `l` is the member `m`. */
#define list_entry(l, T, m) container_of(l, T, m)

#define list_for_each(l, head)                                                 \
    for (struct list *l = (head)->next; l != (head); l = l->next)

static inline void list_init(struct list *l)
{
    l->next = l;
    l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
    return l->next == l;
}

/* Inserts `l` after `at`. */
static inline void list_insert_after(struct list *at, struct list *l)
{
    struct list *next = at->next;

    l->next = next;
    l->prev = at;
    next->prev = l;
    at->next = l;
}

/* Inserts `l` before `at`; before a head is the tail. */
static inline void list_insert_before(struct list *at, struct list *l)
{
    list_insert_after(at->prev, l);
}

/* Removes `l`. Its own pointers are unchanged. */
static inline void list_remove(const struct list *l)
{
    struct list *prev = l->prev;
    struct list *next = l->next;

    prev->next = next;
    next->prev = prev;
}

/* Moves all members of `from`, which is then empty, to the end of `to`. */
static inline void list_splice(struct list *from, struct list *to)
{
    struct list *first = from->next;

    if (first == from)
        return;
    first->prev = to->prev;
    to->prev->next = first;
    from->prev->next = to;
    to->prev = from->prev;
    list_init(from);
}
