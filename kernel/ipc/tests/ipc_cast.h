/*
 * The actors of the tests of messages: the server s, the clients c, d and e,
 * and checks of their messages. Each file that includes this has its own.
 */
#pragma once

#include "kernel/ipc/tests/ipc_actor.h"

static struct actor s, c, d, e;
static uint32_t port_s;                 /* the server's handle */
static uint32_t port_c, port_d, port_e; /* handles of the callers */

/* A server with a port, and `clients` of c, d and e with handles to it. */
static inline void begin(unsigned clients)
{
    struct actor *const actor[] = {&c, &d, &e};
    uint32_t *const handle[] = {&port_c, &port_d, &port_e};
    static const char *const name[] = {"client-c", "client-d", "client-e"};

    actor_start(&s, "server", PAGE_SIZE);
    port_s = actor_port(&s);
    for (unsigned i = 0; i < clients; i++) {
        actor_start(actor[i], name[i], PAGE_SIZE);
        *handle[i] = actor_share(&s, port_s, actor[i], 0);
    }
}

/* Ends an actor and its grant. */
static inline void take_back(struct actor *a, struct grant *g)
{
    actor_end_grant(g);
    actor_end(a);
}

/* The server has received `tag` with its words from a client. */
static inline void expect_received(const struct actor *client, uint32_t tag)
{
    KT_TRUE(!actor_waits(&s));
    KT_EQ(s.actor_result, 0);
    KT_EQ(s.actor_out[0], client == NULL ? 0 : client->actor_client);
    KT_EQ(s.actor_out[1], tag);
    if (client == NULL)
        return;
    KT_EQ(s.actor_out[2], client->actor_in[2]);
    KT_EQ(s.actor_out[3], client->actor_in[3]);
    KT_EQ(s.actor_out[4], client->actor_in[4]);
}

/* A client has returned with the server's reply. */
static inline void expect_reply(const struct actor *client, uint32_t tag)
{
    KT_TRUE(!actor_waits(client));
    KT_EQ(client->actor_result, 0);
    KT_EQ(client->actor_out[1], tag);
    KT_EQ(client->actor_out[2], s.actor_in[2]);
    KT_EQ(client->actor_out[3], s.actor_in[3]);
    KT_EQ(client->actor_out[4], s.actor_in[4]);
}

/* A call has ended with this. */
static inline void expect_back(const struct actor *a, int result)
{
    KT_TRUE(!actor_waits(a));
    KT_EQ(a->actor_result, result);
}

static inline bool receive(void)
{
    return actor_do(&s, sys_ipc_receive, port_s, 0, 0);
}

static inline bool call(struct actor *client, uint32_t handle, uint32_t tag)
{
    return actor_do(client, sys_ipc_call, handle, tag, tag * 100);
}

static inline int reply(const struct actor *client, uint32_t tag)
{
    return actor_result(&s, sys_ipc_reply, client->actor_client, tag,
                        tag * 1000);
}
