/*
 * Calls that the kernel makes for a task (ipc_call_kernel): the task's own
 * registers stay, bytes may be the kernel's, handles do not come, and a kill or
 * the death of the server ends the wait.
 *
 * Tests: kernel/ipc/message.c
 */
#include "kernel/lib/string.h"
#include "kernel/ipc/tests/ipc_cast.h"

/* The call that the client's task makes, and its result. */
static struct {
    uint32_t words[4];
    struct ipc_buffer buffer;
    bool received;
} k;

static char sent[] = "from the kernel", came[16];

/* A step of an actor's: the call on the port of a handle. */
static int32_t kernel_call(uint32_t handle, uint32_t tag, uint32_t word)
{
    struct port *port = (struct port *)handle_object(task_self()->task_handles,
                                                     (int)handle, &port_type);

    k.words[0] = tag;
    for (unsigned i = 0; i < 3; i++)
        k.words[i + 1] = word * 10 + i;
    return ipc_call_kernel(port, k.words, &k.buffer, &k.received);
}

static bool kcall(uint32_t tag)
{
    return actor_do(&c, kernel_call, port_c, tag, 4);
}

static void begin_kernel(void)
{
    k.buffer = (struct ipc_buffer){
        .ipc_send = sent,
        .ipc_send_size = sizeof(sent),
        .ipc_receive = came,
        .ipc_receive_max = sizeof(came),
    };
    k.received = false;
    memset(came, 0, sizeof(came));
    begin(1);
}

/* The client has returned; only the result has changed. */
static void expect_kernel_back(int result)
{
    expect_back(&c, result);
    for (unsigned i = 0; i < 5; i++)
        KT_EQ(c.actor_out[i], c.actor_in[i]);
}

static void expect_call(uint32_t tag)
{
    KT_TRUE(!actor_waits(&s));
    KT_EQ(s.actor_result, 0);
    KT_EQ(s.actor_out[0], c.actor_client);
    KT_EQ(s.actor_out[1], tag);
    for (unsigned i = 0; i < 3; i++)
        KT_EQ(s.actor_out[2 + i], 40 + i);
}

static void expect_kernel_reply(uint32_t tag)
{
    expect_kernel_back(0);
    KT_EQ(k.words[0], tag);
    for (unsigned i = 0; i < 3; i++)
        KT_EQ(k.words[1 + i], tag * 1000 + i);
}

KTEST(ipc_kernel, words_there_and_back)
{
    begin_kernel();
    for (unsigned first = 0; first < 2; first++) {
        if (first)
            KT_TRUE(!receive());
        KT_TRUE(!kcall(7));
        if (!first)
            KT_TRUE(receive());
        expect_call(7);
        KT_EQ(reply(&c, 8), 0);
        expect_kernel_reply(8);
    }
}

/* The server's bytes are in its own memory, the client's in the kernel's. */
KTEST(ipc_kernel, bytes_of_the_kernel)
{
    begin_kernel();
    actor_buffer(&s, 5, 100, 0);
    memcpy(actor_memory(&s, ACTOR_SEND), "reply", 5);
    KT_TRUE(!actor_do_buffer(&s, sys_ipc_receive, port_s, 0, 0, ACTOR_BUFFER));
    KT_TRUE(!kcall(7 | IPC_DATA));
    expect_call(7 | IPC_DATA);
    KT_EQ(memcmp(actor_memory(&s, ACTOR_RECEIVE), sent, sizeof(sent)), 0);
    KT_TRUE(actor_do_buffer(&s, sys_ipc_reply, c.actor_client, IPC_DATA, 6,
                            ACTOR_BUFFER));
    expect_kernel_back(0);
    KT_EQ(k.buffer.ipc_received, 5);
    KT_EQ(memcmp(came, "reply", 6), 0);
}

/* A program's own call still cannot name the kernel's memory. */
KTEST(ipc_kernel, not_for_programs)
{
    struct ipc_buffer *b;

    begin_kernel();
    b = actor_buffer(&c, 4, 4, 0);
    b->ipc_send = sent;
    KT_TRUE(
        actor_do_buffer(&c, sys_ipc_call, port_c, IPC_DATA, 0, ACTOR_BUFFER));
    expect_back(&c, -EFAULT);
}

KTEST(ipc_kernel, no_handle_comes)
{
    uint32_t used;

    begin_kernel();
    used = c.actor_task->task_handles->table_used;
    actor_buffer(&s, 1, 100, (int)port_s);
    KT_TRUE(!kcall(1));
    KT_TRUE(actor_do_buffer(&s, sys_ipc_receive, port_s, 0, 0, ACTOR_BUFFER));
    KT_TRUE(actor_do_buffer(&s, sys_ipc_reply, c.actor_client, IPC_HANDLE, 6,
                            ACTOR_BUFFER));
    KT_EQ(s.actor_result, -EMSGSIZE);
    expect_kernel_back(-EMSGSIZE);
    KT_EQ(c.actor_task->task_handles->table_used, used);
}

/* More bytes than there is room for. */
KTEST(ipc_kernel, no_more_than_fits)
{
    begin_kernel();
    actor_buffer(&s, sizeof(came) + 1, 100, 0);
    KT_TRUE(!kcall(1));
    KT_TRUE(actor_do_buffer(&s, sys_ipc_receive, port_s, 0, 0, ACTOR_BUFFER));
    KT_TRUE(actor_do_buffer(&s, sys_ipc_reply, c.actor_client, IPC_DATA, 6,
                            ACTOR_BUFFER));
    expect_kernel_back(-EMSGSIZE);
    KT_EQ(came[0], 0);
}

/* ---- how it ends early -------------------------------------------------- */

KTEST(ipc_kernel, a_kill_ends_it)
{
    begin_kernel();
    KT_TRUE(!kcall(1));
    actor_kill(&c);
    expect_kernel_back(-EINTR);
    KT_TRUE(!k.received);
    KT_TRUE(kcall(1));
    expect_kernel_back(-EINTR);
}

KTEST(ipc_kernel, the_server_dies)
{
    begin_kernel();
    KT_TRUE(!kcall(1));
    KT_TRUE(receive());
    actor_end(&s);
    expect_kernel_back(-EPIPE);
    KT_TRUE(k.received);
    KT_TRUE(kcall(1));
    expect_kernel_back(-EPIPE);
    KT_TRUE(!k.received);
}

/* Of two possible receivers one calls and the other exits: no task is left that
 * could reply. */
KTEST(ipc_kernel, the_other_receiver_goes)
{
    uint32_t own;

    begin(2);
    own = actor_share(&s, port_s, &c, HANDLE_RECEIVE);
    KT_TRUE(!call(&c, own, 1));
    KT_TRUE(!call(&d, port_d, 2));
    actor_end(&s);
    expect_back(&c, -EDEADLK);
    KT_TRUE(actor_waits(&d));
    KT_TRUE(actor_do(&c, sys_ipc_receive, own, 0, 0));
    KT_EQ(c.actor_out[0], d.actor_client);
    actor_end(&c);
    expect_back(&d, -EPIPE);
}
