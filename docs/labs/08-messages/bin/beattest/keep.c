/*
 * The number that outlives the driver: whoever saves it may die at any byte.
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

#define WRITES_MAX 40 /* bytes that are written for one number, at most */

static uint32_t number; /* the last one that was saved */
static uint32_t next;   /* and the one that is saved now */

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

/* Saves a number that is greater by `step`, and dies at byte `deadly`. Whether
 * it has been saved, or the last one is still there; *whole: it did not die. */
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

/* Death after death, each at one byte more, until there are no more of them. */
static bool dies_everywhere(uint32_t step)
{
    bool good = true;
    bool whole = false;

    for (unsigned at = 1; good && !whole && at < WRITES_MAX; at++)
        good = save_one(step, at, &whole);
    return good && whole;
}

/* The same as the one before it at each byte, then well once. */
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

/* The check byte does not see the highest bit of a byte (keep.c). So when the
 * lowest byte of the third number has taken that of the first, its check byte
 * fits; and this is more than the second. */
static bool mixes_nothing(void)
{
    bool whole;

    ram_fill(0);
    number = 0;
    return save_one(0x10, 0, &whole) && save_one(0x10, 0, &whole) &&
           dies_everywhere(0x8070);
}

void beat_keep(void)
{
    bool good = true;

    check(is_new(0) && is_new(0xff), "a RAM that was never written has none");
    check(save_all(1, 20), "what was saved is there");
    number = 250;
    check(save_all(1, 12), "also when the number gets another byte");
    check(dies_everywhere(1), "a death at any byte loses nothing");
    check(dies_again(1), "nor do many in a row");
    for (unsigned i = 0; i < 12; i++)
        good = good && dies_everywhere(1 + (uint32_t)rand() % 0x1000000);
    check(good, "of greater numbers");
    check(mixes_nothing(), "half a number is none");
    ram_fill(0);
    number = UINT32_MAX - 3;
    next = number;
    ended(child(save));
    check(save_all(1, 8) && dies_everywhere(1),
          "and of those that begin again");
    ram_remove();
}

/* ---- saved, then told --------------------------------------------------- */

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

#define TOLD 50 /* a client has heard of its beat; else what went wrong */

static int wait_for_next(void)
{
    struct message m = {.msg_tag = ORDER_ADD, .msg_word = {next}};
    int port = name_lookup(PART);

    if (port < 0 || ipc_call(port, &m) < 0)
        return -1;
    return m.msg_word[0] == 0 && m.msg_word[1] == next ? TOLD : -1;
}

/* One beat, at which the part dies at that byte. Whether a successor knows what
 * the client was told; *told: it was told. */
static bool beat_once(unsigned at, bool *told)
{
    int result;
    pid_t pid;

    next = number + 1;
    deadly = at;
    part_begin(order_part);
    pid = child(wait_for_next);
    if (!part_waits(1))
        errx(1, "a client did not come to wait");
    part_ask(ORDER_BEAT, 0);
    part_end();
    *told = ended(pid) == TOLD;
    result = ended(child(load));
    if (result == LOADED_NEXT)
        number = next;
    return result == LOADED_NEXT || (result == LOADED_LAST && !*told);
}

void beat_order(void)
{
    bool good = true;
    bool told = false;

    ram_fill(0);
    for (unsigned at = 1; good && !told && at < WRITES_MAX; at++)
        good = beat_once(at, &told);
    check(good && told, "a successor knows what a client was told");
    check(beat_once(0, &told) && told, "and goes on from there");
    ram_remove();
}
