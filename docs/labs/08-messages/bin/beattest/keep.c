/*
 * Tests of keep.c: the driver may die at any byte while it saves the number.
 */
#include "user/lib/err.h"
#include "user/lib/stdlib.h"
#include "docs/labs/08-messages/bin/beattest/beattest.h"

/* ---- a RAM -------------------------------------------------------------- */

#define RAM "/beat-ram"

unsigned ram_deadly;

static int open_ram(unsigned i)
{
    int file = open(RAM, O_RDWR | O_CREAT);

    if (i >= RAM_BYTES)
        errx(1, "the RAM has no byte %u", i);
    if (file < 0 || lseek(file, (off_t)i, SEEK_SET) < 0)
        err(1, RAM);
    return file;
}

static void write_ram(unsigned i, uint8_t value)
{
    int file = open_ram(i);

    if (write(file, &value, 1) != 1)
        err(1, RAM);
    close(file);
}

uint8_t ram_get(unsigned i)
{
    int file = open_ram(i);
    uint8_t value;

    if (read(file, &value, 1) != 1)
        err(1, RAM);
    close(file);
    return value;
}

void ram_put(unsigned i, uint8_t value)
{
    if (ram_deadly > 0 && --ram_deadly == 0)
        _exit(RAM_DEATH);
    write_ram(i, value);
}

void ram_fill(uint8_t value)
{
    for (unsigned i = 0; i < RAM_BYTES; i++)
        write_ram(i, value);
}

void ram_remove(void)
{
    if (unlink(RAM) < 0)
        err(1, RAM);
}

/* ---- saving ------------------------------------------------------------- */

#define WRITES_MAX 40 /* most bytes written for one number */

static uint32_t number; /* the number saved last */
static uint32_t next;   /* the number being saved */

static int save(void)
{
    keep_save(next);
    return 0;
}

enum loaded {
    LOADED_LAST = 1,
    LOADED_NEXT,
    LOADED_OTHER,
};

static int load(void)
{
    uint32_t n = keep_load();

    return n == next ? LOADED_NEXT : n == number ? LOADED_LAST : LOADED_OTHER;
}

/* Saves a number greater by `step`, and dies at byte `deadly`. Whether this
 * number or the one before is then loaded; *whole: it did not die. */
static bool save_one(uint32_t step, unsigned deadly, bool *whole)
{
    int status;
    int result;

    next = number + step;
    ram_deadly = deadly;
    status = ended(child(save));
    ram_deadly = 0;
    *whole = status == 0;
    result = ended(child(load));
    if (result == LOADED_NEXT)
        number = next;
    return (*whole && result == LOADED_NEXT) ||
           (status == RAM_DEATH && result != LOADED_OTHER);
}

static bool save_all(uint32_t step, unsigned times)
{
    bool good = true;
    bool whole;

    while (good && times-- > 0)
        good = save_one(step, 0, &whole);
    return good;
}

/* Dies at each byte in turn, until all bytes are written. */
static bool dies_everywhere(uint32_t step)
{
    bool good = true;
    bool whole = false;

    for (unsigned at = 1; good && !whole && at < WRITES_MAX; at++)
        good = save_one(step, at, &whole);
    return good && whole;
}

/* Dies at each byte in turn, and after each again at all bytes up to it. */
static bool dies_again(uint32_t step)
{
    bool good = true;
    bool whole = false;

    for (unsigned at = 1; good && !whole && at < WRITES_MAX; at++) {
        good = save_one(step, at, &whole);
        for (unsigned i = 1; good && i <= at; i++) {
            bool ignored;

            good = save_one(step, i, &ignored);
        }
    }
    return good && whole;
}

static bool is_new(uint8_t filling)
{
    ram_fill(filling);
    number = 0;
    next = 1;
    return ended(child(load)) == LOADED_LAST;
}

/* Saves three numbers, the last greater by `step`. The driver dies when the
 * lowest byte of the third has replaced that of the first: the mixture is
 * greater than the second number. */
static bool mixes_nothing(uint32_t step)
{
    bool whole;

    ram_fill(0);
    number = 0;
    return save_one(0x10, 0, &whole) && save_one(0x10, 0, &whole) &&
           dies_everywhere(step);
}

void beat_keep(void)
{
    bool good = true;

    check(is_new(0) && is_new(0xff),
          "a RAM that was never written has no number");
    check(save_all(1, 20), "a saved number is loaded");
    number = 256 - (1 + lab_pick(SEED_KEPT, 10));
    check(save_all(1, 12), "also when the number gets one byte more");
    check(dies_everywhere(1), "a death at any byte loses nothing");
    check(dies_again(1), "nor do many deaths in a row");
    srand(lab_pick(SEED_KEPT, 1u << 20));
    for (unsigned i = 0; i < 12; i++)
        good = good && dies_everywhere(1 + (uint32_t)rand() % 0x1000000);
    check(good, "also with greater numbers");
    /* The check byte ignores the highest bit of each byte (keep.c), so that of
     * the first number fits the mixture 0x90. That of 0xa5 is 0xff. */
    check(mixes_nothing(0x8070) && mixes_nothing(0x8085),
          "a mixture of two numbers is not loaded");
    ram_fill(0);
    number = UINT32_MAX - 3;
    next = number;
    ended(child(save));
    check(save_all(1, 8) && dies_everywhere(1), "and with numbers that wrap");
    ram_remove();
}

/* ---- saved, then sent in a reply ----------------------------------------- */

enum {
    ORDER_ADD = 1,
    ORDER_BEAT,
};

static bool order_request(struct message *m)
{
    uint32_t label = m->msg_tag;

    if (label == ORDER_ADD)
        return clients_add(m->msg_client, m->msg_word[0]) != 0;
    if (label == ORDER_BEAT)
        service_beat();
    m->msg_tag = 0;
    m->msg_word[0] = clients_waiting();
    return true;
}

static unsigned deadly;

static void order_part(void)
{
    service_begin();
    ram_deadly = deadly;
    receive(part_port(), order_request, no_notification);
}

#define RECEIVED 50 /* the client received its beat; other values: the error */

static int wait_for_next(void)
{
    struct message m = {.msg_tag = ORDER_ADD, .msg_word = {next}};
    int port = name_lookup(PART);

    if (port < 0 || ipc_call(port, &m) < 0)
        return -1;
    return m.msg_word[0] == 0 && m.msg_word[1] == next ? RECEIVED : -1;
}

/* One beat, at which the part dies at that byte. Whether a successor knows the
 * number that the client received; *received: it received one. */
static bool beat_once(unsigned at, bool *received)
{
    int result;
    pid_t pid;

    next = number + 1;
    deadly = at;
    part_begin(order_part);
    pid = child(wait_for_next);
    if (!part_waits(1))
        errx(1, "the client does not wait");
    part_ask(ORDER_BEAT, 0);
    part_end();
    *received = ended(pid) == RECEIVED;
    result = ended(child(load));
    if (result == LOADED_NEXT)
        number = next;
    return result == LOADED_NEXT || (result == LOADED_LAST && !*received);
}

void beat_order(void)
{
    bool good = true;
    bool received = false;

    ram_fill(0);
    for (unsigned at = 1; good && !received && at < WRITES_MAX; at++)
        good = beat_once(at, &received);
    check(good && received,
          "a successor knows the number that a client received");
    check(beat_once(0, &received) && received, "and continues from there");
    ram_remove();
}
