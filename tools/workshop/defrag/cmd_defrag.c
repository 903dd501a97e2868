/*
 * `defrag`: empties slabs of which little is in use: see defrag.h.
 */
#include "kernel/fs/inode.h"
#include "kernel/lib/printf.h"
#include "kernel/shell/cmd_kmem.h"
#include "kernel/shell/shell.h"
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

static int cmd_defrag(char **argv)
{
    struct kmem_cache *cp = heap_cache_named(argv[1]);
    uint32_t most = UINT32_MAX;

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

SHELL_COMMAND(defrag, cmd_defrag);
