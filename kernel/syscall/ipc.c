/*
 * System calls for messages: ports, call, receive, reply, notifications,
 * interrupts, the name server.
 *
 * The registers of messages stay in the trap frame, where kernel/ipc reads
 * them. The program's task copies a struct ipc_buffer into the kernel at the
 * start of a call and back at its end. The copy back cannot fail, since it is
 * tried before anything else.
 */
#include "kernel/ipc/port.h"
#include "kernel/syscall/syscall.h"
#include "kernel/object/grant.h"
#include "kernel/object/handle.h"
#include "kernel/object/session.h"

#define EXTRA (IPC_DATA | IPC_HANDLE)

/* The port of a handle of the caller, or NULL. */
static inline struct port *port_of(uint32_t handle)
{
    return (struct port *)handle_object(task_self()->task_handles, (int)handle,
                                        &port_type);
}

/* The same if the caller may receive on it. */
static inline struct port *receiving_port(uint32_t handle)
{
    const struct handle *slot =
        handle_slot(task_self()->task_handles, (int)handle);

    if (unlikely(slot == NULL || (slot->handle_flags & HANDLE_RECEIVE) == 0))
        return NULL;
    return (struct port *)slot->handle_object;
}

/* ---- buffers ------------------------------------------------------------ */

static int put_buffer(struct ipc_buffer *b, struct ipc_buffer __user *to)
{
    return copy_to_user(to, b, sizeof(*b));
}

/* Copies the program's buffer and marks it as empty. */
static int copy_buffer(struct ipc_buffer *b, struct ipc_buffer __user *from)
{
    int error = copy_from_user(b, from, sizeof(*b));

    if (error != 0)
        return error;
    if (!user_range(b->ipc_receive, b->ipc_receive_max))
        return -EFAULT;
    b->ipc_received = 0;
    b->ipc_received_handle = -1;
    b->ipc_session = 0;
    return put_buffer(b, from);
}

/* Whether a message with this tag can be sent as the buffer says. */
static int check_sent(const struct ipc_buffer *b, uint32_t tag)
{
    if ((tag & IPC_DATA) && b->ipc_send_size > IPC_DATA_MAX)
        return -EMSGSIZE;
    if ((tag & IPC_DATA) && !user_range(b->ipc_send, b->ipc_send_size))
        return -EFAULT;
    if ((tag & IPC_HANDLE) &&
        handle_slot(task_self()->task_handles, b->ipc_send_handle) == NULL)
        return -EBADF;
    return 0;
}

static inline struct ipc_buffer __user *user_buffer(void)
{
    return (struct ipc_buffer __user *)task_frame(task_self())->ebp;
}

/* Ends a call with a buffer, with this result. */
static int32_t finish_call(struct ipc_buffer *b, int result)
{
    return result == 0 ? put_buffer(b, user_buffer()) : result;
}

/* ---- the calls ---------------------------------------------------------- */

int32_t sys_port_create(uint32_t flags, NO_BC)
{
    struct port *port;

    if (flags != 0)
        return -EINVAL;
    if (!session_charge(session_self(), SESSION_PORTS, 1))
        return -EMFILE;
    port = port_create();
    if (port == NULL) {
        session_refund(session_self(), SESSION_PORTS, 1);
        return -ENOMEM;
    }
    port->port_session = session_self();
    return handle_add(task_self()->task_handles, &port->port_object,
                      HANDLE_RECEIVE);
}

static __attribute__((noinline)) int32_t call_extra(struct port *port,
                                                    uint32_t tag)
{
    struct ipc_buffer b;
    int error = copy_buffer(&b, user_buffer());

    if (error == 0)
        error = check_sent(&b, tag);
    return error != 0 ? error : finish_call(&b, ipc_call(port, &b));
}

int32_t sys_ipc_call(uint32_t handle, uint32_t tag, NO_C)
{
    struct port *port = port_of(handle);

    if (unlikely(port == NULL))
        return -EBADF;
    if (unlikely(((tag & EXTRA) | task_frame(task_self())->ebp) != 0))
        return call_extra(port, tag);
    return ipc_call(port, NULL);
}

