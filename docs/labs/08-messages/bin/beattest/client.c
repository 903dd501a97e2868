/*
 * Tests of beat.c, the client. The drivers here send a prescribed reply, or
 * die after they have received the request.
 */
#include "user/lib/err.h"
#include "docs/labs/08-messages/bin/beattest/beattest.h"

#define PERIOD (2 + lab_pick(SEED_PERIOD, 50))
#define LAST   (PERIOD * (1 + lab_pick(SEED_LAST, 50)))
#define BEAT   (LAST + PERIOD)

enum {
    CLIENT_RIGHT = 50, /* the right number, and no errors */
    CLIENT_OTHER,      /* success with another number */
    CLIENT_LEAK,       /* handles were left open */
    DRIVER_ASKED,      /* the expected request */
    DRIVER_OTHER,
    DRIVER_PAUSES, /* the client pauses between its attempts */
};

/* ---- the client --------------------------------------------------------- */

static int next_handle(void)
{
    int port = port_create();

    close(port);
    return port;
}

/* Exits with one of the above, or an error number. */
static int wait_for_beat(void)
{
    uint32_t last = LAST;
    int handle;
    int result;

    close(name_lookup(PART)); /* the library keeps its handle to names */
    handle = next_handle();
    result = beat_wait(PERIOD, &last);
    if (next_handle() != handle)
        return CLIENT_LEAK;
    if (result < 0)
        return last == LAST ? -1 : CLIENT_OTHER;
    return last == BEAT ? CLIENT_RIGHT : CLIENT_OTHER;
}

/* ---- drivers ------------------------------------------------------------ */

#define ALONE_MS 600u /* a driver without a request for so long exits */

static uint32_t reply_error; /* the error in its reply */

static int receive_one(struct message *m)
{
    int port = port_create();

    if (port < 0 || name_register("beat", port) < 0)
        err(1, "the name beat");
    alarm(port, ALONE_MS, 0);
    if (ipc_receive(port, m) < 0)
        return DRIVER_OTHER;
    return m->msg_tag == BEAT_WAIT && m->msg_word[0] == PERIOD &&
                   m->msg_word[1] == LAST
               ? DRIVER_ASKED
               : DRIVER_OTHER;
}

static int receive_and_die(void)
{
    struct message m = {0};

    return receive_one(&m);
}

/* A beat may be a minute away. */
static int receive_and_die_late(void)
{
    struct message m = {0};
    int result = receive_one(&m);

    sleep_ms(BEAT_PATIENCE_MS * 11 / 10);
    return result;
}

static int receive_and_reply(void)
{
    struct message m = {0};
    int result = receive_one(&m);
    uint32_t client = m.msg_client;

    m = (struct message){.msg_word = {-reply_error, BEAT}};
    ipc_reply(client, &m);
    return result;
}

/* Replies with the error that means: no driver. The client repeats the request,
 * but by then the message contains the reply. */
static int receive_and_refuse(void)
{
    reply_error = ENOENT;
    return receive_and_reply();
}

#define PAUSE_MS   10u /* between two attempts (beat.c) */
#define ATTEMPT_MS 300u

/* Replies to each request as if there were no driver, for ATTEMPT_MS. Without a
 * pause a waiting client would take the processor that its driver's successor
 * needs to start. */
static int refuse_for_a_while(void)
{
    uint32_t start = uptime_ms();
    uint32_t attempts = 0;
    int port = port_create();

    if (port < 0 || name_register("beat", port) < 0)
        err(1, "the name beat");
    alarm(port, ATTEMPT_MS, 0);
    for (;;) {
        struct message m = {0};
        uint32_t client;

        if (ipc_receive(port, &m) < 0)
            continue;
        client = m.msg_client;
        if (client == 0)
            break;
        m = (struct message){.msg_word = {(uint32_t)-ENOENT}};
        ipc_reply(client, &m);
        attempts++;
    }
    return attempts >= 3 && attempts <= (uptime_ms() - start) / PAUSE_MS + 1
               ? DRIVER_PAUSES
               : DRIVER_OTHER;
}

/* ---- client and drivers -------------------------------------------------- */

/* `deaths` drivers die one after the other, then one replies. */
static int asks_through(unsigned deaths)
{
    pid_t client = child(wait_for_beat);
    bool good = true;

    for (unsigned i = 0; i < deaths; i++)
        good = good && ended(child(receive_and_die)) == DRIVER_ASKED;
    good = good && ended(child(receive_and_reply)) == DRIVER_ASKED;
    if (!good)
        kill(client, SIGKILL);
    return ended(client);
}

/* A child that is a driver, after it has published its name: the first attempt
 * of a client finds it. */
static pid_t driver(int (*fn)(void))
{
    pid_t pid = child(fn);
    int port = -1;

    while (lives(pid) && (port = name_lookup("beat")) < 0)
        sleep_ms(PAUSE_MS);
    close(port);
    return pid;
}

/* The driver fails the client in some way while it waits, then a successor
 * replies. */
static bool survives(int (*failing)(void), int status)
{
    pid_t first = driver(failing);
    pid_t client = child(wait_for_beat);
    bool good = ended(first) == status &&
                ended(child(receive_and_reply)) == DRIVER_ASKED;

    if (!good)
        kill(client, SIGKILL);
    return ended(client) == CLIENT_RIGHT && good;
}

static void gives_up(void)
{
    pid_t pid = child(wait_for_beat);
    bool good;
    int status;

    sleep_ms(BEAT_PATIENCE_MS * 9 / 10);
    good = lives(pid);
    sleep_ms(BEAT_PATIENCE_MS * 3 / 10);
    if (good && waitpid(pid, &status, WNOHANG) != pid) {
        good = false;
        kill(pid, SIGKILL);
        ended(pid);
    }
    check(good && WIFEXITED(status) && WEXITSTATUS(status) == ENOENT,
          "without a driver the client gives up in time");
}

/* The client's patience begins with the first error. The client pauses between
 * its attempts, so it makes about half as many before it gives up. */
#define MOST_DEATHS (2 * BEAT_PATIENCE_MS / PAUSE_MS)

static void loses_patience(void)
{
    pid_t client = child(wait_for_beat);
    unsigned deaths = 0;
    int status;

    while (deaths < MOST_DEATHS &&
           ended(child(receive_and_die)) == DRIVER_ASKED)
        deaths++;
    if (deaths == MOST_DEATHS)
        kill(client, SIGKILL);
    status = ended(client);
    check(status == EPIPE || status == ENOENT,
          "each driver dies: the client gives up all the same");
}

void beat_survive(void)
{
    int result = asks_through(0);

    check(result == CLIENT_RIGHT, "the driver's reply is returned");
    reply_error = EINVAL;
    check(asks_through(0) == EINVAL,
          "a request that a driver refuses is not repeated");
    reply_error = 0;
    result = asks_through(1);
    check(result == CLIENT_RIGHT, "a successor gets the same request");
    result = asks_through(5);
    check(result == CLIENT_RIGHT, "and so do later successors");
    check(survives(receive_and_refuse, DRIVER_ASKED),
          "the request is repeated, not the reply");
    check(survives(refuse_for_a_while, DRIVER_PAUSES),
          "between two attempts the client pauses");
    check(survives(receive_and_die_late, DRIVER_ASKED),
          "its patience begins when the driver has died");
    gives_up();
    loses_patience();
}
