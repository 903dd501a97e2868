/*
 * ping: calls a server that returns each message (pong) repeatedly, and prints
 * the cost of a round trip by the time-stamp counter.
 *
 *     ping [-n ROUNDS] [-s BYTES] [-p] [NAME]      -p: passes a handle as well
 */
#include "user/lib/err.h"
#include "user/lib/ipc.h"
#include "user/lib/number.h"
#include "user/lib/stdio.h"
#include "user/lib/string.h"
#include "user/lib/tsc.h"

static uint8_t sent[IPC_DATA_MAX];
static uint8_t received[IPC_DATA_MAX];

struct options {
    uint32_t rounds;
    uint32_t size;
    bool pass;
};

static struct options read_options(int argc, char **argv)
{
    struct options o = {.rounds = 1000};
    int c;

    while ((c = getopt(argc, argv, "n:s:p")) != -1) {
        if (c == 'n')
            o.rounds = number_between(optarg, 1, 1000000000);
        else if (c == 's')
            o.size = size_between(optarg, 0, IPC_DATA_MAX);
        else if (c == 'p')
            o.pass = true;
        else
            usage("[-n ROUNDS] [-s BYTES] [-p] [NAME]");
    }
    return o;
}

/* Makes one call and checks the reply; false: it was wrong. */
static bool call(int port, const struct options *o, struct ipc_buffer *b,
                 uint32_t round)
{
    struct message m = {.msg_tag = 1, .msg_word = {round, ~round, 3}};

    if (o->size > 0)
        m.msg_tag |= IPC_DATA;
    if (o->pass)
        m.msg_tag |= IPC_HANDLE;
    if (o->size > 0 || o->pass)
        m.msg_buffer = b;
    if (ipc_call(port, &m) < 0)
        err(1, "call");
    if (o->pass && close(b->ipc_received_handle) < 0)
        return false;
    return m.msg_word[0] == round && m.msg_word[1] == ~round &&
           (o->size == 0 || b->ipc_received == o->size);
}

int main(int argc, char **argv)
{
    struct options o = read_options(argc, argv);
    const char *name = optind < argc ? argv[optind] : "pong";
    int port = name_lookup(name);
    struct ipc_buffer b = {
        .ipc_send = sent,
        .ipc_send_size = o.size,
        .ipc_send_handle = STDOUT_FILENO,
        .ipc_receive = received,
        .ipc_receive_max = sizeof(received),
    };
    uint64_t start, cost;

    if (port < 0)
        err(1, "%s (start it with: pong &)", name);
    for (uint32_t i = 0; i < o.size; i++)
        sent[i] = (uint8_t)(i * 7 + 1);
    if (!call(port, &o, &b, 0)) /* warm-up */
        errx(1, "the first reply is wrong");
    start = tsc_read();
    for (uint32_t round = 1; round <= o.rounds; round++)
        if (!call(port, &o, &b, round))
            errx(1, "the reply of round %u is wrong", (unsigned)round);
    cost = tsc_read() - start;
    if (memcmp(sent, received, o.size) != 0)
        errx(1, "the returned bytes differ");
    printf("%u round trips, %u bytes%s: %llu each by the time-stamp counter\n",
           (unsigned)o.rounds, (unsigned)o.size, o.pass ? ", a handle" : "",
           (unsigned long long)(cost / o.rounds));
    return 0;
}
