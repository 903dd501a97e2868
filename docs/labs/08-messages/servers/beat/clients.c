/*
 * Clients that wait, each for its own beat. Only a client's number is stored,
 * which is enough to send a reply.
 */
#include "docs/labs/08-messages/servers/beat/beat.h"
#include "user/lib/stdlib.h"

struct client {
    uint32_t client_number;
    uint32_t client_due; /* the beat that it waits for */
};

static struct client *waiting;
static size_t count; /* of waiting clients */
static size_t room;  /* elements of the array */

static int grow(void)
{
    size_t more = room == 0 ? 8 : 2 * room;
    struct client *p = realloc(waiting, more * sizeof(*p));

    if (p == NULL)
        return ENOMEM;
    waiting = p;
    room = more;
    return 0;
}

int clients_add(uint32_t client, uint32_t due)
{
    if (count == room && grow() != 0)
        return ENOMEM;
    waiting[count++] = (struct client){client, due};
    return 0;
}

/* If a client has died meanwhile, ipc_reply fails, which can be ignored. */
void clients_reply(uint32_t now)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        struct client c = waiting[i];
        struct message m = {.msg_word = {0, c.client_due}};

        if ((int32_t)(now - c.client_due) >= 0)
            ipc_reply(c.client_number, &m);
        else
            waiting[kept++] = c;
    }
    count = kept;
}

size_t clients_waiting(void)
{
    return count;
}
