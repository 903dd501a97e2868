/*
 * For whatis -r: every word that holds an address in an object, in roots and
 * in objects, as the search for leaks sees them.
 */
#include "kernel/lib/string.h"
#include "kernel/lib/symbol.h"
#include "kernel/shell/cmd_debug.h"
#include "kernel/x86/paging.h"
#include "mm/debug/debug.h"

#define REFS 24 /* more are only counted */

/* Where a word is: at an offset in an object, or in a root. */
struct ref {
    uintptr_t ref_at;
    const struct kmem_cache *ref_cache; /* NULL: a root */
    uintptr_t ref_buf;
    char ref_root[16];
};

static struct {
    struct ref table[REFS];
    size_t count;
    uintptr_t stack, stack_end; /* where the command's own copies are */
} refs;

/* A kmem_ref_fn_t. Only stores the reference: the caller holds locks. */
static bool keep_ref(uintptr_t at, const char *root,
                     const struct kmem_buf_stat *in, void *arg)
{
    struct ref *r;

    (void)arg;
    if (at >= refs.stack && at < refs.stack_end)
        return true;
    if (refs.count++ >= REFS)
        return true;
    r = &refs.table[refs.count - 1];
    *r = (struct ref){.ref_at = at};
    if (in) {
        r->ref_cache = in->stat_cache;
        r->ref_buf = in->stat_buf;
    } else {
        strlcpy(r->ref_root, root, sizeof(r->ref_root));
    }
    return true;
}

static void print_ref(const struct ref *r)
{
    uintptr_t offset;
    const char *name;

    kprintf("  0x%08lx ", (unsigned long)r->ref_at);
    if (r->ref_cache) {
        kprintf("object 0x%08lx of cache %s, + %lu\n",
                (unsigned long)r->ref_buf, heap_owner_name(r->ref_cache),
                (unsigned long)(r->ref_at - r->ref_buf));
    } else if (r->ref_at >= (uintptr_t)rodata_end &&
               r->ref_at < (uintptr_t)image_end && r->ref_root[0] == '.') {
        name = symbol_object(r->ref_at, &offset);
        kprintf("%s: %s+0x%lx\n", r->ref_root, name ? name : "?",
                (unsigned long)offset);
    } else if (strcmp(r->ref_root, "kmem_alloc") == 0) {
        kprintf("pages of kmem_alloc\n");
    } else {
        kprintf("stack of %s\n", r->ref_root);
    }
}

void debugcmd_print_refs(uintptr_t addr, uintptr_t stack_end)
{
    struct kmem_buf_stat b;

    if (!kmem_buf_stat((const void *)addr, &b)) {
        kprintf("pointers are looked for only to objects\n");
        return;
    }
    refs.count = 0;
    refs.stack = (uintptr_t)__builtin_frame_address(0) - PAGE_SIZE;
    refs.stack_end = stack_end;
    if (!kmem_leak_refs((const void *)addr, keep_ref, NULL)) {
        kprintf("no memory for the search of pointers to it\n");
        return;
    }
    kprintf("%zu word%s to it%s\n", refs.count,
            refs.count == 1 ? " points" : "s point", refs.count ? ":" : "");
    for (size_t i = 0; i < MIN(refs.count, (size_t)REFS); i++)
        print_ref(&refs.table[i]);
    if (refs.count > REFS)
        kprintf("  and %zu more\n", refs.count - REFS);
}
