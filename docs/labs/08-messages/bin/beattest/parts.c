/*
 * Tests of the loop, of waiting clients, and of invalid requests.
 */
#include "user/lib/err.h"
#include "user/lib/stdlib.h"
#include "docs/labs/08-messages/bin/beattest/beattest.h"

/* ---- the loop ----------------------------------------------------------- */

enum {
    LOOP_ADD = 1, /* replies with one more */
    LOOP_LATER,   /* gets a reply at the next notification: its bits */
    LOOP_NEVER,   /* its reply cannot be sent */
    LOOP_SEEN,    /* the bits of all notifications */
};

static uint32_t requests; /* passed to `request` */
static uint32_t later;    /* a client, or 0 */
static uint32_t seen;

static bool loop_request(struct message *m)
{
    uint32_t label = m->msg_tag;

    requests++;
    m->msg_tag = label == LOOP_NEVER ? IPC_DATA : 0;
    if (label == LOOP_LATER)
        later = m->msg_client;
    else if (label == LOOP_SEEN)
        m->msg_word[0] = seen;
    else if (label == PART_COUNT)
        m->msg_word[0] = requests;
    else
        m->msg_word[0]++;
    return label != LOOP_LATER;
}

static void loop_notified(uint32_t bits)
{
    struct message m = {.msg_word = {bits}};

    seen |= bits;
    if (later != 0)
        ipc_reply(later, &m);
    later = 0;
}

static void loop_part(void)
{
    loop(part_port(), loop_request, loop_notified);
}

static int wait_for_later(void)
{
    return part_ask(LOOP_LATER, 0);
}

static void loop_waits(int port)
{
    pid_t pid = begin(wait_for_later);

    check(part_ask(LOOP_ADD, 7) == 8 && lives(pid),
          "a client waits, another gets a reply meanwhile");
    notify(port, 1u << 4);
    check(ended(pid) == 1 << 4, "a waiting client gets a reply later");
    pid = begin(wait_for_later);
    notify(port, 1u << 5);
    check(ended(pid) == 1 << 5, "and so is the next client");
    pid = begin(wait_for_later);
    kill(pid, SIGKILL);
    ended(pid);
    notify(port, 1u << 6);
    check(part_ask(LOOP_ADD, 1) == 2, "a dead client does no harm");
}

void beat_loop(void)
{
    struct ipc_buffer b = {.ipc_send = "x", .ipc_send_size = 1};
    int port = part_begin(loop_part);
    bool good = true;
    int n;

    for (uint32_t i = 0; i < 20; i++)
        good = good && part_ask(LOOP_ADD, i) == (int)i + 1;
    check(good, "each request gets its own reply");
    n = part_ask(PART_COUNT, 0);
    notify(port, 1u << 3 | 1u << 9);
    check(part_ask(LOOP_SEEN, 0) == (1 << 3 | 1 << 9) &&
              part_ask(PART_COUNT, 0) == n + 2,
          "a notification is not a request, and has its bits");
    loop_waits(port);
    n = part_ask(PART_COUNT, 0);
    check(part_ask(LOOP_NEVER, 1u << 12) < 0 &&
              part_ask(PART_COUNT, 0) == n + 2,
          "a reply that fails is not taken for a request");
    check((part_ask(LOOP_SEEN, 0) & 1 << 12) == 0, "nor for a notification");
    check(request(port, LOOP_ADD | IPC_DATA, 1, &b) == -EMSGSIZE &&
              part_ask(LOOP_ADD, 1) == 2,
          "bytes are refused");
    part_end();
}

/* ---- clients ------------------------------------------------------------ */

enum {
    CLIENTS_ADD = 1, /* waits for that beat */
    CLIENTS_BEAT,    /* calls clients_reply with that beat */
};

static bool clients_request(struct message *m)
{
    uint32_t label = m->msg_tag;

    if (label == CLIENTS_ADD)
        return clients_add(m->msg_client, m->msg_word[0]) != 0;
    if (label == CLIENTS_BEAT)
        clients_reply(m->msg_word[0]);
    m->msg_word[0] = clients_waiting();
    m->msg_tag = 0;
    return true;
}

static void clients_part(void)
{
    receive(part_port(), clients_request, no_notification);
}

#define SHORTER 100 /* what fits in an exit status */

static uint32_t due;

/* Exits with the last two digits of the beat that it received. */
static int wait_for_beat(void)
{
    struct message m = {.msg_tag = CLIENTS_ADD, .msg_word = {due}};
    int port = name_lookup(PART);

    if (port < 0 || ipc_call(port, &m) < 0 || m.msg_tag != 0 ||
        m.msg_word[0] != 0)
        return 200;
    return (int)(m.msg_word[1] % SHORTER);
}

/* Whether the client has received this beat. */
static bool received(pid_t pid, uint32_t beat)
{
    return ended(pid) == (int)(beat % SHORTER);
}

static int waiting;

static pid_t waits_for(uint32_t beat)
{
    pid_t pid;

    due = beat;
    pid = child(wait_for_beat);
    if (!part_waits(++waiting))
        errx(1, "the client does not wait");
    return pid;
}

/* At beat `now`, `n` clients must get a reply. */
static bool beat_replies(uint32_t now, int n)
{
    waiting -= n;
    return part_ask(CLIENTS_BEAT, now) == waiting;
}

