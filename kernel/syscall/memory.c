/*
 * System calls about memory.
 */
#include "kernel/syscall/syscall.h"
#include "kernel/vm/space.h"

/* sbrk(change): the old end of the heap. ENOMEM, EINVAL (below its start). */
int32_t sys_sbrk(uint32_t change, uint32_t b, uint32_t c)
{
    (void)b, (void)c;
    return space_sbrk(task_self()->task_space, (int32_t)change);
}

/* mmap(length, prot): the address of new zero-filled pages. ENOMEM, EINVAL. */
int32_t sys_mmap(uint32_t length, uint32_t prot, uint32_t c)
{
    (void)c;
    return space_mmap(task_self()->task_space, length, (int)prot);
}

/* munmap(address, length): of a whole mapping. EINVAL. */
int32_t sys_munmap(uint32_t addr, uint32_t length, uint32_t c)
{
    (void)c;
    return space_munmap(task_self()->task_space, addr, length);
}
