/*
 * System calls about memory.
 */
#include "kernel/syscall/syscall.h"
#include "kernel/object/grant.h"
#include "kernel/vm/space.h"

/* sbrk(change): the old end of the heap. ENOMEM, EINVAL (below its start). */
int32_t sys_sbrk(uint32_t change, NO_BC)
{
    return space_sbrk(task_self()->task_space, (int32_t)change);
}

/* mmap(length, prot): the address of new zero-filled pages. ENOMEM, EINVAL. */
int32_t sys_mmap(uint32_t length, uint32_t prot, NO_C)
{
    return space_mmap(task_self()->task_space, length, (int)prot);
}

/* munmap(address, length): of a whole mapping. EINVAL. */
int32_t sys_munmap(uint32_t addr, uint32_t length, NO_C)
{
    return space_munmap(task_self()->task_space, addr, length);
}

/* map_device(first, bytes): the address at which the device memory is mapped.
 * EPERM (not granted), EINVAL, ENOMEM. */
int32_t sys_map_device(uint32_t first, uint32_t bytes, NO_C)
{
    if (bytes == 0 || (first & PAGE_MASK) != 0)
        return -EINVAL;
    if (!grant_has_memory(first, bytes))
        return -EPERM;
    return space_map_device(task_self()->task_space, first, bytes);
}

/* dma_alloc(pages, uint32_t *paddr): the address of zeroed, physically
 * contiguous pages. EPERM (exceeds the grant, with pages allocated before),
 * EINVAL, ENOMEM, EFAULT. The output is tested first. */
int32_t sys_dma_alloc(uint32_t pages, uint32_t paddr_out, NO_C)
{
    struct space *s = task_self()->task_space;
    uint32_t __user *out = (uint32_t __user *)paddr_out;
    paddr_t paddr = 0;
    int32_t at;
    int error;

    if (pages == 0)
        return -EINVAL;
    if (s->space_dma > grant_dma_pages() ||
        pages > grant_dma_pages() - s->space_dma)
        return -EPERM;
    error = copy_to_user(out, &paddr, sizeof(paddr));
    if (error != 0)
        return error;
    at = space_dma_alloc(s, pages, &paddr);
    copy_to_user(out, &paddr, sizeof(paddr)); /* cannot fail: tested above */
    return at;
}
