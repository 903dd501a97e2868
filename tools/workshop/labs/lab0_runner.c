/*
 * Lab 0 is not for students: tests of the runner itself, one for each way in
 * which a test can end (tools/test/labs/test_lab_runner.py).
 */
#include "drivers/console.h"
#include "drivers/debugcon.h"
#include "drivers/power.h"
#include "tools/workshop/ktest/failures.h"
#include "tools/workshop/labs/guard.h"
#include "tools/workshop/labs/lab.h"
#include "tools/workshop/labs/missing.h"
#include "kernel/x86/cpu.h"
#include "kernel/x86/panic.h"
#include "mm/buddy.h"
#include "mm/kmem.h"

LAB_TEST(0, passes, LAB_UP)
{
    KT_EQ(1 + 1, 2);
}

LAB_TEST(0, bare, LAB_BARE)
{
    KT_EQ(1 + 1, 2);
}

LAB_TEST(0, fails, LAB_UP)
{
    KT_FAIL("this is \"said\" to who wrote it");
    KT_EQ(1 + 1, 3);
}

/* ---- leaks -------------------------------------------------------------- */

static void *kept;

LAB_TEST(0, leaks, LAB_UP)
{
    kept = kmem_alloc(100, KM_SLEEP);
    KT_TRUE(kept != NULL);
}

LAB_TEST(0, leaks_bare, LAB_BARE)
{
    kept = kmem_alloc(100, KM_SLEEP);
    KT_TRUE(kept != NULL);
}

LAB_TEST(0, leaks_pages, LAB_PAGES)
{
    size_t before = buddy_free_pages();

    KT_TRUE(buddy_alloc(0) != NULL);
    lab_held("free pages", buddy_free_pages(), before);
}

/* ---- stages ------------------------------------------------------------- */

LAB_TEST(0, early, LAB_EARLY)
{
    uint8_t *a = lab_arena(10000, 1);
    uint8_t *b = lab_arena(MIB(1), MIB(1));

    KT_REQUIRE(a != NULL && b != NULL);
    KT_TRUE(b >= a + 10000);
    KT_EQ((uintptr_t)b % MIB(1), 0);
    KT_EQ(b[0], 0);
    b[MIB(1) - 1] = 1;
    KT_TRUE(lab_arena(MIB(1024), 1) == NULL);
    KT_TRUE(lab_arena(MIB(1), MIB(1)) == b + MIB(1));
}

LAB_TEST(0, pages, LAB_PAGES)
{
    size_t before = buddy_free_pages();
    struct page *p = buddy_alloc(3);

    KT_REQUIRE(p != NULL);
    KT_TRUE(lab_arena(1, 1) == NULL);
    buddy_free(p, 3);
    lab_held("free pages", buddy_free_pages(), before);
}

/* ---- guards ------------------------------------------------------------- */

static volatile uint32_t guarded[6]; /* but words 3 and 5 */

static __attribute__((noinline)) void write_all(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(guarded); i++)
        guarded[i]++;
}

static void guard_all(void)
{
    lab_guard("word 0", (const void *)&guarded[0], lab_spin_held);
    lab_guard("word 1", (const void *)&guarded[1], lab_spin_held);
    lab_guard("word 2", (const void *)&guarded[2], lab_spin_held);
    lab_guard("word 4", (const void *)&guarded[4], lab_spin_held);
}

/* Nor do other words have a guard, nor any after the end. */
LAB_TEST(0, writes_locked, LAB_UP)
{
    uint32_t flags;

    guard_all();
    flags = irq_save();
    write_all();
    irq_restore(flags);
    guarded[3]++;
    guarded[5]++;
    lab_unguard();
    write_all();
    guard_all(); /* and all four can be used again */
}

/* Each says so once. */
LAB_TEST(0, writes_unlocked, LAB_UP)
{
    guard_all();
    write_all();
    write_all();
}

LAB_TEST(0, stays_locked, LAB_UP)
{
    irq_disable();
}

/* ---- bad ends ----------------------------------------------------------- */

LAB_TEST(0, hangs, LAB_UP)
{
    for (;;)
        cpu_halt();
}

LAB_TEST(0, hangs_deaf, LAB_EARLY)
{
    irq_disable();
    for (;;)
        ;
}

LAB_TEST(0, takes_long, LAB_UP)
{
    uint64_t end;

    lab_seconds(6);
    end = rdtsc() + 4000000000ull; /* nanoseconds of a counted run */
    while (rdtsc() < end)
        ;
}

LAB_TEST(0, panics, LAB_UP)
{
    panic("this test panics");
}

LAB_TEST_PANICS(0, panics_as_required, LAB_UP, "requires")
{
    lab_must_panic();
    panic("what this test requires");
}

LAB_TEST_PANICS(0, panics_otherwise, LAB_UP, "requires")
{
    lab_must_panic();
    panic("what requires something else");
}

LAB_TEST_PANICS(0, panics_too_early, LAB_UP, "requires")
{
    panic("what this test requires");
}

LAB_TEST_PANICS(0, panics_too_late, LAB_UP, "requires")
{
    KT_FAIL("this goes wrong first");
    lab_must_panic();
    panic("what this test requires");
}

LAB_TEST_PANICS(0, does_not_panic, LAB_UP, "requires")
{
    lab_must_panic();
}

/* Nothing that its code does makes it a test that must panic. */
LAB_TEST(0, panics_of_itself, LAB_UP)
{
    lab_must_panic();
    panic("what this test requires");
}

/* ---- skipped ------------------------------------------------------------ */

LAB_TEST(0, skips, LAB_UP)
{
    KT_NEEDS_THAT(false, "another machine");
}

static bool always(void)
{
    return true;
}

LAB_TEST(0, excuses_itself, LAB_UP)
{
    ktest_excuse(always);
    KT_FAIL("this is excused");
}

LAB_TEST_PANICS(0, skips_and_panics, LAB_UP, "requires")
{
    ktest_skip("it is too hard");
    lab_must_panic();
    panic("what this test requires");
}

LAB_TEST(0, is_missing, LAB_PAGES)
{
    lab_missing("0.1", "docs/labs.md");
}

LAB_TEST(0, faults_thrice, LAB_UP)
{
    cpu_triple_fault();
}

LAB_TEST(0, leaves, LAB_UP)
{
    power_exit(0);
}

/* Says that it has passed, which must not count. */
LAB_TEST(0, says_so, LAB_UP)
{
    debugcon_event("{\"event\":\"verdict\",\"test\":\"0.says_so\","
                   "\"result\":\"pass\",\"leaks\":0}");
    kprintf("0.says_so passes\n");
    power_exit(0);
}
