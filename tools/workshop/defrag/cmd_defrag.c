/*
 * `defrag`: empties slabs of which little is in use; and `cache NAME
 * partial=sorted`: see defrag.h.
 */
#include "kernel/fs/inode.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/shell/cmd_kmem.h"
#include "kernel/shell/shell.h"
#include "kernel/task/task.h"
#include "mm/buddy.h"
#include "mm/inspect/kmem_stat.h"
#include "tools/workshop/defrag/defrag.h"

#define PAGES 64 /* of addresses: 64 Ki objects */
#define ROOM  (PAGES * PAGE_SIZE / sizeof(void *))

static void print_slabs(struct kmem_cache *cp)
{
    struct kmem_cache_stat st;

    kmem_cache_stat(cp, &st);
    kprintf("%s: %zu objects in %zu slabs: %zu full, %zu partial, %zu free\n",
            st.stat_name, st.stat_inuse, st.stat_slabs, st.stat_full_slabs,
            st.stat_partial_slabs, st.stat_free_slabs);
}

static int evict_sparse(struct kmem_cache *cp, const char *name, size_t most)
{
    evict_t *evict = defrag_evict_of(cp);
    struct page *pages;
    size_t evicted, used;

    if (evict == NULL)
        return shell_error("%s: its owner has no function that evicts an "
                           "object; inode has one",
                           name);
    pages = buddy_alloc_run(PAGES);
    if (pages == NULL)
        return shell_error("too little memory");
    evicted = defrag(cp, evict, shell_option('n'), most, page_to_virt(pages),
                     ROOM, &used);
    buddy_free_run(pages, PAGES);
    kprintf("%zu objects evicted; %zu are in use\n", evicted, used);
    return 0;
}

/* ---- sorted at each update ----------------------------------------------- */

#define KEPT_MAX 8

/* A cache whose partial slabs a task keeps sorted. The name changes only while
 * there is no task. */
static struct kept {
    char kept_name[KMEM_NAME_MAX + 1];
    bool kept_task, kept_on; /* the task ends after it was switched off */
} kept[KEPT_MAX];

static void keep_sorted(void *arg)
{
    struct kept *k = arg;

    do
        sched_sleep_ms(kmem_update_due() + 1);
    while (__atomic_load_n(&k->kept_on, __ATOMIC_ACQUIRE) &&
           defrag_sort_named(k->kept_name));
    __atomic_store_n(&k->kept_task, false, __ATOMIC_RELEASE);
}

/* The one of this name that is switched on, or one that is free; NULL. */
static struct kept *find_kept(const char *name)
{
    struct kept *unused = NULL;

    for (size_t i = 0; i < KEPT_MAX; i++) {
        bool task = __atomic_load_n(&kept[i].kept_task, __ATOMIC_ACQUIRE);

        if (task && kept[i].kept_on && strcmp(kept[i].kept_name, name) == 0)
            return &kept[i];
        unused = task ? unused : &kept[i];
    }
    return unused;
}

static int begin_sorting(struct kept *k, const char *name)
{
    struct task *t;

    strlcpy(k->kept_name, name, sizeof(k->kept_name));
    k->kept_task = k->kept_on = true;
    t = task_create("defragd", keep_sorted, k, PRIORITY_KERNEL);
    k->kept_task = t != NULL;
    if (t == NULL)
        return shell_error("too little memory");
    task_disown(t);
    return 0;
}

/* heap_partial_order of this kernel. */
static int set_order(const char *name, bool sorted)
{
    struct kept *k = find_kept(name);

    if (sorted && k == NULL)
        return shell_error("%d caches are kept sorted; that is the most",
                           KEPT_MAX);
    if (sorted && !k->kept_task && begin_sorting(k, name) != 0)
        return 1;
    if (!sorted && k != NULL && k->kept_task)
        __atomic_store_n(&k->kept_on, false, __ATOMIC_RELEASE);
    kprintf("%s: partial slabs %s\n", name,
            sorted ? "are sorted at each update of the working set"
                   : "in the order of the allocator");
    return 0;
}

static void provide_order(const void *arg UNUSED)
{
    heap_partial_order = set_order;
}

HOOK(HOOK_UP, provide_order);

/* ---- what it is good for ------------------------------------------------ */

static int measure_order(char **argv UNUSED)
{
    struct page *pages = buddy_alloc_run(PAGES);
    int error = 0;

    if (pages == NULL)
        return shell_error("too little memory");
    kprintf("%-10s %6s %6s %8s %6s\n", "ORDER", "SLABS", "FULL", "PARTIAL",
            "FREE");
    for (int sorted = 0; sorted < 2 && error == 0; sorted++) {
        struct kmem_cache_stat st;

        if (defrag_churn(sorted, page_to_virt(pages), &st))
            kprintf("%-10s %6zu %6zu %8zu %6zu\n", sorted ? "sorted" : "own",
                    st.stat_slabs, st.stat_full_slabs, st.stat_partial_slabs,
                    st.stat_free_slabs);
        else
            error = shell_error("too little memory");
    }
    buddy_free_run(pages, PAGES);
    return error;
}

static int cmd_defrag(char **argv)
{
    struct kmem_cache *cp;
    uint32_t most = UINT32_MAX;

    cp = heap_cache_named(argv[1]);
    if (cp == NULL || !heap_number('n', &most) || !heap_number('l', &most))
        return 1;
    if (shell_option('s') + shell_option('n') + shell_option('l') > 1)
        return shell_error("one of -s, -n and -l at a time");
    if (shell_option('l') && cp != kmem_cache_find("inode"))
        return shell_error("-l is about inodes, not %s", argv[1]);
    print_slabs(cp);
    if (shell_option('l'))
        kprintf("%zu inodes reclaimed, least recently used first\n",
                inode_reclaim(most));
    else if (!shell_option('s') && evict_sparse(cp, argv[1], most) != 0)
        return 1;
    defrag_sort(cp);
    print_slabs(cp);
    return 0;
}

SHELL_COMMAND(defrag, {"[-s] [-n N] [-l N] CACHE", cmd_defrag, SHELL_ACTION},
              {"-e", measure_order, SHELL_ACTION});
