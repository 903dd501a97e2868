/*
 * Messages: call, receive, reply, and what ends them early.
 *
 * A short message is four registers, copied from one task's trap frame to the
 * other's. If a receiver waits, a call switches straight to it, without the run
 * queue. If the server has no other call to receive after a reply, the reply
 * switches straight to the client:
 *
 *     client                              server
 *     ipc_call                            (waits in ipc_reply_receive)
 *       registers ──────────────────────> returns
 *       (waits)                           …
 *     returns <────────────────────────── ipc_reply_receive: registers
 *                                         (waits)
 *
 * The server copies bytes and handles, in both directions, with sched_lock
 * released, because copying may fault and sleep. Meanwhile the client is
 * blocked and pinned: a kill is recorded, but wakes it only after the copy. So
 * its memory and handles do not change. A caller with bytes therefore queues
 * even if a receiver waits, and the receiver is woken to test the queue again.
 *
 * A task that waits here tests its own state afterwards. The task that ended
 * the wait has removed it from its list; a killed task removes itself.
 */
#include "kernel/abi/errno.h"
#include "kernel/ipc/ipc_impl.h"
#include "kernel/object/session.h"

/* Results of a wait, besides errors. */
#define DELIVERED 0 /* the message is in the registers */
#define RETRY     1 /* test the queue again */

/* ---- small steps -------------------------------------------------------- */

static inline void copy_words(const struct task *to, const struct task *from)
{
    struct trapframe *out = task_frame(to);
    const struct trapframe *in = task_frame(from);

    spin_assert_held(&sched_lock);
    out->ecx = in->ecx;
    out->edx = in->edx;
    out->esi = in->esi;
    out->edi = in->edi;
}

/* The first waiting receiver, or NULL. */
static inline struct task *receiver(const struct port *port)
{
    spin_assert_held(&sched_lock);
    list_for_each (l, &port->port_receivers)
        if (likely(ipc_waits(ipc_task(l))))
            return ipc_task(l);
    return NULL;
}

/* Removes the task from its list, without waking it. */
static inline void dequeue(struct task *t)
{
    spin_assert_held(&sched_lock);
    list_remove(&t->task_ipc.ipc_link);
    t->task_ipc.ipc_state = IPC_NONE;
}

/* `client`, which is in no list, now waits for a reply from `server`. */
static inline void accept_call(struct task *server, struct task *client)
{
    spin_assert_held(&sched_lock);
    client->task_ipc.ipc_state = IPC_REPLY;
    client->task_ipc.ipc_server = server;
    list_insert_before(&server->task_ipc.ipc_clients,
                       &client->task_ipc.ipc_link);
    client->task_ipc.ipc_port->port_calls++;
    server->task_ipc.ipc_last = client;
    if (server->task_ipc.ipc_buffer != NULL)
        server->task_ipc.ipc_buffer->ipc_session =
            session_number(client->task_session);
    task_frame(server)->ebx = client->task_ipc.ipc_client;
}

/* `client` no longer waits for a reply from `server`. */
static inline void end_call(struct task *server, struct task *client)
{
    dequeue(client);
    if (server->task_ipc.ipc_last == client)
        server->task_ipc.ipc_last = NULL;
}

/* After a kill: removes the caller from the list where it waited. */
static void withdraw(struct task *self)
{
    if (self->task_ipc.ipc_state == IPC_REPLY)
        end_call(self->task_ipc.ipc_server, self);
    else
        dequeue(self);
}

/* ---- bytes and handles -------------------------------------------------- */

/* From now on no kill ends the client's wait. */
static void pin(struct task *client)
{
    spin_assert_held(&sched_lock);
    client->task_ipc.ipc_state = IPC_TRANSFER;
    client->task_interruptible = false;
}

/* A kill can end the client's wait again. */
static void unpin(struct task *client, enum ipc_state state)
{
    spin_assert_held(&sched_lock);
    client->task_ipc.ipc_state = (uint8_t)state;
    client->task_interruptible = true;
    if (client->task_pending & PENDING_KILL)
        sched_wake(client, -EINTR);
}

