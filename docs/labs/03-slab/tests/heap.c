/*
 * The cache and the slabs of the tests of lab 3.
 */
#include "docs/labs/03-slab/tests/heap.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/x86/cpu.h"

#define EFLAGS_ID (1u << 21) /* a flag without an effect */

struct kmem_cache heap_cache;
struct kmem_slab *heap_slab;

#define SLABS (HEAP_FULL + HEAP_SLABS)

static struct kmem_slab slab[SLABS];
static struct kmem_bufctl buffer[SLABS][HEAP_BUFFERS];

static void *get_page(size_t pages, void *arg)
{
    void *page = lab_arena(pages * PAGE_SIZE, PAGE_SIZE);

    (void)arg;
    if (page != NULL)
        memset(page, HEAP_FILL, pages * PAGE_SIZE);
    return page;
}

static void keep_page(void *page, size_t pages, void *arg)
{
    (void)page;
    (void)pages;
    (void)arg;
}

void heap_cache_make(size_t chunk, size_t chunks)
{
    heap_cache = (struct kmem_cache){
        .cache_name = "lab3",
        .cache_size = chunk,
        .cache_align = KMEM_ALIGN_MIN,
        .cache_chunk = chunk,
        .cache_bufctl = chunk - sizeof(void *),
        .cache_slab_pages = 1,
        .cache_slab_chunks = chunks,
        .cache_supplier = {get_page, keep_page, NULL},
    };
    mm_lock_init(&heap_cache.cache_lock, "kmem cache", LOCK_RANK_CACHE);
    heap_cache.cache_null.slab_cache = &heap_cache;
    list_init(&heap_cache.cache_null.slab_link);
    heap_cache.cache_freelist = &heap_cache.cache_null;
}

static void no_ctor(void *obj, size_t size)
{
    (void)obj;
    (void)size;
}

const struct kmem_cache *heap_geometry(size_t size, size_t align,
                                       bool constructed)
{
    heap_cache_make(0, 0);
    heap_cache.cache_size = size;
    heap_cache.cache_align = align;
    heap_cache.cache_ctor = constructed ? no_ctor : NULL;
    kmem_geometry(&heap_cache);
    return &heap_cache;
}

/* ---- slabs for their list ----------------------------------------------- */

/* A slab whose first `allocated` buffers are allocated. */
static void slab_make(size_t i, unsigned allocated)
{
    struct kmem_slab *sp = &slab[i];

    *sp = (struct kmem_slab){.slab_cache = &heap_cache,
                             .slab_chunks = HEAP_BUFFERS,
                             .slab_refcnt = allocated};
    memset(buffer[i], 0, sizeof(buffer[i]));
    for (unsigned k = HEAP_BUFFERS; k-- > allocated;) {
        buffer[i][k].bufctl_next = sp->slab_head;
        sp->slab_head = &buffer[i][k];
    }
    list_insert_before(&heap_cache.cache_null.slab_link, &sp->slab_link);
    heap_cache.cache_slabs++;
    heap_cache.cache_full_slabs += allocated == HEAP_BUFFERS;
    heap_cache.cache_free_slabs += allocated == 0;
    if (heap_cache.cache_freelist->slab_head == NULL && sp->slab_head != NULL)
        heap_cache.cache_freelist = sp;
}

void heap_list_make(size_t full, const char *allocated)
{
    heap_cache_make(64, HEAP_BUFFERS);
    heap_slab = slab + full;
    for (size_t i = 0; i < full; i++)
        slab_make(i, HEAP_BUFFERS);
    for (size_t i = 0; allocated[i] != '\0'; i++)
        slab_make(full + i, (unsigned)(allocated[i] - '0'));
    heap_cache.cache_ws_min = heap_cache.cache_free_slabs;
}

const char *heap_name(const struct kmem_slab *sp)
{
    static const char names[][2] = {"1", "2", "3", "4", "A", "B",
                                    "C", "D", "E", "F", "G", "H"};

    if (sp == &heap_cache.cache_null)
        return "the end";
    if (sp < slab || sp >= heap_slab + HEAP_SLABS)
        return "no slab of the list";
    return names[sp < heap_slab ? sp - slab : HEAP_FULL + (sp - heap_slab)];
}

/* The names of the list's slabs as a text; false if the list is broken. */
static bool spell(char names[SLABS + 1])
{
    struct list *head = &heap_cache.cache_null.slab_link;
    struct list *prev = head;
    size_t n = 0;

    for (struct list *l = head->next; l != head; prev = l, l = l->next) {
        const struct kmem_slab *sp = list_entry(l, struct kmem_slab, slab_link);

        if (*heap_name(sp) == 'n' || l->prev != prev || n == SLABS) {
            names[n] = '\0';
            KT_FAIL("the slab list is broken after \"%s\": its links lead "
                    "elsewhere, or not back again",
                    names);
            return false;
        }
        names[n++] = *heap_name(sp);
    }
    names[n] = '\0';
    return true;
}

static void expect_counts(void)
{
    const struct kmem_slab *first = &heap_cache.cache_null;
    uint32_t full = 0;
    uint32_t free = 0;

    list_for_each (l, &heap_cache.cache_null.slab_link) {
        const struct kmem_slab *sp = list_entry(l, struct kmem_slab, slab_link);

        full += sp->slab_head == NULL;
        free += sp->slab_refcnt == 0;
        if (sp->slab_head != NULL && first == &heap_cache.cache_null)
            first = sp;
    }
    if (heap_cache.cache_freelist != first)
        KT_FAIL("the freelist pointer is at %s; the first slab with "
                "a free buffer is %s",
                heap_name(heap_cache.cache_freelist), heap_name(first));
    KT_EQ(heap_cache.cache_full_slabs, full);
    KT_EQ(heap_cache.cache_free_slabs, free);
}

void heap_expect_list(const char *names)
{
    int full = (int)(heap_slab - slab);
    char got[SLABS + 1], want[SLABS + 1];

    if (!spell(got))
        return;
    snprintf(want, sizeof(want), "%.*s%s", full, "1234", names);
    if (strcmp(got, want) != 0)
        KT_FAIL("the slab list is %s; want %s", got, want);
    else
        expect_counts();
}

struct kmem_bufctl *heap_take(void)
{
    const struct kmem_slab *sp = heap_cache.cache_freelist;
    const struct kmem_bufctl *first = sp->slab_head;
    struct kmem_bufctl *bcp;

    mm_lock(&heap_cache.cache_lock);
    bcp = kmem_slab_take(&heap_cache);
    mm_unlock(&heap_cache.cache_lock);
    if (first == NULL)
        KT_FAIL("no free buffer at the freelist pointer, which is at %s",
                heap_name(sp));
    else if (bcp != first)
        KT_FAIL("kmem_slab_take does not return the first buffer of slab %s",
                heap_name(sp));
    return bcp;
}

/* The lock stores the flags of before it was acquired. So if one is inverted
 * there, the processor's flags show whether the lock was released. */
bool heap_give(struct kmem_slab *sp, struct kmem_bufctl *bcp)
{
    uint32_t before = read_eflags();
    bool released;

    mm_lock(&heap_cache.cache_lock);
    heap_cache.cache_lock.lock_eflags ^= EFLAGS_ID;
    kmem_slab_give(&heap_cache, sp, bcp);
    released = ((read_eflags() ^ before) & EFLAGS_ID) != 0;
    if (!released)
        mm_unlock(&heap_cache.cache_lock);
    return !released;
}
