/*
 * `messages`: hackbench with an allocation for each message, as in Linux.
 *
 * The program hackbench uses pipes, which are rings here: its messages need no
 * memory, so it measures the scheduler, and the allocator only when processes
 * begin and end. Here a sender allocates a header from a cache and a buffer
 * from kmem_alloc, queues both, and the receiver frees them, often on another
 * processor. Senders and receivers are tasks of the kernel.
 *
 *     sender 0 … 19 ──> channel 0 … 19, a queue of messages ──> receiver
 *
 * In a group each sender sends LOOPS messages to each receiver. What is counted
 * begins when all tasks exist.
 */
#include "drivers/debugcon.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/shell/shell.h"
#include "kernel/task/sync.h"
#include "mm/kmem.h"

#define PAIRS      20u  /* senders of a group, and receivers */
#define BYTES      100u /* of a message */
#define QUEUED     16u  /* messages of a channel, at most */
#define GROUPS_MAX 10u

struct message {
    struct list message_link;
    char *message_text;
    char message_pad[28]; /* 40 bytes, as a header in Linux */
};

/* sched_lock guards it, and the counts below. */
struct channel {
    struct list channel_queue;
    unsigned channel_count;
    struct wait_queue channel_readers, channel_writers;
};

static struct channel channels[GROUPS_MAX][PAIRS];
static struct kmem_cache *message_cache;
static struct wait_queue start = WAIT_QUEUE_INIT(start, "start");
static struct wait_queue end = WAIT_QUEUE_INIT(end, "messages");
static uint32_t loops;
static bool started;
static unsigned running; /* tasks */

/* ---- senders and receivers ---------------------------------------------- */

static void channel_put(struct channel *c, struct message *m)
{
    spin_lock(&sched_lock);
    while (c->channel_count == QUEUED)
        wait_queue_block(&c->channel_writers, false, 0);
    list_insert_before(&c->channel_queue, &m->message_link);
    c->channel_count++;
    wait_queue_wake_locked(&c->channel_readers);
    spin_unlock(&sched_lock);
}

static struct message *channel_get(struct channel *c)
{
    struct list *l;

    spin_lock(&sched_lock);
    while (c->channel_count == 0)
        wait_queue_block(&c->channel_readers, false, 0);
    l = c->channel_queue.next;
    list_remove(l);
    c->channel_count--;
    wait_queue_wake_locked(&c->channel_writers);
    spin_unlock(&sched_lock);
    return list_entry(l, struct message, message_link);
}

static void wait_for_start(void)
{
    spin_lock(&sched_lock);
    while (!started)
        wait_queue_block(&start, false, 0);
    spin_unlock(&sched_lock);
}

static void end_task(void)
{
    spin_lock(&sched_lock);
    if (--running == 0)
        wait_queue_wake_locked(&end);
    spin_unlock(&sched_lock);
}

static void send_all(void *group)
{
    struct channel *to = group;

    wait_for_start();
    for (uint32_t i = 0; i < loops * PAIRS; i++) {
        struct message *m = kmem_cache_alloc(message_cache, KM_SLEEP);

        m->message_text = kmem_alloc(BYTES, KM_SLEEP);
        memset(m->message_text, (int)i, BYTES);
        channel_put(&to[i % PAIRS], m);
    }
    end_task();
}

static void receive_all(void *channel)
{
    static char text[BYTES]; /* of all: nobody reads it */

    wait_for_start();
    for (uint32_t i = 0; i < loops * PAIRS; i++) {
        struct message *m = channel_get(channel);

        memcpy(text, m->message_text, BYTES);
        kmem_free(m->message_text, BYTES);
        kmem_cache_free(message_cache, m);
    }
    end_task();
}

/* ---- the command -------------------------------------------------------- */

static bool start_task(void (*fn)(void *), void *arg)
{
    struct task *t = task_create("messages", fn, arg, PRIORITY_USER);

    if (t == NULL)
        return false;
    task_disown(t);
    spin_lock(&sched_lock);
    running++;
    spin_unlock(&sched_lock);
    return true;
}

static bool start_group(struct channel *group)
{
    bool enough = true;

    for (unsigned i = 0; enough && i < PAIRS; i++) {
        list_init(&group[i].channel_queue);
        wait_queue_init(&group[i].channel_readers, "message");
        wait_queue_init(&group[i].channel_writers, "room");
        enough = start_task(receive_all, &group[i]);
    }
    for (unsigned i = 0; enough && i < PAIRS; i++)
        enough = start_task(send_all, group);
    return enough;
}

/* Returns the instructions of all processors. */
static uint64_t run_all(void)
{
    uint64_t ticks = rdtsc();

    spin_lock(&sched_lock);
    started = true;
    spin_unlock(&sched_lock);
    wait_queue_wake_all(&start);
    spin_lock(&sched_lock);
    while (running != 0)
        wait_queue_block(&end, false, 0);
    spin_unlock(&sched_lock);
    return rdtsc() - ticks;
}

static int exchange(uint32_t groups)
{
    bool enough = true;
    uint64_t ticks;

    started = false;
    for (unsigned i = 0; enough && i < groups; i++)
        enough = start_group(channels[i]);
    if (!enough)
        loops = 0; /* the tasks that are there end */
    ticks = run_all();
    if (!enough)
        return shell_error("too little memory");
    debugcon_event("{\"event\":\"messages\",\"groups\":%u,\"messages\":%u,"
                   "\"instructions\":%llu}",
                   groups, groups * PAIRS * PAIRS * loops, ticks);
    kprintf("%u messages, %llu instructions\n", groups * PAIRS * PAIRS * loops,
            ticks);
    return 0;
}

static int cmd_messages(char **argv)
{
    uint32_t groups;
    int error;

    if (!parse_u32(argv[1], &groups) || !parse_u32(argv[2], &loops) ||
        groups == 0 || groups > GROUPS_MAX)
        return shell_error("needs groups, up to %u, and how many messages each "
                           "sender sends to each receiver",
                           GROUPS_MAX);
    message_cache =
        kmem_cache_create("message", sizeof(struct message), 0, NULL, NULL);
    if (message_cache == NULL)
        return shell_error("too little memory");
    error = exchange(groups);
    kmem_cache_destroy(message_cache);
    return error;
}

SHELL_COMMAND(messages, {"GROUPS LOOPS", cmd_messages, SHELL_ACTION});
