/*
 * The memory of grants: pages of devices and pages for DMA (kernel/vm),
 * with fork, without memory, and as `verify` sees them.
 *
 * Tests: kernel/vm/space.c, kernel/vm/space_verify.c, kernel/vm/frame.c
 */
#include "kernel/lib/string.h"
#include "kernel/object/tests/grant_test.h"
#include "kernel/vm/frame.h"
#include "kernel/vm/space.h"
#include "kernel/vm/space_impl.h"
#include "kernel/x86/paging.h"
#include "tools/workshop/stress/fail.h"

static struct grant *g;

/* ---- devices and DMA ---------------------------------------------------- */

static uint32_t pte_at(const struct actor *a, uaddr_t at)
{
    const uint32_t *pte = space_entry(a->actor_task->task_space, at);

    return pte == NULL ? 0 : *pte;
}

static void expect_space(const struct actor *a)
{
    const char *wrong = space_verify(a->actor_task->task_space);

    if (wrong != NULL)
        KT_FAIL("%s", wrong);
}

KTEST(grant, device_pages)
{
    size_t frame = 0;
    uint32_t at;
    int error;

    begin(1);
    g = make(&rights_a);
    KT_EQ(actor_result(&s, sys_map_device, HOLE, PAGE_SIZE, 0), -EPERM);
    give(g, &s);
    KT_EQ(actor_result(&c, sys_map_device, HOLE, PAGE_SIZE, 0), -EPERM);
    KT_EQ(actor_result(&s, sys_map_device, HOLE, 0, 0), -EINVAL);
    KT_EQ(actor_result(&s, sys_map_device, HOLE + 4, 1, 0), -EINVAL);
    KT_EQ(actor_result(&s, sys_map_device, HOLE - PAGE_SIZE, 1, 0), -EPERM);
    KT_EQ(actor_result(&s, sys_map_device, HOLE, 3 * PAGE_SIZE, 0), -EPERM);
    at = (uint32_t)actor_result(&s, sys_map_device, HOLE, PAGE_SIZE + 1, 0);
    KT_REQUIRE(at >= SPACE_MMAP_BASE && at < USER_TOP);
    for (unsigned i = 0; i < 2; i++)
        KT_EQ(pte_at(&s, at + i * PAGE_SIZE) & ~0x60u,
              (HOLE + i * PAGE_SIZE) | PTE_PRESENT | PTE_WRITE | PTE_USER |
                  PTE_NOCACHE | PTE_THROUGH | PTE_UNCOUNTED);
    KT_EQ(pte_at(&s, at + 2 * PAGE_SIZE), 0);
    /* not for the kernel to copy */
    KT_TRUE(space_touch(s.actor_task->task_space, at, true, &error) == NULL);
    KT_TRUE(space_frame_at(s.actor_task->task_space, at, &frame));
    KT_EQ(frame, HOLE >> PAGE_SHIFT);
    expect_space(&s);
    KT_EQ(actor_result(&s, sys_munmap, at, PAGE_SIZE, 0), -EINVAL);
    KT_EQ(actor_result(&s, sys_munmap, at, 2 * PAGE_SIZE, 0), 0);
    KT_EQ(pte_at(&s, at), 0);
    expect_space(&s);
    KT_EQ(actor_result(&s, sys_map_device, HOLE, 1, 0), at);
    take_back(&s, g); /* with one mapped */
}

static uint32_t dma(struct actor *a, uint32_t pages)
{
    return (uint32_t)actor_result(a, sys_dma_alloc, pages, ACTOR_BUFFER, 0);
}

static bool is_error(uint32_t result)
{
    return result >= 0xfffff000;
}

static size_t dma_of_s;

static void look_at_dma(void)
{
    dma_of_s = space_dma_pages(s.actor_pid);
}

KTEST(grant, pages_for_dma)
{
    size_t before = frame_count();
    uint32_t at, paddr, more;

    begin(0);
    g = make(&rights_a);
    *(uint32_t *)actor_memory(&s, ACTOR_BUFFER) = 77;
    KT_EQ((int32_t)dma(&s, 1), -EPERM);
    give(g, &s);
    KT_EQ((int32_t)dma(&s, 0), -EINVAL);
    KT_EQ((int32_t)dma(&s, DMA_MAX + 1), -EPERM);
    KT_EQ((int32_t)dma(&s, UINT32_MAX), -EPERM);
    KT_EQ(actor_result(&s, sys_dma_alloc, 1, ACTOR_HOLE, 0), -EFAULT);
    KT_EQ(*(uint32_t *)actor_memory(&s, ACTOR_BUFFER), 77);
    before = frame_count();
    at = dma(&s, 3);
    paddr = *(uint32_t *)actor_memory(&s, ACTOR_BUFFER);
    KT_REQUIRE(!is_error(at));
    KT_EQ(frame_count(), before + 3);
    look_at_dma();
    KT_EQ(dma_of_s, 3);
    actor_run_elsewhere(&s, look_at_dma); /* its space may go at any moment */
    KT_EQ(dma_of_s, 0);
    for (unsigned i = 0; i < 3; i++) {
        const uint32_t *page = actor_memory(&s, at + i * PAGE_SIZE);

        KT_EQ(pte_at(&s, at + i * PAGE_SIZE) & ~0xfffu, paddr + i * PAGE_SIZE);
        KT_TRUE(page != NULL && page[0] == 0 && page[1023] == 0);
        memset(actor_memory(&s, at + i * PAGE_SIZE), 0xa5, PAGE_SIZE);
    }
    expect_space(&s);
    KT_EQ((int32_t)dma(&s, 2), -EPERM);
    more = dma(&s, 1);
    KT_TRUE(!is_error(more));
    KT_EQ((int32_t)dma(&s, 1), -EPERM);
    KT_EQ(actor_result(&s, sys_munmap, at, 2 * PAGE_SIZE, 0), -EINVAL);
    KT_EQ(actor_result(&s, sys_munmap, at, 3 * PAGE_SIZE, 0), 0);
    KT_EQ(frame_count(), before + 1);
    at = dma(&s, 3);
    KT_REQUIRE(!is_error(at));
    for (unsigned i = 0; i < 3 * 1024; i += 512)
        KT_EQ(*(uint32_t *)actor_memory(&s, at + i * 4), 0);
    expect_space(&s);
    take_back(&s, g); /* with all four */
    KT_LE(frame_count(), before);
    KT_EQ(space_dma_pages(s.actor_pid), 0);
}

