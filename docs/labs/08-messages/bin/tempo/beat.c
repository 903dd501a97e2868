/*
 * The client's side of the driver beat. The driver is looked up each time,
 * because it may have been replaced.
 */
#include "docs/labs/08-messages/bin/tempo/beat.h"
#include "user/lib/errno.h"
#include "user/lib/ipc.h"

#define PAUSE_MS 10 /* between two attempts */

/* Sends the request *m to the present driver; *m gets the reply. 0 or an error
 * number. */
static int ask_once(struct message *m)
{
    int port = name_lookup("beat");
    int error = 0;

    if (port < 0)
        return errno;
    if (ipc_call(port, m) < 0)
        error = errno;
    close(port);
    return error != 0 ? error : -(int)m->msg_word[0];
}

/* Sends the request *m to the driver; after its death, for at most
 * BEAT_PATIENCE_MS, to its successors. *m gets the reply. 0 or an error
 * number. */
static int ask(struct message *m)
{
    const struct message request = *m;
    int error = ask_once(m);
    uint32_t start = uptime_ms();

    while ((error == EPIPE || error == ENOENT) &&
           ((uptime_ms() - start) & 0x7fffffff) < BEAT_PATIENCE_MS) {
        sleep_ms(PAUSE_MS);
        *m = request;
        error = ask_once(m);
    }
    return error;
}

static int request(struct message *m, uint32_t *number)
{
    int error = ask(m);

    if (error != 0) {
        errno = error;
        return -1;
    }
    *number = m->msg_word[1];
    return 0;
}

int beat_count(uint32_t *count)
{
    struct message m = {.msg_tag = BEAT_COUNT};

    return request(&m, count);
}

int beat_wait(uint32_t period, uint32_t *last)
{
    struct message m = {.msg_tag = BEAT_WAIT, .msg_word = {period, *last}};

    return request(&m, last);
}
