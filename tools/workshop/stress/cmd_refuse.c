/*
 * `refuse`: runs the kernel's test cases while requests for memory fail. A case
 * then passes, or notices it and is skipped; it must not panic, leak, or leave
 * the heap damaged.
 */
#include "drivers/console.h"
#include "drivers/debugcon.h"
#include "kernel/lib/string.h"
#include "kernel/shell/shell.h"
#include "mm/kmem.h"
#include "tools/workshop/ktest/failures.h"
#include "tools/workshop/ktest/leak.h"
#include "tools/workshop/stress/fail.h"

/* Runs a case with its n-th request refused. Whether it made so many. */
static bool run_refused(const struct ktest *t, enum kmem_fail_kind kind,
                        uint32_t n)
{
    bool refused;

    leak_note(true);
    ktest_excuse(kmem_fail_fired);
    kmem_fail_set(kind, n);
    ktest_run(t->ktest_run, leak_free);
    refused = kmem_fail_fired();
    kmem_fail_set(KMEM_FAIL_NONE, 0);
    ktest_excuse(NULL);
    leak_check(ktest_leak);
    KT_SOUND(kmem_verify);
    return refused;
}

/* What became of a case's runs. */
struct refusals {
    unsigned refused;
    unsigned skipped;
    unsigned failed;
};

static void refuse_each(const struct ktest *t, enum kmem_fail_kind kind,
                        uint32_t most, struct refusals *r)
{
    bool refused = true;

    for (uint32_t n = 1; n <= most && refused; n++) {
        refused = run_refused(t, kind, n);
        r->refused += refused;
        r->skipped += ktest_skipped()[0] != '\0';
        if (ktest_failures() == 0)
            continue;
        r->failed++;
        kprintf("# so if %s request %u of %s.%s is refused\n",
                kind == KMEM_FAIL_SLAB ? "object" : "page", (unsigned)n,
                t->ktest_suite, t->ktest_name);
    }
}

static bool refuse_case(const struct ktest *t, unsigned number, void *most)
{
    const uint32_t *requests = most;
    struct refusals r = {0};

    refuse_each(t, KMEM_FAIL_SLAB, *requests, &r);
    refuse_each(t, KMEM_FAIL_PAGE, *requests, &r);
    kprintf("%s %u - %s.%s: %u refused, %u skipped, %u failed\n",
            r.failed == 0 ? "ok" : "not ok", number, t->ktest_suite,
            t->ktest_name, r.refused, r.skipped, r.failed);
    debugcon_event("{\"event\":\"refuse\",\"suite\":\"%s\",\"name\":\"%s\","
                   "\"refused\":%u,\"skipped\":%u,\"failed\":%u}",
                   t->ktest_suite, t->ktest_name, r.refused, r.skipped,
                   r.failed);
    return r.failed == 0;
}

static int cmd_refuse(char **argv)
{
    uint32_t most;

    if (!parse_u32(argv[1], &most) || most == 0)
        return shell_error("'%.32s' is no number of requests; from 1 on",
                           argv[1]);
    return ktest_exists(argv[2]) ? ktest_each(argv[2], refuse_case, &most) : 1;
}

SHELL_COMMAND(refuse, {"N [SUITE|CASE]", cmd_refuse, SHELL_ACTION});
