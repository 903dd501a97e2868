/*
 * The check for leaks.
 */
#include "tools/workshop/ktest/leak.h"
#include "kernel/fs/inode.h"
#include "kernel/lib/printf.h"
#include "kernel/vm/commit.h"
#include "kernel/vm/frame.h"
#include "mm/debug/debug.h"
#include "mm/inspect/kmem_stat.h"
#include "mm/segkmem.h"

#define CACHES_MAX 256 /* caches that are remembered one by one */

static struct {
    bool reclaim;
    size_t pages;
    size_t frames;
    size_t committed;
    size_t caches;
    struct {
        struct kmem_cache *cache;
        size_t inuse;
    } cache[CACHES_MAX];
} before;

/* The pages that the caches hold; 0 if nothing is reclaimed, since their number
 * then depends on earlier allocations. */
static size_t pages_held(void)
{
    struct segkmem_stat stat;

    if (!before.reclaim)
        return 0;
    inode_reclaim(SIZE_MAX);
    kmem_reap(KMEM_REAP_ALL);
    segkmem_stat(&stat);
    return stat.stat_pages;
}

static size_t committed(void)
{
    struct commit_stat st;

    commit_stat(&st);
    return commit_committed(&st);
}

static size_t inuse(struct kmem_cache *cp)
{
    struct kmem_cache_stat stat;

    kmem_cache_stat(cp, &stat);
    return stat.stat_inuse;
}

void leak_note(bool reclaim)
{
    before.reclaim = reclaim;
    before.pages = pages_held();
    before.frames = frame_count();
    before.committed = committed();
    before.caches = 0;
    for (struct kmem_cache *cp = kmem_cache_first(); cp != NULL;
         cp = kmem_cache_next(cp)) {
        size_t i = before.caches++;

        if (i >= CACHES_MAX)
            continue;
        before.cache[i].cache = cp;
        before.cache[i].inuse = inuse(cp);
    }
}

/* The place of a cache among those remembered, CACHES_MAX if it is new. */
static size_t place_of(const struct kmem_cache *cp)
{
    for (size_t i = 0; i < MIN(before.caches, CACHES_MAX); i++)
        if (before.cache[i].cache == cp)
            return i;
    return CACHES_MAX;
}

static size_t inuse_before(const struct kmem_cache *cp)
{
    size_t i = place_of(cp);

    return i == CACHES_MAX ? 0 : before.cache[i].inuse;
}

static bool free_object(const struct kmem_buf_stat *stat, void *arg)
{
    if (stat->stat_state == KMEM_BUF_USED)
        kmem_cache_free(arg, (void *)stat->stat_buf);
    return true;
}

void leak_free(void *unused)
{
    struct kmem_cache *cp = kmem_cache_first();
    struct kmem_cache *next;
    size_t left;

    (void)unused;
    for (; cp != NULL; cp = next) {
        next = kmem_cache_next(cp);
        if (before.caches > CACHES_MAX || place_of(cp) != CACHES_MAX)
            continue;
        do { /* slabs change places as objects go */
            left = inuse(cp);
            kmem_buf_walk(cp, free_object, cp);
        } while (inuse(cp) != 0 && inuse(cp) < left);
        kmem_cache_destroy(cp);
    }
}

/* Compares one number. If it has changed, says so and returns 1. */
static unsigned compare(void (*say)(const char *line), const char *what,
                        size_t now, size_t was)
{
    char line[96];

    if (now == was)
        return 0;
    snprintf(line, sizeof(line), "%s: %zu, had %zu", what, now, was);
    say(line);
    return 1;
}

unsigned leak_check(void (*say)(const char *line))
{
    struct kmem_cache_stat stat;
    size_t pages = pages_held();
    size_t caches = 0;
    unsigned leaks = 0;
    char what[KMEM_NAME_MAX + 24];

    for (struct kmem_cache *cp = kmem_cache_first(); cp != NULL;
         cp = kmem_cache_next(cp), caches++) {
        kmem_cache_stat(cp, &stat);
        snprintf(what, sizeof(what), "%s objects in use", stat.stat_name);
        if (before.caches <= CACHES_MAX)
            leaks += compare(say, what, stat.stat_inuse, inuse_before(cp));
    }
    leaks += compare(say, "caches", caches, before.caches);
    leaks += compare(say, "pages of slabs", pages, before.pages);
    leaks += compare(say, "pages promised", committed(), before.committed);
    return leaks +
           compare(say, "pages of programs", frame_count(), before.frames);
}
