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

/* Whether the receiver has room for the message. The kernel takes no handles:
 * nothing would ever close them. */
static bool receiver_has_room(const struct task *to, uint32_t tag,
                              uint32_t bytes)
{
    const struct ipc_buffer *in = to->task_ipc.ipc_buffer;

    if (in == NULL || to->task_ipc.ipc_kernel)
        if (tag & IPC_HANDLE)
            return false;
    return bytes <= (in == NULL ? 0 : in->ipc_receive_max);
}

/* The space that contains a side's bytes; NULL: the kernel's memory. */
static struct space *space_of(const struct task *t, uaddr_t addr)
{
    return t->task_ipc.ipc_kernel && addr >= USER_TOP ? NULL : t->task_space;
}

static int transfer_bytes(struct task *to, struct task *from, uint32_t bytes)
{
    uaddr_t dst, src;

    if (bytes == 0)
        return 0;
    dst = (uaddr_t)to->task_ipc.ipc_buffer->ipc_receive;
    src = (uaddr_t)from->task_ipc.ipc_buffer->ipc_send;
    return space_transfer(space_of(to, dst), dst, space_of(from, src), src,
                          bytes);
}

/* A port's handle that was sent may call, but not receive. */
static int32_t give_handle(struct task *to, struct object *o)
{
    return handle_install(to->task_handles, 0, object_get(o), 0);
}

int ipc_transfer(struct task *to, struct task *from, uint32_t tag)
{
    const struct ipc_buffer *out = from->task_ipc.ipc_buffer;
    struct ipc_buffer *in = to->task_ipc.ipc_buffer;
    uint32_t bytes = tag & IPC_DATA ? out->ipc_send_size : 0;
    struct object *o = NULL;
    int error = 0;

    if (!receiver_has_room(to, tag, bytes))
        return -EMSGSIZE;
    if (tag & IPC_HANDLE) {
        o = handle_object(from->task_handles, out->ipc_send_handle, NULL);
        error = o == NULL ? -EBADF : handle_reserve(to->task_handles, 1);
    }
    if (error == 0)
        error = transfer_bytes(to, from, bytes);
    if (error != 0)
        return error;
    /* Point of no return. */
    if (in != NULL) {
        in->ipc_received = bytes;
        in->ipc_received_handle = o == NULL ? -1 : give_handle(to, o);
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
