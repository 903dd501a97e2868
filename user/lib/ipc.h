/*
 * Messages (kernel/abi/ipc.h) as C functions, and names of ports.
 *
 *     struct message m = {.msg_tag = PING, .msg_word = {42}};
 *     int server = name_lookup("ping");
 *
 *     if (ipc_call(server, &m) < 0)
 *         err(1, "ping");
 *     printf("%u\n", m.msg_word[0]);
 *
 * One struct message serves both directions: the reply overwrites a call's
 * message; the next request overwrites the reply that ipc_reply_receive sends.
 */
#pragma once

#include "kernel/abi/ipc.h"
#include "user/lib/unistd.h"

/* user/lib/syscall.asm uses the offsets of these members. */
struct message {
    uint32_t msg_tag; /* label | IPC_DATA | IPC_HANDLE */
    uint32_t msg_word[3];
    struct ipc_buffer *msg_buffer; /* NULL: neither bytes nor a handle */
    uint32_t msg_client; /* out, of a receive; 0: a notification, bits in
                            msg_word[0] */
};

/* A new port, as a handle that may receive. No flags are defined: 0. */
int port_create_flags(uint32_t flags);

static inline int port_create(void)
{
    return port_create_flags(0);
}

/* All return 0, or -1 with errno. */
int ipc_call(int port, struct message *m);
int ipc_receive(int port, struct message *m);
int ipc_reply(uint32_t client, struct message *m);
int ipc_reply_receive(int port, struct message *m);

/* Sets notification bits of a port, for its receiver. */
int notify(int port, uint32_t bits);

/* Binds interrupt line `irq`: an interrupt sets bit number `bit` of the port's
 * notification and masks the line until irq_ack. The caller's grant must have
 * the line. */
int irq_bind(int port, int irq, unsigned bit);
int irq_ack(int irq);

/* Sets bit number `bit` of the port's notification once, after `ms`
 * milliseconds; 0 cancels the port's alarm. A port has at most one. The caller
 * must be able to receive on the port. */
int alarm(int port, uint32_t ms, unsigned bit);

/* NAME_SERVER_GET (`port` is ignored): returns a handle. NAME_SERVER_SET: 0. */
int name_server(int operation, int port);

/* ---- the name server ----------------------------------------------------
 *
 * The port that name_server(NAME_SERVER_GET) returns accepts these labels. The
 * message's bytes are the name, 1 to PORT_NAME_MAX of them, without a NUL. The
 * reply's label is 0 and its first word 0 or an error number.
 */
enum names_label {
    NAMES_REGISTER = 1, /* with the port's handle, word 0: flags; EEXIST while
                           the name has a live port, ENOSPC: too many names of
                           the session, EPERM: a session, and the name of a
                           server of the manifest. A server's registration
                           replaces that of a session */
    NAMES_LOOKUP,       /* the reply brings a handle; word 1: the session that
                           registered it, 0: a server. ENOENT, EPERM */
    NAMES_REMOVE,       /* ENOENT, EPERM: not of the caller's session */
    NAMES_LIST,         /* reply's bytes: all names, each with a NUL */
};

#define NAMES_FOR_SERVERS                                                      \
    1u /* sessions cannot look it up; for servers: EPERM */

#define PORT_NAME_MAX 31

/* Publishes a port under a name: 0 or -1. */
int name_register(const char *name, int port);

/* The same; only servers can look it up. */
int name_register_for_servers(const char *name, int port);

/* A handle to the port of that name, or -1. */
int name_lookup(const char *name);

/* The same; *session: that of the program that registered it, 0: a server. So a
 * client can tell a successor of its server from a stranger. */
int name_lookup_owner(const char *name, uint32_t *session);

int name_remove(const char *name);

/* Fills `buf` with all names, each with a NUL; returns the bytes or -1. */
ssize_t name_list(char *buf, size_t size);
