/*
 * The receive loop of a driver, independent of beats.
 */
#include "docs/labs/08-messages/servers/beat/beat.h"

void loop(int port, bool (*request)(struct message *m),
          void (*notified)(uint32_t bits))
{
    struct message m = {0};
    bool has_reply = false;

    for (;;) {
        int result =
            has_reply ? ipc_reply_receive(port, &m) : ipc_receive(port, &m);

        has_reply = false;
        if (result < 0)
            continue; /* the client could not receive the reply */
        if (m.msg_client == 0)
            notified(m.msg_word[0]);
        else
            has_reply = request(&m);
    }
}
