/*
 * The memory commands where the heap is broken: rows are marked, lists end,
 * bad pointers are not followed, and `verify` counts.
 *
 * Tests: kernel/shell/cmd_kmem*.c, kernel/shell/cmd_verify.c
 */
#include "tools/workshop/ktest/ktest.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/shell/tests/shell_test.h"
#include "mm/buddy_impl.h"
#include "mm/debug/debug_impl.h"

/* Whether a command prints `text`. */
static void says(const char *line, const char *text)
{
    KT_EQ(shell_test_run(line), 0);
    if (!strstr(shell_test_said, text))
        KT_FAIL("%s does not say \"%s\"", line, text);
}

/* A cache with three slabs, the last of them half empty, and its objects. */
static struct kmem_cache *cp;
static void *obj[64];
static size_t n;

static void make_broken(size_t size)
{
    cp = kmem_cache_create("test_broken", size, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    n = cp->cache_slab_chunks * 5 / 2;
    KT_REQUIRE(n <= ARRAY_SIZE(obj));
    for (size_t i = 0; i < n; i++) {
        obj[i] = kmem_cache_alloc(cp, KM_NOSLEEP);
        KT_REQUIRE(obj[i] != NULL);
    }
}

static void end_broken(void)
{
    says("verify test_broken", "test_broken");
    for (size_t i = 0; i < n; i++)
        kmem_cache_free(cp, obj[i]);
    KT_EQ(kmem_cache_destroy(cp), 0);
}

KTEST(shell_broken, broken_slabs_get_marked_rows)
{
    struct kmem_slab *sp;
    struct kmem_bufctl *head, *next;

    make_broken(200);
    sp = cp->cache_freelist;
    sp->slab_refcnt--;
    says("slabs test_broken", ">!0x");
    says("cache -o alloc test_broken -n 1000", "freelist does not match");
    sp->slab_refcnt++;
    head = sp->slab_head;
    next = head->bufctl_next;
    head->bufctl_next = head; /* a circle of one */
    says("cache -o free test_broken", "freelist does not match");
    says("slabs test_broken", ">!0x");
    head->bufctl_next = (struct kmem_bufctl *)0x10; /* nowhere */
    says("slabs test_broken", ">!0x");
    head->bufctl_next = next;
    end_broken();
}

/* As if another task creates slabs: the walk finds more than were counted. */
KTEST(shell_broken, more_slabs_than_the_cache_counts)
{
    make_broken(1600);
    while (cp->cache_full_slabs < 9 && n < ARRAY_SIZE(obj) &&
           (obj[n] = kmem_cache_alloc(cp, KM_NOSLEEP)) != NULL)
        n++;
    if (cp->cache_full_slabs == 9) { /* else there is too little memory */
        cp->cache_full_slabs -= 6;
        says("slabs test_broken", "... and 1 more full slabs");
        cp->cache_full_slabs += 6;
    }
    end_broken();
}

/* Every command that looks at one cache, or at an address in it. */
static void look(const void *at)
{
    static const char *const lines[] = {
        "slabs test_broken",
        "cache -o alloc test_broken",
        "cache -o alloc -j test_broken",
        "cache -o free test_broken",
        "cache test_broken",
        "cache -u test_broken",
        "cache -c test_broken",
        "kmastat test_broken",
        "kmastat --merged",
        "leaks",
        "cache -u -m 1",
    };
    char line[40];

    for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
        KT_EQ(shell_test_run(lines[i]), 0);
    snprintf(line, sizeof(line), "whatis %p", at);
    KT_EQ(shell_test_run(line), 0);
    snprintf(line, sizeof(line), "slabs %p", at);
    shell_test_run(line);
    KT_EQ(shell_test_run("verify test_broken"), 1);
}

KTEST(shell_broken, verify_counts_faults)
{
    struct kmem_cache *one = kmem_cache_find("kmem_slab");

    make_broken(200);
    KT_REQUIRE(one != NULL);
    KT_EQ(shell_test_run("verify"), 0);
    cp->cache_full_slabs++;
    KT_EQ(shell_test_run("verify"), 1);
    one->cache_full_slabs++;
    KT_EQ(shell_test_run("verify"), 2);
    KT_EQ(shell_test_run("verify test_broken"), 1);
    buddy_zone.zone_total_pages++;
    cp->cache_full_slabs--;
    KT_EQ(shell_test_run("verify -j"), 2);
    one->cache_full_slabs--;
    KT_EQ(shell_test_run("verify"), 1);
    buddy_zone.zone_total_pages--;
    end_broken();
}

KTEST(shell_broken, looking_survives_broken_freelists)
{
    const uintptr_t invalid[] = {0x10, 0xc0000001, 0xfffffff0, 0};
    struct kmem_bufctl *head, *next;

    for (size_t size = 200; size <= 900; size += 700) {
        make_broken(size);
        head = cp->cache_freelist->slab_head;
        next = head->bufctl_next;
        for (size_t i = 0; i < ARRAY_SIZE(invalid); i++) {
            head->bufctl_next = (struct kmem_bufctl *)invalid[i];
            look(obj[n - 1]);
        }
        head->bufctl_next = head;
        look(obj[n - 1]);
        head->bufctl_next = next;
        end_broken();
    }
}

KTEST(shell_broken, looking_survives_broken_lists_and_tables)
{
    struct kmem_bufctl **bucket, *first;
    struct kmem_slab *sp;
    struct list *link, *next;

    make_broken(900);
    link = cp->cache_null.slab_link.next;
    next = link->next;
    link->next = (struct list *)0x10;
    look(obj[n - 1]);
    link->next = link;
    look(obj[n - 1]);
    link->next = next;
    bucket = kmem_hash_bucket(cp, obj[0]);
    first = *bucket;
    *bucket = (struct kmem_bufctl *)0x14;
    says("cache test_broken", "MAXCHAIN");
    says("cache -o alloc test_broken", "!0x");
    look(obj[0]);
    *bucket = first;
    sp = cp->cache_freelist;
    sp->slab_cache = (struct kmem_cache *)0x20;
    look(obj[n - 1]);
    sp->slab_cache = cp;
    sp->slab_chunks = 0x7fff;
    look(obj[n - 1]);
    sp->slab_chunks = cp->cache_slab_chunks;
    end_broken();
}

KTEST(shell_broken, broken_lists_end)
{
    struct list *second;

    make_broken(900);
    second = cp->cache_null.slab_link.next->next;
    second->next = second; /* a circle */
    says("slabs test_broken", "! ");
    second->next = (struct list *)&n; /* out of the heap */
    says("slabs test_broken", "slab list has an invalid link");
    says("cache -o alloc test_broken", "slab list has an invalid link");
    second->next = cp->cache_null.slab_link.prev;
    says("cache -o alloc test_broken", "rows");
    end_broken();
}

KTEST(shell_broken, a_row_for_every_object)
{
    char line[40];

    for (size_t size = 200; size <= 900; size += 700) {
        make_broken(size);
        snprintf(line, sizeof(line), "%zu rows", n);
        says("cache -o alloc test_broken", line);
        snprintf(line, sizeof(line), "%zu rows", 3 * cp->cache_slab_chunks - n);
        says("cache -o free test_broken", line);
        end_broken();
    }
}

/* Words of a cache and of a bufctl that commands count or divide by. */
KTEST(shell_broken, looking_survives_wild_values)
{
    struct kmem_bufctl_debug *bdp = NULL;
    char line[40];
    volatile size_t two = 2; /* no constant: one call allocates both */
    size_t chunk, chunks;

    make_broken(200);
    cp->cache_align = 0;
    look(obj[0]);
    cp->cache_align = KMEM_ALIGN_MIN;
    chunk = cp->cache_chunk;
    cp->cache_chunk = 0;
    look(obj[0]);
    cp->cache_chunk = chunk;
    chunks = cp->cache_slab_chunks;
    cp->cache_slab_chunks = 0;
    look(obj[0]);
    cp->cache_slab_chunks = chunks;
    end_broken();
    cp = kmem_cache_create("test_broken", 100, 0, NULL, NULL);
    KT_REQUIRE(cp && kmem_debug_set(cp, KMF_AUDIT) == 0);
    for (n = 0; n < two; n++) {
        obj[n] = kmem_cache_alloc(cp, KM_NOSLEEP);
        KT_REQUIRE(obj[n] != NULL);
        bdp = (struct kmem_bufctl_debug *)*kmem_hash_bucket(cp, obj[n]);
        KT_REQUIRE(bdp && bdp->bufctl.bufctl_addr == obj[n]);
        bdp->bufctl_alloc.trans_depth = 0x7fffffff;
    }
    says("cache -u test_broken", " 2 ");
    bdp->bufctl_state = 0x10000077;
    snprintf(line, sizeof(line), "whatis %p", obj[1]);
    says(line, ", in use");
    bdp->bufctl_state = KMEM_BUF_USED;
    end_broken();
}
