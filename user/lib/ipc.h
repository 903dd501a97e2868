/*
 * Messages (kernel/abi/ipc.h) as C functions, and names for ports.
 *
 *     struct message m = {.msg_tag = PING, .msg_word = {42}};
 *     int server = name_lookup("ping");
 *
 *     if (ipc_call(server, &m) < 0)
 *         err(1, "ping");
 *     printf("%u\n", m.msg_word[0]);
 *
 * One struct message serves both directions: what a call sends is overwritten
 * by its answer, what ipc_reply_receive answers by the next request.
 */
#pragma once

#include "kernel/abi/ipc.h"
#include "user/lib/unistd.h"

/* user/lib/syscall.asm knows the places of these members. */
struct message {
    uint32_t msg_tag; /* label | IPC_DATA | IPC_HANDLE */
    uint32_t msg_word[3];
    struct ipc_buffer *msg_buffer; /* NULL: neither bytes nor a handle */
    uint32_t msg_client; /* out, of a receive; 0: a notification, whose bits
                            are in msg_word[0] */
};

/* A new port, as a handle that may receive. There are no flags yet: 0. */
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

/* Sets notification bits of a port; whoever receives there gets them. */
int notify(int port, uint32_t bits);

/* From now on an interrupt on line `irq` sets bit number `bit` of the port's
 * notification, and masks the line until irq_ack. For servers whose grant has
 * the line. */
int irq_bind(int port, int irq, unsigned bit);
int irq_ack(int irq);

/* After `ms` milliseconds bit number `bit` of the port's notification is set,
 * once; 0 ends an alarm that the port has. It has one at most. For whoever may
 * receive there. */
int alarm(int port, uint32_t ms, unsigned bit);

/* NAME_SERVER_GET (`port` means nothing): a handle; NAME_SERVER_SET: 0. */
int name_server(int operation, int port);

/* ---- the name server ----------------------------------------------------
 *
 * The port that name_server(NAME_SERVER_GET) returns answers these labels. The
 * message's bytes are the name, 1 to PORT_NAME_MAX of them, without a NUL. The
 * answer's label is 0 and its first word 0 or an error number.
 */
enum names_label {
    NAMES_REGISTER = 1, /* with the port's handle; EEXIST while it has a port
                           that lives */
    NAMES_LOOKUP,       /* the answer brings a handle; ENOENT */
    NAMES_REMOVE,       /* ENOENT */
    NAMES_LIST,         /* the answer's bytes: all names, a NUL behind each */
};

#define PORT_NAME_MAX 31

/* Publishes a port under a name: 0 or -1. */
int name_register(const char *name, int port);

/* A handle to the port of that name, or -1. */
int name_lookup(const char *name);

int name_remove(const char *name);

/* Fills `buf` with all names, a NUL behind each; returns the bytes or -1. */
ssize_t name_list(char *buf, size_t size);
