/*
 * Watching the kernel: the option kmem.verify=, and requests of programs for
 * pages, which fail as the allocator's do (watch.c).
 */
#include "kernel/abi/errno.h"
#include "kernel/lib/option.h"
#include "kernel/lib/string.h"
#include "kernel/vm/commit.h"
#include "kernel/vm/frame.h"
#include "tools/workshop/stress/fail.h"
#include "tools/workshop/stress/watch.h"

int __wrap_commit_promise(struct commit *c, size_t pages);
int __real_commit_promise(struct commit *c, size_t pages);
struct page *__wrap_frame_alloc_run(size_t pages);
struct page *__real_frame_alloc_run(size_t pages);

int __wrap_commit_promise(struct commit *c, size_t pages)
{
    return pages != 0 && kmem_fail_page() ? -ENOMEM
                                          : __real_commit_promise(c, pages);
}

struct page *__wrap_frame_alloc_run(size_t pages)
{
    return kmem_fail_page() ? NULL : __real_frame_alloc_run(pages);
}

static bool set_verify(char *value)
{
    uint32_t n;

    if (!parse_u32(value, &n))
        return false;
    kmem_verify_boot(n);
    return true;
}

BOOT_OPTION(verify, "kmem.verify=", "kmem.verify=N",
            "check the whole heap at every N-th operation", set_verify);
