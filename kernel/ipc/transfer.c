/*
 * Copies what a message carries besides registers: bytes, directly from space
 * to space, and a handle. First both sizes are compared and a slot for the
 * handle is reserved. Then the bytes are copied, which may still fail. Only
 * then is the handle installed in the receiver's table.
 */
#include "kernel/abi/errno.h"
#include "kernel/ipc/ipc_impl.h"
#include "kernel/object/handle.h"
#include "kernel/vm/space.h"

/* The space that contains a side's bytes; NULL: the kernel's memory. */
static struct space *space_of(const struct task *t, uaddr_t addr)
{
    return t->task_ipc.ipc_kernel && addr >= USER_TOP ? NULL : t->task_space;
}

/* The kernel takes no handles: nothing would ever close them. A port's handle
 * that was sent may call, but not receive. */
int ipc_transfer(struct task *to, struct task *from, uint32_t tag)
{
    const struct ipc_buffer *out = from->task_ipc.ipc_buffer;
    struct ipc_buffer *in = to->task_ipc.ipc_buffer;
    uint32_t bytes = tag & IPC_DATA ? out->ipc_send_size : 0;
    struct object *o = NULL;
    uaddr_t dst, src;
    int error = 0;

    if ((tag & IPC_HANDLE) && (in == NULL || to->task_ipc.ipc_kernel))
        return -EMSGSIZE;
    if (bytes > (in == NULL ? 0 : in->ipc_receive_max))
        return -EMSGSIZE;
    if (tag & IPC_HANDLE) {
        o = handle_object(from->task_handles, out->ipc_send_handle, NULL);
        error = o == NULL ? -EBADF : handle_reserve(to->task_handles, 1);
    }
    if (error == 0 && bytes != 0) {
        dst = (uaddr_t)in->ipc_receive;
        src = (uaddr_t)out->ipc_send;
        error = space_transfer(space_of(to, dst), dst, space_of(from, src), src,
                               bytes);
    }
    if (error != 0)
        return error;
    /* Point of no return. */
    if (in != NULL) {
        in->ipc_received = bytes;
        in->ipc_received_handle =
            o == NULL ? -1 : handle_install(to->task_handles, object_get(o), 0);
    }
    return 0;
}

bool ipc_readable(struct task *t)
{
    const struct ipc_buffer *out = t->task_ipc.ipc_buffer;
    uaddr_t at = (uaddr_t)out->ipc_send;
    uaddr_t end = at + out->ipc_send_size;
    int error;

    if (space_of(t, at) == NULL)
        return true;
    for (; at < end; at = (at & ~(uaddr_t)PAGE_MASK) + PAGE_SIZE)
        if (space_touch(t->task_space, at, false, &error) == NULL)
            return false;
    return true;
}
