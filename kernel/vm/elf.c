/*
 * The ELF loader. Each number in the file is checked against the file and the
 * address space before it is used.
 */
#include "kernel/vm/elf.h"
#include "kernel/lib/string.h"
#include "kernel/vm/space_impl.h"

#define SEGMENTS_MAX 8
#define LOAD_LIMIT   SPACE_MMAP_BASE /* programs end below this */

struct elf_header {
    uint8_t ident[16];
    uint16_t type, machine;
    uint32_t version, entry, phoff, shoff, flags;
    uint16_t ehsize, phentsize, phnum, shentsize, shnum, shstrndx;
};

struct elf_segment {
    uint32_t type, offset, vaddr, paddr, filesz, memsz, flags, align;
};

enum {
    ELF_EXECUTABLE = 2,
    ELF_386 = 3,
    SEGMENT_LOAD = 1,
    SEGMENT_WRITE = 2,
};

static int read_exactly(elf_read_t *read, void *arg, uint32_t offset, void *buf,
                        size_t n)
{
    ssize_t got = read(arg, offset, buf, n);

    if (got < 0)
        return (int)got;
    return (size_t)got == n ? 0 : -ENOEXEC;
}

/* 32-bit, little-endian, version 1, executable, i386. */
static bool header_good(const struct elf_header *h)
{
    static const uint8_t ident[] = {0x7f, 'E', 'L', 'F', 1, 1, 1};

    return memcmp(h->ident, ident, sizeof(ident)) == 0 &&
           h->type == ELF_EXECUTABLE && h->machine == ELF_386 &&
           h->phentsize == sizeof(struct elf_segment) && h->phnum != 0 &&
           h->phnum <= SEGMENTS_MAX;
}

static bool segment_good(const struct elf_segment *g)
{
    return g->vaddr >= SPACE_IMAGE_BASE && g->vaddr < LOAD_LIMIT &&
           g->memsz <= LOAD_LIMIT - g->vaddr && g->filesz <= g->memsz &&
           g->offset <= INT32_MAX && g->filesz <= INT32_MAX;
}

/* Reads the segment's bytes directly into its pages. */
static int load_bytes(struct space *s, const struct elf_segment *g,
                      elf_read_t *read, void *arg)
{
    uint32_t done = 0;

    while (done < g->filesz) {
        uaddr_t at = g->vaddr + done;
        size_t part = MIN(g->filesz - done, PAGE_SIZE - (at & PAGE_MASK));
        int error;
        void *to = space_touch(s, at, false, &error);

        if (to != NULL)
            error = read_exactly(read, arg, g->offset + done, to, part);
        if (error != 0)
            return error;
        done += part;
    }
    return 0;
}

static int load_segment(struct space *s, const struct elf_segment *g,
                        elf_read_t *read, void *arg)
{
    uaddr_t end = g->vaddr + g->memsz;
    int prot = PROT_READ | (g->flags & SEGMENT_WRITE ? PROT_WRITE : 0);
    int error;

    if (!segment_good(g))
        return -ENOEXEC;
    error = space_add_region(s, g->vaddr & ~PAGE_MASK, ROUND_UP(end, PAGE_SIZE),
                             prot, REGION_IMAGE);
    if (error != 0)
        return error == -ENOMEM ? error : -ENOEXEC;
    s->space_break_base = MAX(s->space_break_base, ROUND_UP(end, PAGE_SIZE));
    return load_bytes(s, g, read, arg);
}

int elf_load(struct space *s, elf_read_t *read, void *arg, uaddr_t *entry)
{
    struct elf_segment g[SEGMENTS_MAX];
    struct elf_header h;
    int error = read_exactly(read, arg, 0, &h, sizeof(h));

    if (error == 0 && !header_good(&h))
        error = -ENOEXEC;
    if (error == 0)
        error = read_exactly(read, arg, h.phoff, g, h.phnum * sizeof(g[0]));
    for (unsigned i = 0; error == 0 && i < h.phnum; i++)
        if (g[i].type == SEGMENT_LOAD && g[i].memsz != 0)
            error = load_segment(s, &g[i], read, arg);
    if (error == 0 && space_region(s, h.entry) == NULL)
        error = -ENOEXEC;
    *entry = h.entry;
    s->space_break = s->space_break_base;
    if (error == 0)
        error = space_add_region(s, s->space_break_base, s->space_break_base,
                                 PROT_READ | PROT_WRITE, REGION_HEAP);
    if (error == 0)
        error = space_add_region(s, SPACE_STACK_TOP - SPACE_STACK_RESERVE,
                                 SPACE_STACK_TOP, PROT_READ | PROT_WRITE,
                                 REGION_STACK);
    return error;
}
