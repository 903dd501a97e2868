/*
 * Client functions of the name server (user/lib/ipc.h).
 *
 * The handle to the server is kept. After the server was replaced, the old port
 * fails with EPIPE; then the kernel is asked for the new one, once.
 */
#include "user/lib/ipc.h"
#include "user/lib/string.h"

static int server = -1;

/* Sends one request to the known server. */
static int ask_once(struct message *m)
{
    if (server < 0)
        server = name_server(NAME_SERVER_GET, 0);
    if (server < 0)
        return -1;
    if (ipc_call(server, m) == 0)
        return 0;
    if (errno == EPIPE) {
        close(server);
        server = -1;
        errno = EPIPE;
    }
    return -1;
}

/* Sends a request about `name`; the reply is in *m. */
static int ask(struct message *m, const char *name, int handle)
{
    const struct message request = *m;
    size_t n = strlen(name);

    if (n > PORT_NAME_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    m->msg_buffer->ipc_send = name;
    m->msg_buffer->ipc_send_size = (uint32_t)n;
    m->msg_buffer->ipc_send_handle = handle;
    if (ask_once(m) < 0) {
        if (errno != EPIPE)
            return -1;
        *m = request;
        if (ask_once(m) < 0)
            return -1;
    }
    if (m->msg_word[0] != 0) {
        errno = (int)m->msg_word[0];
        return -1;
    }
    return 0;
}

static int register_as(const char *name, int port, uint32_t flags)
{
    struct ipc_buffer buffer = {0};
    struct message m = {.msg_tag = NAMES_REGISTER | IPC_DATA | IPC_HANDLE,
                        .msg_word = {flags},
                        .msg_buffer = &buffer};

    return ask(&m, name, port);
}

int name_register(const char *name, int port)
{
    return register_as(name, port, 0);
}

int name_register_for_servers(const char *name, int port)
{
    return register_as(name, port, NAMES_FOR_SERVERS);
}

int name_lookup_owner(const char *name, uint32_t *session)
{
    struct ipc_buffer buffer = {0};
    struct message m = {.msg_tag = NAMES_LOOKUP | IPC_DATA,
                        .msg_buffer = &buffer};

    if (ask(&m, name, -1) < 0)
        return -1;
    *session = m.msg_word[1];
    return buffer.ipc_received_handle;
}

int name_lookup(const char *name)
{
    uint32_t session;

    return name_lookup_owner(name, &session);
}

int name_remove(const char *name)
{
    struct ipc_buffer buffer = {0};
    struct message m = {.msg_tag = NAMES_REMOVE | IPC_DATA,
                        .msg_buffer = &buffer};

    return ask(&m, name, -1);
}

ssize_t name_list(char *buf, size_t size)
{
    struct ipc_buffer buffer = {.ipc_receive = buf,
                                .ipc_receive_max = (uint32_t)size};
    struct message m = {.msg_tag = NAMES_LIST, .msg_buffer = &buffer};

    return ask(&m, "", -1) < 0 ? -1 : (ssize_t)buffer.ipc_received;
}
