/*
 * pong: a server that returns each message: words, bytes, a handle. `ping` is
 * its client.
 *
 *     pong [NAME]      registers as NAME, else as "pong"
 */
#include "user/lib/err.h"
#include "user/lib/ipc.h"

static uint8_t data[IPC_DATA_MAX];

/* Replies to a message with a handle, and closes the handle. */
static int pass_back(struct message *m)
{
    struct ipc_buffer *b = m->msg_buffer;
    int result;

    b->ipc_send_handle = b->ipc_received_handle;
    result = ipc_reply(m->msg_client, m);
    close(b->ipc_received_handle);
    return result;
}

static void serve(int port) __attribute__((noreturn));
static void serve(int port)
{
    struct ipc_buffer b = {
        .ipc_send = data,
        .ipc_receive = data,
        .ipc_receive_max = sizeof(data),
    };
    struct message m = {.msg_buffer = &b};
    int result = ipc_receive(port, &m);

    for (;;) {
        b.ipc_send_size = b.ipc_received;
        if (result == 0 && m.msg_client != 0 && (m.msg_tag & IPC_HANDLE) != 0) {
            pass_back(&m);
            result = ipc_receive(port, &m);
        } else if (result == 0 && m.msg_client != 0) {
            result = ipc_reply_receive(port, &m);
        } else {
            result = ipc_receive(port, &m);
        }
    }
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "pong";
    int port = port_create();

    if (argc > 2)
        usage("[NAME]");
    if (port < 0)
        err(1, "port");
    if (name_register(name, port) < 0)
        err(1, "%s", name);
    serve(port);
}