/* Returns a caller that could not be received to the head of the queue, and
 * wakes a waiting receiver to test the queue again. */
static void requeue(struct task *server, struct task *client)
{
    struct port *port = client->task_ipc.ipc_port;
    struct task *t;

    end_call(server, client);
    client->task_ipc.ipc_server = NULL; /* it has not been received */
    port->port_calls--;
    list_insert_after(&port->port_callers, &client->task_ipc.ipc_link);
    unpin(client, IPC_QUEUED);
    t = receiver(port);
    if (t != NULL) {
        dequeue(t);
        sched_wake(t, RETRY);
    }
}

/* Receives the bytes and handle of an accepted call; releases the lock
 * meanwhile. An error goes to the client, and the server tries the next call.
 * If the server's own memory cannot be written, the error is the server's. */
static int receive_extra(struct task *self, struct task *client)
{
    bool own = false;
    int error;

    pin(client);
    spin_unlock(&sched_lock);
    error = ipc_transfer(self, client, task_frame(client)->ecx);
    if (error == -EFAULT)
        own = ipc_readable(client);
    spin_lock(&sched_lock);
    if (own) {
        requeue(self, client);
        return error;
    }
    if (error != 0) {
        end_call(self, client);
        sched_wake(client, error);
        return RETRY;
    }
    copy_words(self, client);
    unpin(client, IPC_REPLY);
    return DELIVERED;
}

/* Ends a client's call, with the reply in the registers and in `buffer`, or
 * with an error. Releases the lock if there is more than registers. A call by
 * the kernel gets -EIO for an -EFAULT that the server's memory has caused. */
static int send_reply(struct task *self, struct task *client,
                      struct ipc_buffer *buffer, int error)
{
    uint32_t tag = task_frame(self)->ecx;
    bool own = error == -EFAULT && client->task_ipc.ipc_kernel;

    if (error == 0 && (tag & IPC_EXTRA) != 0) {
        self->task_ipc.ipc_buffer = buffer;
        pin(client);
        spin_unlock(&sched_lock);
        error = ipc_transfer(client, self, tag);
        if (error == -EFAULT && client->task_ipc.ipc_kernel)
            own = !ipc_readable(self);
        spin_lock(&sched_lock);
    }
    if (error == 0)
        copy_words(client, self);
    end_call(self, client);
    sched_wake(client, own ? -EIO : error);
    return error;
}

/* ---- calling ------------------------------------------------------------ */

/* Queues the caller. It may do so while a receiver waits: if the message has
 * more than registers. */
static int call_queued(struct task *self, struct port *port,
                       struct task *server)
{
    struct task_ipc *ipc = &self->task_ipc;
    bool deadlock =
        server == NULL && port->port_holders != 0 && ipc_deadlock(self);

    /* The lock may have been released meanwhile. */
    server = receiver(port);
    if (port->port_holders == 0)
        return -EPIPE;
    if (deadlock)
        return -EDEADLK;
    ipc->ipc_state = IPC_QUEUED;
    list_insert_before(&port->port_callers, &ipc->ipc_link);
    if (server == NULL)
        return sched_block(true, 0);
    dequeue(server);
    return sched_block_handoff(true, server, RETRY);
}

static inline int call(struct task *self, struct port *port)
{
    struct task *server = receiver(port);

    if (unlikely(self->task_pending & PENDING_KILL))
        return -EINTR;
    if (unlikely(server == NULL || (task_frame(self)->ecx & IPC_EXTRA) != 0))
        return call_queued(self, port, server);
    dequeue(server);
    accept_call(server, self);
    copy_words(server, self);
    return sched_block_handoff(true, server, DELIVERED);
}

