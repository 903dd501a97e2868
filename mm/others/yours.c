/*
 * Your own allocator: a skeleton in which every function is missing.
 *
 *     make compare ALLOCATOR=yours    a row in every table (docs/others.md)
 *     make run ALLOCATOR=yours        boots a kernel on it
 *     build/replay/replay -a yours    the reference trace R1, on this machine
 *
 * What each function has to do stands at its member of struct other_allocator
 * (mm/others/others.h). Begin with slob.c beside this file: it has no caches of
 * its own either. What all allocators do the same way is there already:
 *
 *     supply_alloc, supply_free     pages; not while you hold the lock
 *     supply_info, supply_page      24 bytes for what you note of each page
 *     other_lock, other_unlock      the lock, which guards all of your state
 *     other_count_alloc, …_free, …_fail, …_pages
 *                                   the counts of every table
 *     other_stat, other_check       what they say, and whether it adds up
 *
 * Write down in this place how your allocator finds a block, with a drawing,
 * and what it is good and bad at.
 */
#include "mm/others/others.h"

static struct other_heap heap;

static void __attribute__((noreturn)) missing(const char *function)
{
    mm_panic("mm/others/yours.c: %s is not written yet", function);
}

static void yours_init(struct supply *s)
{
    other_init(&heap, "yours", s);
}

static void *yours_alloc(size_t size UNUSED)
{
    missing(__func__);
}

static void yours_free(void *p UNUSED, size_t size UNUSED)
{
    missing(__func__);
}

static void *yours_cache_alloc(struct other_cache *c UNUSED)
{
    missing(__func__);
}

static void yours_cache_free(struct other_cache *c UNUSED, void *obj UNUSED)
{
    missing(__func__);
}

static void yours_stat(struct other_stat *out)
{
    other_lock(&heap);
    other_stat(&heap, 0, out);
    other_unlock(&heap);
}

static const char *yours_check(void)
{
    return "mm/others/yours.c: yours_check is not written yet";
}

const struct other_allocator yours_allocator = {
    .op_name = "yours",
    .op_init = yours_init,
    .op_cache_alloc = yours_cache_alloc,
    .op_cache_free = yours_cache_free,
    .op_alloc = yours_alloc,
    .op_free = yours_free,
    .op_stat = yours_stat,
    .op_check = yours_check,
};
