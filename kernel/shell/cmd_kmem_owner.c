/*
 * For whatis: describes memory other than objects of clients: control blocks
 * of the allocator, hash tables, pages of programs.
 */
#include "kernel/shell/cmd_kmem.h"
#include "kernel/shell/cmd_task.h"
#include "kernel/vm/space.h"
#include "mm/inspect/kmem_stat.h"
#include "mm/page.h"

const char *heap_owner_name(const void *owner)
{
    static struct kmem_cache_stat st;

    for (struct kmem_cache *cp = kmem_cache_first(); cp;
         cp = kmem_cache_next(cp))
        if (cp == owner) {
            kmem_cache_stat(cp, &st);
            return st.stat_name;
        }
    return owner ? "! no cache" : "";
}

/* ---- the allocator's own objects ---------------------------------------- */

static void print_bufctl(uintptr_t buf)
{
    struct kmem_slab_stat slab;
    struct kmem_cache *cp = NULL;
    size_t index;

    if (buf >= (uintptr_t)mm_phys_to_virt(0))
        cp = kmem_slab_lookup((const void *)buf, &slab, &index);
    if (cp)
        kprintf("bufctl of object 0x%08lx of cache %s\n", (unsigned long)buf,
                heap_owner_name(cp));
    else
        kprintf("! bufctl of 0x%08lx, which is no object\n",
                (unsigned long)buf);
}

void heap_print_own(const struct kmem_cache *cp, uintptr_t start)
{
    struct kmem_own_stat own;

    kmem_own_stat(cp, (const void *)start, &own);
    switch (own.own_kind) {
    case KMEM_OWN_BUFCTL:
        print_bufctl(own.own_at);
        break;
    case KMEM_OWN_SLAB:
        kprintf("slab data of cache %s, slab base 0x%08lx\n",
                heap_owner_name(own.own_cache), (unsigned long)own.own_at);
        break;
    case KMEM_OWN_HASH:
        kprintf("%shash table of %s%s\n", own.own_cache ? "" : "! ",
                own.own_cache ? "cache " : "no cache",
                heap_owner_name(own.own_cache));
        break;
    case KMEM_OWN_CACHE: /* unless it is just being created */
        if (*heap_owner_name(own.own_cache) != '!')
            kprintf("the cache %s itself\n", heap_owner_name(own.own_cache));
        break;
    case KMEM_OWN_OTHER:
        break;
    }
}

/* ---- programs ----------------------------------------------------------- */

static const char *part_name(uaddr_t addr)
{
    if (addr < SPACE_STACK_TOP)
        return "stack";
    return addr < SPACE_MMAP_BASE ? "image or heap" : "mmap";
}

/* A page of a task, looked up by its address or, if that is 0, its frame. */
struct mapping {
    uaddr_t map_addr;
    size_t map_frame;
};

/* False if the task has ended, runs elsewhere or does not map the page. */
static bool look_in(pid_t pid, struct mapping *m)
{
    const struct task *t;
    bool found = false;

    spin_lock(&sched_lock);
    t = task_find_at_rest(pid);
    if (t != NULL && t->task_space != NULL) {
        if (m->map_addr == 0)
            m->map_addr = space_mapping(t->task_space, m->map_frame);
        found = m->map_addr != 0 &&
                space_frame_at(t->task_space, m->map_addr, &m->map_frame);
    }
    spin_unlock(&sched_lock);
    return found;
}

static size_t print_mappings(struct mapping wanted)
{
    struct task_stat st;
    pid_t last = -1;
    size_t n = 0;

    while (task_stats(last, &st, 1) == 1) {
        struct mapping m = wanted;

        last = st.stat_pid;
        if (!look_in(last, &m))
            continue;
        kprintf("  page 0x%08lx of task %d (%s), %s: frame %zu\n",
                (unsigned long)(m.map_addr & ~(uaddr_t)PAGE_MASK), (int)last,
                st.stat_name, part_name(m.map_addr), m.map_frame);
        n++;
    }
    return n;
}

void heap_print_user(uintptr_t addr)
{
    kprintf("an address of programs\n");
    if (addr < USER_BASE ||
        print_mappings((struct mapping){.map_addr = addr}) == 0)
        kprintf("  no task has a page there now\n");
}

void heap_print_mappers(const struct page *frame)
{
    if (print_mappings((struct mapping){.map_frame = page_index(frame)}) == 0)
        kprintf("  no task at rest maps it\n");
}