int ipc_call(struct port *port, struct ipc_buffer *buffer)
{
    struct task *self = task_self();
    int result;

    spin_lock(&sched_lock);
    self->task_ipc.ipc_port = port;
    self->task_ipc.ipc_buffer = buffer;
    result = call(self, port);
    if (unlikely(self->task_ipc.ipc_state != IPC_NONE))
        withdraw(self);
    spin_unlock(&sched_lock);
    return result;
}

/* ---- calls of the kernel ------------------------------------------------ */

/* Moves tag and words between a frame and an array. */
static void put_words(struct trapframe *tf, const uint32_t words[4])
{
    tf->ecx = words[0];
    tf->edx = words[1];
    tf->esi = words[2];
    tf->edi = words[3];
}

static void get_words(const struct trapframe *tf, uint32_t words[4])
{
    words[0] = tf->ecx;
    words[1] = tf->edx;
    words[2] = tf->esi;
    words[3] = tf->edi;
}

/* The message's registers are those of the frame at the top of the stack, as in
 * every call. The program's registers are restored afterwards. */
int ipc_call_kernel(struct port *port, uint32_t words[4],
                    struct ipc_buffer *buffer, bool *received)
{
    struct task *self = task_self();
    struct task_ipc *ipc = &self->task_ipc;
    struct trapframe *tf = task_frame(self);
    uint32_t saved[4];
    int result;

    get_words(tf, saved);
    put_words(tf, words);
    spin_lock(&sched_lock);
    ipc->ipc_port = port;
    ipc->ipc_buffer = buffer;
    ipc->ipc_server = NULL;
    ipc->ipc_kernel = true;
    result = call(self, port);
    if (ipc->ipc_state != IPC_NONE)
        withdraw(self);
    ipc->ipc_kernel = false;
    *received = ipc->ipc_server != NULL;
    spin_unlock(&sched_lock);
    get_words(tf, words);
    put_words(tf, saved);
    return result;
}

/* ---- receiving ---------------------------------------------------------- */

/* A notification is received as a message from client 0. */
static void take_bits(struct port *port, const struct task *to)
{
    struct trapframe *out = task_frame(to);

    out->ebx = 0;
    out->ecx = 0;
    out->edx = port->port_bits;
    out->esi = 0;
    out->edi = 0;
    port->port_bits = 0;
}

/* Receives notification bits or a queued call. RETRY: neither was left. */
static int take_message(struct task *self, struct port *port)
{
    struct task *client;

    if (port->port_bits != 0) {
        take_bits(port, self);
        return DELIVERED;
    }
    client = ipc_task(port->port_callers.next);
    dequeue(client);
    if (!ipc_waits(client)) /* killed */
        return RETRY;
    accept_call(self, client);
    if (task_frame(client)->ecx & IPC_EXTRA)
        return receive_extra(self, client);
    copy_words(self, client);
    return DELIVERED;
}

/* Waits for a call. Switches to `replied`, the client that has just got its
 * reply, if any. */
static inline int wait_for_call(struct task *self, struct port *port,
                                struct task *replied)
{
    int result;

    self->task_ipc.ipc_state = IPC_RECEIVING;
    list_insert_before(&port->port_receivers, &self->task_ipc.ipc_link);
    if (replied == NULL)
        result = sched_block(true, 0);
    else
        result = sched_block_handoff(true, replied, 0);
    if (unlikely(self->task_ipc.ipc_state != IPC_NONE))
        withdraw(self);
    return result;
}

static inline bool pending(const struct port *port)
{
    return port->port_bits != 0 || !list_empty(&port->port_callers);
}

/* `replied`, if not NULL, has its reply and must still be woken. */
static inline int receive(struct task *self, struct port *port,
                          struct ipc_buffer *buffer, struct task *replied)
{
    int result;