static void clients_of_one_rhythm(uint32_t first)
{
    static const uint32_t beats[] = {2, 2, 37, 6, 6, 0, 2};
    pid_t pid[ARRAY_SIZE(beats)];

    for (size_t i = 0; i < ARRAY_SIZE(beats); i++)
        pid[i] = waits_for(first + beats[i]);
    check(beat_replies(first - 1, 0), "no client gets a reply before its beat");
    check(beat_replies(first, 1) && received(pid[5], first),
          "a client gets its reply at its beat");
    check(beat_replies(first + 2, 3) && received(pid[0], first + 2) &&
              received(pid[1], first + 2) && received(pid[6], first + 2),
          "all clients of one beat get replies");
    kill(pid[3], SIGKILL);
    ended(pid[3]);
    check(beat_replies(first + 9, 2) && received(pid[4], first + 6),
          "one has died; the other gets its own beat, though it is past");
    check(lives(pid[2]) && beat_replies(first + 37, 1) &&
              received(pid[2], first + 37),
          "the client that waited longest gets a reply");
}

void beat_clients(void)
{
    uint32_t first = 3 + lab_pick(SEED_FIRST, 1000);
    uint32_t late = lab_pick(SEED_LATE, 1000);
    bool good = true;
    pid_t pid;

    part_begin(clients_part);
    clients_of_one_rhythm(first);
    pid = waits_for(late);
    check(beat_replies(UINT32_MAX - 3, 0) && lives(pid),
          "before the numbers wrap a later beat is not due");
    check(beat_replies(late + 1, 1) && received(pid, late),
          "after they have wrapped it is");
    pid = waits_for(late);
    check(beat_replies(late + 0x7fffffffu, 1) && received(pid, late),
          "however late the driver is");
    for (uint32_t i = 0; i < 20; i++)
        waits_for(first + i);
    for (uint32_t i = 0; i < 20; i++)
        good = good && beat_replies(first + i, 1) && received(-1, first + i);
    check(good, "many, one after the other");
    part_end();
}

/* ---- invalid requests --------------------------------------------------- */

static bool service_or_count(struct message *m)
{
    if (m->msg_tag != PART_COUNT)
        return service_request(m);
    *m = (struct message){.msg_word = {clients_waiting()}};
    return true;
}

static void service_part(void)
{
    service_begin();
    receive(part_port(), service_or_count, no_notification);
}

static uint32_t wait_tag = BEAT_WAIT;
static uint32_t wait_words[2];

/* Sends a wait with these words and exits with the error in the reply. */
static int wait_request(void)
{
    struct message m = {.msg_tag = wait_tag,
                        .msg_word = {wait_words[0], wait_words[1]}};

    if (ipc_call(name_lookup(PART), &m) < 0)
        return -1;
    return -(int)m.msg_word[0];
}

static pid_t waits(uint32_t period, uint32_t last)
{
    wait_words[0] = period;
    wait_words[1] = last;
    return child(wait_request);
}

static void end_child(pid_t pid)
{
    kill(pid, SIGKILL);
    ended(pid);
}

/* At once: it does not wait. */
static bool is_refused(uint32_t period, uint32_t last)
{
    pid_t pid = waits(period, last);
    int status;

    for (unsigned i = 0; i < 10; i++) {
        if (waitpid(pid, &status, WNOHANG) == pid)
            return WIFEXITED(status) && WEXITSTATUS(status) == EINVAL;
        sleep_ms(10);
    }
    end_child(pid);
    return false;
}

/* Stores a number in the RAM as keep_save would: with the check byte that
 * keep_load accepts. */
static void ram_number(uint32_t number)
{
    for (unsigned i = 0; i < sizeof(number); i++)
        ram_put(i, (uint8_t)(number >> 8 * i));
    for (unsigned byte = 0; byte < 256 && keep_load() != number; byte++)
        ram_put(sizeof(number), (uint8_t)byte);
}

static void refuse_at_the_end_of_numbers(void)
{
    ram_number(3);
    part_begin(service_part);
    check(part_ask(BEAT_COUNT, 0) == 0 && is_refused(4, 4) &&
              ended(waits(4, UINT32_MAX - 2)) == 0,
          "a last beat from before the numbers wrapped is valid");
    part_end();
}

void beat_refuse(void)
{
    pid_t pid;

    ram_fill(0);
    part_begin(service_part);
    check(part_ask(BEAT_COUNT, 0) == 0, "the number is returned");
    check(part_ask(0, 1) == -EINVAL && part_ask(BEAT_WAIT + 1, 1) == -EINVAL &&
              part_ask(0xffff, 1) == -EINVAL,
          "unknown requests are refused");
    check(part_ask(BEAT_COUNT | 0x80000000u, 0) == -EINVAL &&
              part_ask(BEAT_COUNT | 0x40000000u, 0) == -EINVAL,
          "the whole tag is compared");
    wait_tag |= 0x80000000u;
    check(is_refused(1, 0), "of a wait, too");
    wait_tag = BEAT_WAIT;
    check(is_refused(0, 0) && is_refused(BEAT_PERIOD_MAX + 1, 0) &&
              is_refused(UINT32_MAX, 0),
          "invalid periods are refused");
    check(is_refused(1, 1) && is_refused(4, 1000), "future beats are refused");
    pid = waits(1, 0);
    check(part_waits(1) && lives(pid), "the shortest period is valid");
    end_child(pid);
    pid = waits(BEAT_PERIOD_MAX, 0);
    check(part_waits(2) && lives(pid), "and so is the longest");
    end_child(pid);
    check(part_ask(BEAT_COUNT, 99) == 0, "after all that it still works");
    part_end();
    refuse_at_the_end_of_numbers();
    ram_remove();
}
