/* Interim: weak stand-ins until every part has landed. */
#include "kernel/syscall/syscall.h"
#include "kernel/fs/inode.h"
#define WEAK __attribute__((weak))
int32_t interim_call(uint32_t a, uint32_t b, uint32_t c);
int32_t interim_call(uint32_t a, uint32_t b, uint32_t c)
{
    (void)a, (void)b, (void)c;
    return -ENOSYS;
}
#define SYSCALL_WEAK(name)                                                     \
    int32_t sys_##name(uint32_t, uint32_t, uint32_t)                           \
        __attribute__((weak, alias("interim_call")));
SYSCALL_LIST(SYSCALL_WEAK)
void ipc_task_exit(struct task *t);
WEAK void ipc_task_exit(struct task *t)
{
    (void)t;
}
WEAK struct inode *path_root(void)
{
    return NULL;
}
WEAK int path_lookup(const char *p, struct inode *c, struct inode **o)
{
    (void)p, (void)c, (void)o;
    return -ENOENT;
}
WEAK void inode_put(struct inode *i)
{
    (void)i;
}
WEAK struct inode *inode_ref(struct inode *i)
{
    return i;
}
WEAK ssize_t inode_read(struct inode *i, uint32_t o, void *b, size_t n)
{
    (void)i, (void)o, (void)b, (void)n;
    return -EIO;
}