KTEST(grant, a_fork_has_neither)
{
    size_t frames, frame;
    struct space *copy;
    uint32_t at, device;

    KT_NEEDS(MIB(1));
    begin(0);
    g = make(&rights_a);
    give(g, &s);
    device = (uint32_t)actor_result(&s, sys_map_device, HOLE, 1, 0);
    at = dma(&s, 2);
    KT_REQUIRE(!is_error(at) && !is_error(device));
    frames = frame_count();
    copy = space_copy(s.actor_task->task_space);
    KT_REQUIRE(copy != NULL);
    KT_TRUE(!space_frame_at(copy, at, &frame));
    KT_TRUE(!space_frame_at(copy, device, &frame));
    KT_TRUE(space_frame_at(copy, ACTOR_BUFFER, &frame));
    KT_EQ(copy->space_dma, 0);
    KT_TRUE(space_verify(copy) == NULL);
    expect_space(&s);
    KT_TRUE((pte_at(&s, at) & PTE_WRITE) != 0);
    space_destroy(copy);
    KT_EQ(frame_count(), frames);
    expect_space(&s);
    take_back(&s, g);
}

/* Each allocation fails once; everything is cleaned up. */
static void fail_each(enum kmem_fail_kind kind, syscall_t *fn, uint32_t a,
                      uint32_t b, uint32_t length)
{
    size_t frames = frame_count();
    uint32_t at;
    bool fired;

    for (uint32_t n = 1; n < 50; n++) {
        kmem_fail_set(kind, n);
        at = (uint32_t)actor_result(&s, fn, a, b, 0);
        fired = kmem_fail_fired();
        kmem_fail_set(KMEM_FAIL_NONE, 0);
        expect_space(&s);
        if (!is_error(at))
            KT_EQ(actor_result(&s, sys_munmap, at, length, 0), 0);
        else
            KT_EQ((int32_t)at, -ENOMEM);
        KT_EQ(frame_count(), frames);
        KT_EQ(s.actor_task->task_space->space_dma, 0);
        if (!fired) {
            KT_TRUE(!is_error(at));
            KT_GE(n, 1u + (kind == KMEM_FAIL_SLAB || fn == sys_dma_alloc));
            return;
        }
    }
    KT_FAIL("it never got through");
}

KTEST(grant, without_memory)
{
    begin(0);
    g = make(&rights_a);
    give(g, &s);
    actor_memory(&s, ACTOR_BUFFER);
    fail_each(KMEM_FAIL_SLAB, sys_map_device, HOLE, PAGE_SIZE, PAGE_SIZE);
    fail_each(KMEM_FAIL_PAGE, sys_map_device, HOLE, PAGE_SIZE, PAGE_SIZE);
    fail_each(KMEM_FAIL_SLAB, sys_dma_alloc, 2, ACTOR_BUFFER, 2 * PAGE_SIZE);
    fail_each(KMEM_FAIL_PAGE, sys_dma_alloc, 2, ACTOR_BUFFER, 2 * PAGE_SIZE);
    take_back(&s, g);
}

KTEST(grant, verify_sees_broken_pages)
{
    struct space *space;
    uint32_t *pte;
    uint32_t at;

    begin(0);
    g = make(&rights_a);
    give(g, &s);
    at = dma(&s, 2);
    space = s.actor_task->task_space;
    KT_REQUIRE(!is_error(at));
    pte = space_entry(space, at + PAGE_SIZE);
    *pte ^= 0x60; /* accessed, dirty: the processor's */
    KT_TRUE(space_verify(space) == NULL);
    *pte += PAGE_SIZE;
    KT_TRUE(strstr(space_verify(space), "not contiguous") != NULL);
    *pte -= PAGE_SIZE;
    *pte &= ~PTE_UNCOUNTED;
    KT_TRUE(strstr(space_verify(space), "wrong attributes") != NULL);
    *pte |= PTE_UNCOUNTED;
    space->space_dma++;
    KT_TRUE(strstr(space_verify(space), "count of DMA pages") != NULL);
    space->space_dma--;
    pte = space_entry(space, ACTOR_BUFFER);
    *pte |= PTE_UNCOUNTED;
    KT_TRUE(strstr(space_verify(space), "not reference-counted") != NULL);
    *pte &= ~PTE_UNCOUNTED;
    KT_TRUE(space_verify(space) == NULL);
    take_back(&s, g);
}