    spin_assert_held(&sched_lock);
    self->task_ipc.ipc_port = port;
    self->task_ipc.ipc_buffer = buffer;
    self->task_ipc.ipc_last = NULL;
    port->port_server = self->task_pid;
    if (unlikely(replied != NULL && pending(port))) {
        sched_wake(replied, 0);
        replied = NULL;
    }
    do {
        if (likely(!pending(port)))
            result = wait_for_call(self, port, replied);
        else
            result = take_message(self, port);
        replied = NULL;
    } while (unlikely(result == RETRY));
    return result;
}

int ipc_receive(struct port *port, struct ipc_buffer *buffer)
{
    int result;

    spin_lock(&sched_lock);
    result = receive(task_self(), port, buffer, NULL);
    spin_unlock(&sched_lock);
    return result;
}

/* ---- replying ----------------------------------------------------------- */

/* The client of that number, if it waits for a reply from this task. */
static struct task *find_client(const struct task *self, uint32_t number)
{
    struct task *t = number == 0 ? self->task_ipc.ipc_last
                                 : task_find((pid_t)IPC_PID(number));

    if (t == NULL || (number != 0 && t->task_ipc.ipc_client != number) ||
        t->task_ipc.ipc_state != IPC_REPLY || t->task_ipc.ipc_server != self ||
        !ipc_waits(t))
        return NULL;
    return t;
}

int ipc_reply(uint32_t client, struct ipc_buffer *buffer, int error)
{
    struct task *self = task_self();
    struct task *t;
    int result = -ESRCH;

    spin_lock(&sched_lock);
    t = find_client(self, client);
    if (t != NULL)
        result = send_reply(self, t, buffer, error);
    spin_unlock(&sched_lock);
    return result;
}

int ipc_reply_receive(struct port *port, struct ipc_buffer *buffer)
{
    struct task *self = task_self();
    struct task *client;
    int result = 0;

    spin_lock(&sched_lock);
    client = self->task_ipc.ipc_last;
    if (unlikely(client != NULL && !ipc_waits(client)))
        client = NULL;
    if (likely(client != NULL)) {
        if (unlikely((task_frame(self)->ecx & IPC_EXTRA) != 0)) {
            result = send_reply(self, client, buffer, 0);
            client = NULL;
        } else {
            dequeue(client);
            copy_words(client, self);
        }
    }
    if (likely(result == 0))
        result = receive(self, port, buffer, client);
    spin_unlock(&sched_lock);
    return result;
}

/* ---- notifications ------------------------------------------------------ */

int ipc_notify_locked(struct port *port, uint32_t bits)
{
    struct task *t = receiver(port);

    spin_assert_held(&sched_lock);
    if (port->port_holders == 0)
        return -EPIPE;
    port->port_bits |= bits;
    if (t == NULL || port->port_bits == 0)
        return 0;
    take_bits(port, t);
    dequeue(t);
    sched_wake(t, DELIVERED);
    return 0;
}

int ipc_notify(struct port *port, uint32_t bits)
{
    int result;

    spin_lock(&sched_lock);
    result = ipc_notify_locked(port, bits);
    spin_unlock(&sched_lock);
    return result;
}

/* ---- death of the other side -------------------------------------------- */

void ipc_refuse(struct task *t, int error)
{
    dequeue(t);
    sched_wake(t, error);
}

/* Ends the wait of the first in a list that no task enters any more; whether
 * some may be left. Killed tasks remove themselves. */
static bool refuse_first(struct list *waiting)
{
    bool any;

    spin_lock(&sched_lock);
    any = !list_empty(waiting);
    if (any && ipc_waits(ipc_task(waiting->next)))
        ipc_refuse(ipc_task(waiting->next), -EPIPE);
    else if (any)
        dequeue(ipc_task(waiting->next));
    spin_unlock(&sched_lock);
    return any;
}

void ipc_refuse_callers(struct port *port)
{
    while (refuse_first(&port->port_callers))
        ;
}

void ipc_task_exit(struct task *t)
{
    spin_lock(&sched_lock);
    t->task_ipc.ipc_last = NULL;
    spin_unlock(&sched_lock);
    while (refuse_first(&t->task_ipc.ipc_clients))
        ;
}
