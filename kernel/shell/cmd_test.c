/*
 * The command `test`: runs the kernel's test cases and prints KTAP (the
 * kernel's dialect of the Test Anything Protocol, version 1).
 *
 * Around every case stands a check for leaks: with all caches reaped, the
 * pages that the allocator holds, the set of caches and the objects in use in
 * each must be the same before and after.
 */
#include "kernel/fs/inode.h"
#include "kernel/lib/ktest.h"
#include "kernel/lib/string.h"
#include "kernel/shell/shell.h"
#include "drivers/console.h"
#include "drivers/debugcon.h"
#include "mm/kmem_stat.h"
#include "mm/segkmem.h"

#define CACHES_MAX 256 /* caches that the check remembers one by one */

static bool failed; /* an expectation of the running case */

void ktest_fail(const char *file, int line, const char *fmt, ...)
{
    va_list ap;

    failed = true;
    kprintf("# %s:%d: ", file, line);
    va_start(ap, fmt);
    kvprintf(fmt, ap);
    va_end(ap);
    kprintf("\n");
}

/* ---- leaks -------------------------------------------------------------- */

static struct {
    size_t pages;
    size_t caches;
    struct {
        struct kmem_cache *cache;
        size_t inuse;
    } cache[CACHES_MAX];
} before;

/* Reaped first: complete slabs and unused inodes are a matter of history, not
 * a leak. */
static size_t pages_held(void)
{
    struct segkmem_stat stat;

    inode_reclaim(SIZE_MAX);
    kmem_reap(KMEM_REAP_ALL);
    segkmem_stat(&stat);
    return stat.stat_pages;
}

static void note_before(void)
{
    struct kmem_cache_stat stat;

    before.pages = pages_held();
    before.caches = 0;
    for (struct kmem_cache *cp = kmem_cache_first(); cp;
         cp = kmem_cache_next(cp)) {
        size_t i = before.caches++;

        if (i >= CACHES_MAX)
            continue;
        kmem_cache_stat(cp, &stat);
        before.cache[i].cache = cp;
        before.cache[i].inuse = stat.stat_inuse;
    }
}

/* The number of objects that were in use, 0 if the cache is new. */
static size_t inuse_before(const struct kmem_cache *cp)
{
    for (size_t i = 0; i < MIN(before.caches, CACHES_MAX); i++)
        if (before.cache[i].cache == cp)
            return before.cache[i].inuse;
    return 0;
}

static void check_after(void)
{
    struct kmem_cache_stat stat;
    size_t pages = pages_held();
    size_t caches = 0;

    for (struct kmem_cache *cp = kmem_cache_first(); cp;
         cp = kmem_cache_next(cp)) {
        size_t was = inuse_before(cp);

        kmem_cache_stat(cp, &stat);
        if (stat.stat_inuse != was && before.caches <= CACHES_MAX)
            KT_FAIL("leak: cache %s has %zu objects in use, had %zu",
                    stat.stat_name, stat.stat_inuse, was);
        caches++;
    }
    if (caches != before.caches)
        KT_FAIL("leak: %zu caches, were %zu", caches, before.caches);
    if (pages != before.pages)
        KT_FAIL("leak: %zu pages held, were %zu", pages, before.pages);
}

/* ---- running ------------------------------------------------------------ */

/* Whether a case belongs to `what`: NULL for all, "suite" or "suite.case". */
static bool selected(const struct ktest *t, const char *what)
{
    size_t len = strlen(t->ktest_suite);

    if (!what)
        return true;
    if (strncmp(what, t->ktest_suite, len) != 0)
        return false;
    return what[len] == 0 ||
           (what[len] == '.' && strcmp(what + len + 1, t->ktest_name) == 0);
}

static unsigned count(const char *what)
{
    unsigned n = 0;

    for (const struct ktest *t = __start_ktests; t < __stop_ktests; t++)
        n += selected(t, what);
    return n;
}

static bool run_case(const struct ktest *t, unsigned number)
{
    failed = false;
    note_before();
    t->ktest_run();
    check_after();
    kprintf("%s %u - %s.%s\n", failed ? "not ok" : "ok", number, t->ktest_suite,
            t->ktest_name);
    debugcon_event("{\"event\":\"test\",\"suite\":\"%s\",\"name\":\"%s\","
                   "\"ok\":%s}",
                   t->ktest_suite, t->ktest_name, failed ? "false" : "true");
    return !failed;
}

static int run_selected(const char *what)
{
    unsigned n = 0;
    unsigned passed = 0;

    kprintf("KTAP version 1\n1..%u\n", count(what));
    for (const struct ktest *t = __start_ktests; t < __stop_ktests; t++) {
        if (!selected(t, what))
            continue;
        if (shell_interrupted()) {
            kprintf("Bail out! interrupted after %u cases\n", n);
            break;
        }
        n++;
        passed += run_case(t, n);
    }
    kprintf("# %u passed, %u failed\n", passed, n - passed);
    debugcon_event("{\"event\":\"tests\",\"passed\":%u,\"failed\":%u}", passed,
                   n - passed);
    return passed == n ? 0 : 1;
}

static void list(const char *what)
{
    for (const struct ktest *t = __start_ktests; t < __stop_ktests; t++)
        if (selected(t, what))
            kprintf("%s.%s\n", t->ktest_suite, t->ktest_name);
}

static int cmd_test(int argc, char **argv)
{
    uint32_t options;

    if (!shell_options(&argc, argv, "l", &options))
        return 1;
    if (argc > 2)
        return shell_error("takes one suite or case; `test` runs all");
    if (count(argv[1]) == 0)
        return shell_error("no suite or case \"%.32s\"; `test -l` lists them",
                           argv[1]);
    if (!(options & SHELL_OPTION('l')))
        return run_selected(argv[1]);
    list(argv[1]);
    return 0;
}

static void complete_suite(void (*add)(const char *word, void *arg), void *arg)
{
    const char *last = "";

    for (const struct ktest *t = __start_ktests; t < __stop_ktests; t++) {
        if (strcmp(t->ktest_suite, last) != 0)
            add(t->ktest_suite, arg);
        last = t->ktest_suite;
    }
}

SHELL_COMMAND(test, "test [-l] [SUITE[.CASE]]", "run the kernel's own tests",
              "Runs all cases, those of one suite, or one case, and prints\n"
              "KTAP: a line `ok` or `not ok` for each, after lines that begin\n"
              "with # and say what was expected where. A case that leaves\n"
              "memory in use fails. -l lists cases instead. ^C stops.\n"
              "\n"
              "    slate> test line.history\n"
              "    KTAP version 1\n"
              "    1..1\n"
              "    ok 1 - line.history\n"
              "    # 1 passed, 0 failed\n",
              cmd_test, complete_suite);
