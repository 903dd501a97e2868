/*
 * The time that a copy of an address space takes, and what ends it early; which
 * gap mmap takes, and how fast; faults of the kernel.
 *
 * Tests: kernel/vm/space.c, kernel/vm/fault.c
 */
#include "kernel/task/task.h"
#include "kernel/vm/space_impl.h"
#include "kernel/vm/user.h"
#include "kernel/x86/paging.h"
#include "mm/kmem.h"
#include "tools/workshop/ktest/ktest.h"

#define MANY 2000

static struct space *space;

static void end(void *unused)
{
    (void)unused;
    if (space != NULL)
        space_destroy(space);
    space = NULL;
}

/* Adds regions of a page, with gaps, up to `n`. */
static bool add_regions(unsigned from, unsigned n)
{
    for (unsigned i = from; i < n; i++) {
        uaddr_t start = SPACE_MMAP_BASE + 2 * i * PAGE_SIZE;

        if (space_add_region(space, start, start + PAGE_SIZE,
                             PROT_READ | PROT_WRITE, REGION_MMAP) != 0)
            return false;
    }
    return true;
}

/* What a copy takes; 0: there is no memory. */
static uint64_t time_of_copy(void)
{
    uint64_t start = rdtsc();
    struct space *copy = space_copy(space);

    start = rdtsc() - start;
    if (copy == NULL)
        return 0;
    space_destroy(copy);
    return start;
}

/* Eight times as many regions take at most twelve times as long. */
KTEST(space, a_copy_takes_time_in_proportion_to_the_regions)
{
    uint64_t few, many;

    KT_NEEDS(MIB(20));
    KT_NEEDS_COUNTING();
    ktest_finally(end, NULL);
    space = space_create(NULL);
    KT_REQUIRE(space != NULL);
    KT_REQUIRE(add_regions(0, MANY / 8));
    KT_REQUIRE(time_of_copy() != 0); /* fills the caches */
    few = time_of_copy();
    KT_REQUIRE(few != 0);
    KT_REQUIRE(add_regions(MANY / 8, MANY));
    KT_REQUIRE(time_of_copy() != 0);
    many = time_of_copy();
    KT_REQUIRE(many != 0);
    KT_LE(many, 12 * few);
}

KTEST(space, a_kill_ends_a_copy)
{
    struct task *self = task_self();
    struct space *copy;

    ktest_finally(end, NULL);
    space = space_create(NULL);
    KT_REQUIRE(space != NULL);
    KT_REQUIRE(add_regions(0, 2));
    self->task_pending |= PENDING_KILL;
    copy = space_copy(space);
    self->task_pending &= ~PENDING_KILL;
    KT_TRUE(copy == NULL);
    if (copy != NULL)
        space_destroy(copy);
    KT_TRUE(space_verify(space) == NULL);
}

/* The lowest free page above SPACE_MMAP_BASE. */
static int32_t lowest_gap(void)
{
    uaddr_t at = SPACE_MMAP_BASE;

    while (space_region(space, at) != NULL)
        at += PAGE_SIZE;
    return (int32_t)at;
}

KTEST(space, mmap_takes_the_lowest_gap)
{
    uint32_t random = 1;

    KT_NEEDS(MIB(3)); /* up to 500 pages are promised */
    ktest_finally(end, NULL);
    space = space_create(NULL);
    KT_REQUIRE(space != NULL);
    for (unsigned i = 0; i < 500; i++) {
        uaddr_t at;

        random = random * 1103515245 + 12345;
        at = SPACE_MMAP_BASE + (random >> 16) % 40 * PAGE_SIZE;
        if (random >> 31 != 0)
            space_munmap(space, at, PAGE_SIZE);
        if ((random >> 30 & 1) != 0)
            space_add_region(space, at, at + PAGE_SIZE, PROT_READ, REGION_MMAP);
        at = (uaddr_t)lowest_gap();
        KT_EQ(space_mmap(space, PAGE_SIZE, PROT_READ), (int32_t)at);
    }
}

/* What 100 mappings take; 0: there is no memory. */
static uint64_t time_of_mmaps(void)
{
    uint64_t start = rdtsc();
    int32_t at = 0;

    for (int i = 0; i < 100 && at >= 0; i++)
        at = space_mmap(space, PAGE_SIZE, PROT_READ | PROT_WRITE);
    return at < 0 ? 0 : rdtsc() - start;
}

KTEST(space, mmap_takes_no_longer_with_many_regions)
{
    uint64_t few, many = 1;

    KT_NEEDS(MIB(20));
    KT_NEEDS_COUNTING();
    ktest_finally(end, NULL);
    space = space_create(NULL);
    KT_REQUIRE(space != NULL);
    KT_REQUIRE(time_of_mmaps() != 0); /* fills the caches */
    few = time_of_mmaps();
    KT_REQUIRE(few != 0);
    for (int n = 0; n < MANY && many != 0; n += 100)
        many = time_of_mmaps();
    KT_REQUIRE(many != 0);
    KT_LE(many, 3 * few);
}

static char *unmapped;
static trap_handler_t handler;
static bool handled;

static bool note_and_map(struct trapframe *tf)
{
    handled = handler(tf);
    paging_map((vaddr_t)unmapped);
    return true;
}

/* A page of a freed slab that debugging mode S has unmapped: the report of the
 * access must come. */
KTEST(space, a_copy_hides_no_fault_of_the_kernel)
{
    char c;

    unmapped = kmem_alloc(PAGE_SIZE, KM_SLEEP);
    paging_unmap((vaddr_t)unmapped);
    handler = trap_set_handler(TRAP_PAGE_FAULT, note_and_map);
    KT_EQ(user_copy(&c, unmapped, 1), 0);
    trap_set_handler(TRAP_PAGE_FAULT, handler);
    KT_TRUE(!handled);
    kmem_free(unmapped, PAGE_SIZE);
}