int32_t sys_ipc_receive(uint32_t handle, NO_BC)
{
    struct port *port = receiving_port(handle);
    struct ipc_buffer buffer;
    int error;

    if (port == NULL)
        return -EBADF;
    if (user_buffer() == NULL)
        return ipc_receive(port, NULL);
    error = copy_buffer(&buffer, user_buffer());
    return error != 0 ? error
                      : finish_call(&buffer, ipc_receive(port, &buffer));
}

/* A reply that cannot be sent still ends the client's call. The results of the
 * last receive in the program's buffer are unchanged. */
int32_t sys_ipc_reply(uint32_t client, uint32_t tag, NO_C)
{
    struct ipc_buffer b;
    int error = 0;

    if (client == 0)
        return -ESRCH;
    if (((tag & EXTRA) | task_frame(task_self())->ebp) == 0)
        return ipc_reply(client, NULL, 0);
    error = copy_from_user(&b, user_buffer(), sizeof(b));
    if (error == 0)
        error = check_sent(&b, tag);
    return ipc_reply(client, &b, error);
}

/* The same. If no caller waits for a reply, the message is not checked, but the
 * buffer to receive with is. */
static __attribute__((noinline)) int32_t reply_receive_extra(struct port *port,
                                                             uint32_t tag)
{
    struct ipc_buffer b;
    bool given = user_buffer() != NULL;
    int error = 0;
    int sent;

    if (given)
        error = copy_buffer(&b, user_buffer());
    sent = error != 0 ? error : given ? check_sent(&b, tag) : -EFAULT;
    if (sent != 0 && (ipc_reply(0, NULL, sent) != -ESRCH || error != 0))
        return sent;
    if (!given)
        return ipc_receive(port, NULL);
    return finish_call(&b, ipc_reply_receive(port, &b));
}

int32_t sys_ipc_reply_receive(uint32_t handle, uint32_t tag, NO_C)
{
    struct port *port = receiving_port(handle);

    if (unlikely(port == NULL))
        return -EBADF;
    if (unlikely(((tag & EXTRA) | task_frame(task_self())->ebp) != 0))
        return reply_receive_extra(port, tag);
    return ipc_reply_receive(port, NULL);
}

/* ---- notifications, interrupts, names ----------------------------------- */

int32_t sys_notify(uint32_t handle, uint32_t bits, NO_C)
{
    struct port *port = port_of(handle);

    return port == NULL ? -EBADF : ipc_notify(port, bits);
}

int32_t sys_irq_bind(uint32_t handle, uint32_t irq, uint32_t bit)
{
    struct port *port = receiving_port(handle);

    if (irq < MANIFEST_LINES && !grant_has_irq(irq))
        return -EPERM;
    return port == NULL ? -EBADF : ipc_irq_bind(port, irq, bit);
}

int32_t sys_irq_ack(uint32_t irq, NO_BC)
{
    if (irq < MANIFEST_LINES && !grant_has_irq(irq))
        return -EPERM;
    return ipc_irq_ack(irq);
}

/* alarm(port, milliseconds, bit): EBADF, EINVAL. */
int32_t sys_alarm(uint32_t handle, uint32_t ms, uint32_t bit)
{
    struct port *port = receiving_port(handle);

    return port == NULL ? -EBADF : ipc_alarm(port, ms, bit);
}

int32_t sys_name_server(uint32_t op, uint32_t handle, NO_C)
{
    struct port *port;

    if (op == NAME_SERVER_GET) {
        port = name_server_get();
        return port == NULL ? -ENOENT
                            : handle_add(task_self()->task_handles,
                                         &port->port_object, 0);
    }
    if (op != NAME_SERVER_SET)
        return -EINVAL;
    port = port_of(handle);
    if (port == NULL)
        return -EBADF;
    if (!task_self()->task_privileged && !grant_is_of("names"))
        return -EPERM;
    return name_server_set(port);
}
