/*
 * Pipes (kernel/fs/pipe.c): alone, and with tasks at both ends.
 */
#include "kernel/abi/errno.h"
#include "kernel/fs/file.h"
#include "kernel/fs/tests/fs_test.h"
#include "tools/workshop/ktest/order.h"
#include "tools/workshop/ktest/ktest.h"
#include "kernel/lib/string.h"
#include "kernel/vm/user.h"

static struct {
    struct file *read_end;
    struct file *write_end;
} pipe;

/* Twice the size of a pipe: written to the pipe, and read. */
static uint8_t *const buffer = (uint8_t *)fs_test_bytes;
static uint8_t *const in = (uint8_t *)fs_test_bytes + 2 * PIPE_SIZE;

static void close(struct file **end)
{
    if (*end != NULL)
        object_put(&(*end)->file_object);
    *end = NULL;
}

static void close_both(void *unused)
{
    (void)unused;
    close(&pipe.read_end);
    close(&pipe.write_end);
}

static bool open_pipe(void)
{
    ktest_undo(close_both, NULL);
    return pipe_create(&pipe.read_end, &pipe.write_end) == 0;
}

static void close_pipe(void)
{
    KT_SOUND(pipe_verify);
    close_both(NULL);
    KT_SOUND(pipe_verify);
}

static struct pipe_stat the_pipe(void)
{
    struct pipe_stat st = {.stat_pipe = NULL};

    while (pipe_next(&st))
        if (pipe.read_end != NULL && st.stat_pipe == pipe.read_end->file_data)
            return st;
    return (struct pipe_stat){.stat_pipe = NULL};
}

/* ---- one task ----------------------------------------------------------- */

KTEST(pipe, bytes_come_out_as_they_went_in)
{
    char text[16] = "";
    struct stat st;

    KT_REQUIRE(open_pipe());
    KT_REQUIRE(file_write(pipe.write_end, "hello, world", 12) == 12);
    file_stat(pipe.read_end, &st);
    KT_EQ(st.st_type, FILE_PIPE);
    KT_EQ(st.st_size, 12);
    KT_EQ(file_read(pipe.read_end, text, 5), 5);
    KT_EQ(memcmp(text, "hello", 5), 0);
    KT_EQ(file_read(pipe.read_end, text, sizeof(text)), 7);
    KT_EQ(memcmp(text, ", world", 7), 0);
    KT_EQ(file_read(pipe.read_end, text, 0), 0);
    KT_REQUIRE(file_write(pipe.write_end, text, 0) == 0);
    close_pipe();
}

KTEST(pipe, end_of_file_after_the_last_byte)
{
    char text[4];

    KT_REQUIRE(open_pipe());
    KT_REQUIRE(file_write(pipe.write_end, "ab", 2) == 2);
    close(&pipe.write_end);
    KT_EQ(file_read(pipe.read_end, text, 4), 2);
    KT_EQ(file_read(pipe.read_end, text, 4), 0);
    KT_EQ(file_read(pipe.read_end, text, 4), 0);
    close_pipe();
}

KTEST(pipe, a_write_without_a_reader)
{
    KT_REQUIRE(open_pipe());
    close(&pipe.read_end);
    KT_EQ(file_write(pipe.write_end, "ab", 2), -EPIPE);
    close_pipe();
}

KTEST(pipe, a_shared_end_is_open_until_the_last_reference)
{
    char c;

    KT_REQUIRE(open_pipe());
    object_get(&pipe.write_end->file_object);
    object_put(&pipe.write_end->file_object);
    KT_EQ(the_pipe().stat_writers, 1);
    KT_REQUIRE(file_write(pipe.write_end, "a", 1) == 1);
    close(&pipe.write_end);
    KT_EQ(the_pipe().stat_writers, 0);
    KT_EQ(file_read(pipe.read_end, &c, 1), 1);
    KT_EQ(file_read(pipe.read_end, &c, 1), 0);
    close_pipe();
}

/* The bytes meet the ring's end at many places. */
KTEST(pipe, around_the_end_of_the_buffer)
{
    uint8_t next = 0;

    KT_REQUIRE(open_pipe());
    for (unsigned i = 0; i < 20; i++) {
        size_t n = i % 3 == 0 ? PIPE_SIZE : 1000 + i;

        for (size_t k = 0; k < n; k++)
            buffer[k] = next++;
        KT_REQUIRE(file_write(pipe.write_end, buffer, n) == (ssize_t)n);
        KT_EQ(file_read(pipe.read_end, in, PIPE_SIZE), n);
        KT_EQ(memcmp(in, buffer, n), 0);
    }
    KT_EQ(the_pipe().stat_bytes, 0);
    close_pipe();
}

/* Below USER_BASE nothing is mapped, and the last page of user space is not
 * in a kernel task's either. */
KTEST(pipe, a_bad_buffer_moves_nothing)
{
    void *bad = (void *)(USER_TOP - PAGE_SIZE);
    char text[4] = "";

    KT_REQUIRE(open_pipe());
    KT_EQ(file_write(pipe.write_end, bad, 3), -EFAULT);
    KT_EQ(the_pipe().stat_bytes, 0);
    KT_REQUIRE(file_write(pipe.write_end, "abc", 3) == 3);
    KT_EQ(file_read(pipe.read_end, bad, 3), -EFAULT);
    KT_EQ(file_read(pipe.read_end, text, 4), 3);
    KT_EQ(memcmp(text, "abc", 3), 0);
    close_pipe();
}

KTEST(pipe, without_object_caching)
{
    char c = 0;

    bool opened;

    pipe_caching = false;
    opened = open_pipe();
    pipe_caching = true;
    KT_REQUIRE(opened);
    KT_REQUIRE(file_write(pipe.write_end, "x", 1) == 1);
    KT_EQ(file_read(pipe.read_end, &c, 1), 1);
    KT_EQ(c, 'x');
    KT_EQ(the_pipe().stat_total, 1);
    close_pipe();
}

KTEST(pipe, stats)
{
    struct pipe_stat st;

    KT_REQUIRE(open_pipe());
    KT_REQUIRE(file_write(pipe.write_end, "abc", 3) == 3);
    st = the_pipe();
    KT_EQ(st.stat_readers, 1);
    KT_EQ(st.stat_writers, 1);
    KT_EQ(st.stat_bytes, 3);
    KT_EQ(st.stat_total, 3);
    close_pipe();
}

/* ---- several tasks ------------------------------------------------------ */

/* A task at one end of the pipe: its name in the order of events, how many
 * bytes it moves, and its result. */
struct job {
    char name;
    size_t n;
    ssize_t result;
    pid_t pid;
};

static void read_job(void *arg)
{
    struct job *j = arg;

    note(j->name);
    j->result = file_read(pipe.read_end, in, j->n);
    note((char)(j->name + 'a' - 'A'));
}

static void write_job(void *arg)
{
    struct job *j = arg;

    note(j->name);
    j->result = file_write(pipe.write_end, buffer, j->n);
    note((char)(j->name + 'a' - 'A'));
}

static void join(struct job *j)
{
    int status;

    KT_EQ(task_wait(j->pid, &status, 0), j->pid);
    j->pid = 0;
}

static uint8_t state_of(const struct job *j)
{
    struct task *t;
    uint8_t state;

    spin_lock(&sched_lock);
    t = task_find(j->pid);
    state = t == NULL ? TASK_ZOMBIE : t->task_state;
    spin_unlock(&sched_lock);
    return state;
}

/* As a kill does to a program: kernel tasks are spared. */
static void interrupt(const struct job *j)
{
    struct task *t;

    spin_lock(&sched_lock);
    t = task_find(j->pid);
    if (t != NULL)
        t->task_pending |= PENDING_KILL;
    if (t != NULL && t->task_state == TASK_BLOCKED && t->task_interruptible)
        sched_wake(t, -EINTR);
    spin_unlock(&sched_lock);
}

static void give_up(void *arg)
{
    struct job *j = arg;

    if (j->pid == 0)
        return;
    interrupt(j);
    join(j);
}

/* Starts a helper and lets it run until it waits or is done. */
static void start(struct job *j, void (*fn)(void *))
{
    struct task *t = task_create("pipe job", fn, j, PRIORITY_KERNEL);

    KT_REQUIRE(t != NULL);
    j->pid = t->task_pid;
    ktest_undo(give_up, j);
    sched_yield();
}

static bool prepare(void)
{
    begin_order();
    return open_pipe();
}

static bool fill(void)
{
    return file_write(pipe.write_end, buffer, PIPE_SIZE) == PIPE_SIZE;
}

KTEST(pipe, a_reader_waits_for_a_byte)
{
    struct job r = {'R', 10, 0, 0};

    KT_REQUIRE(prepare());
    start(&r, read_job);
    KT_EQ(state_of(&r), TASK_BLOCKED);
    KT_SOUND(pipe_verify);
    note('W');
    KT_REQUIRE(file_write(pipe.write_end, "x", 1) == 1);
    join(&r);
    KT_EQ(r.result, 1);
    KT_EQ(in[0], 'x');
    KT_ORDER("RWr");
    close_pipe();
}

KTEST(pipe, a_writer_waits_for_all_the_room_that_it_needs)
{
    struct job w = {'W', 100, 0, 0};

    KT_REQUIRE(prepare());
    KT_REQUIRE(fill());
    start(&w, write_job);
    KT_EQ(state_of(&w), TASK_BLOCKED);
    KT_EQ(file_read(pipe.read_end, in, 99), 99);
    sched_yield();
    KT_EQ(state_of(&w), TASK_BLOCKED);
    KT_EQ(the_pipe().stat_bytes, PIPE_SIZE - 99);
    KT_SOUND(pipe_verify);
    KT_EQ(file_read(pipe.read_end, in, 1), 1);
    join(&w);
    KT_EQ(w.result, 100);
    KT_EQ(the_pipe().stat_bytes, PIPE_SIZE);
    close_pipe();
}

KTEST(pipe, a_long_write_goes_in_pieces)
{
    struct job w = {'W', 2 * PIPE_SIZE, 0, 0};
    size_t got = 0;

    KT_REQUIRE(prepare());
    for (size_t i = 0; i < 2 * PIPE_SIZE; i++)
        buffer[i] = (uint8_t)(i * 7 + i / 256);
    start(&w, write_job);
    KT_REQUIRE(the_pipe().stat_bytes == PIPE_SIZE);
    while (got < 2 * PIPE_SIZE) {
        ssize_t n = file_read(pipe.read_end, in, 1000);

        KT_REQUIRE(n > 0);
        KT_EQ(memcmp(in, buffer + got, (size_t)n), 0);
        got += (size_t)n;
    }
    join(&w);
    KT_EQ(w.result, 2 * PIPE_SIZE);
    close_pipe();
}

KTEST(pipe, a_waiting_writer_sees_the_last_reader_close)
{
    struct job w = {'W', 1, 0, 0};
    struct job part = {'P', PIPE_SIZE + 1, 0, 0};

    KT_REQUIRE(prepare());
    start(&part, write_job);
    start(&w, write_job);
    close(&pipe.read_end);
    join(&w);
    join(&part);
    KT_EQ(w.result, -EPIPE);
    KT_EQ(part.result, PIPE_SIZE);
    close_pipe();
}

/* A small writer does not overtake one that waits for more room. */
KTEST(pipe, writers_keep_their_order)
{
    struct job big = {'B', PIPE_SIZE, 0, 0};
    struct job small = {'S', 1, 0, 0};

    KT_REQUIRE(prepare());
    KT_REQUIRE(file_write(pipe.write_end, "x", 1) == 1);
    start(&big, write_job);
    start(&small, write_job);
    KT_EQ(state_of(&small), TASK_BLOCKED);
    KT_SOUND(pipe_verify);
    KT_EQ(file_read(pipe.read_end, in, 1), 1);
    sched_yield();
    KT_EQ(file_read(pipe.read_end, in, PIPE_SIZE), PIPE_SIZE);
    join(&big);
    join(&small);
    KT_ORDER("BSbs");
    KT_EQ(the_pipe().stat_bytes, 1);
    close_pipe();
}

/* One write of two bytes is enough for two readers of one. */
KTEST(pipe, a_reader_that_leaves_bytes_wakes_the_next)
{
    struct job first = {'F', 1, 0, 0};
    struct job second = {'S', 1, 0, 0};

    KT_REQUIRE(prepare());
    start(&first, read_job);
    start(&second, read_job);
    KT_REQUIRE(file_write(pipe.write_end, "ab", 2) == 2);
    join(&first);
    join(&second);
    KT_EQ(first.result, 1);
    KT_EQ(second.result, 1);
    KT_ORDER("FSfs");
    close_pipe();
}

KTEST(pipe, killed_readers_and_writers_give_up)
{
    struct job r = {'R', 1, 0, 0};
    struct job first = {'F', PIPE_SIZE, 0, 0};
    struct job turn = {'T', 1, 0, 0};

    KT_REQUIRE(prepare());
    start(&r, read_job);
    interrupt(&r);
    join(&r);
    KT_EQ(r.result, -EINTR);
    KT_REQUIRE(fill());
    start(&first, write_job);
    start(&turn, write_job);
    interrupt(&turn);
    join(&turn);
    KT_EQ(turn.result, -EINTR);
    interrupt(&first);
    join(&first);
    KT_EQ(first.result, -EINTR);
    KT_EQ(the_pipe().stat_bytes, PIPE_SIZE);
    close_pipe();
}

/* The room that a killed writer waited for goes to the next in turn. */
KTEST(pipe, a_killed_writer_lets_the_next_one_through)
{
    struct job first = {'F', PIPE_SIZE, 0, 0};
    struct job turn = {'T', 1, 0, 0};

    KT_REQUIRE(prepare());
    KT_REQUIRE(file_write(pipe.write_end, "x", 1) == 1);
    start(&first, write_job);
    start(&turn, write_job);
    interrupt(&first);
    join(&first);
    join(&turn);
    KT_EQ(first.result, -EINTR);
    KT_EQ(turn.result, 1);
    KT_EQ(the_pipe().stat_bytes, 2);
    close_pipe();
}

/* And so do the bytes that a killed reader was woken for. */
KTEST(pipe, a_killed_reader_lets_the_next_one_through)
{
    struct job first = {'F', 1, 0, 0};
    struct job second = {'S', 1, 0, 0};

    KT_REQUIRE(prepare());
    start(&first, read_job);
    start(&second, read_job);
    interrupt(&first);
    KT_REQUIRE(file_write(pipe.write_end, "a", 1) == 1);
    join(&first);
    join(&second);
    KT_EQ(first.result, -EINTR);
    KT_EQ(second.result, 1);
    close_pipe();
}

/* ---- a megabyte --------------------------------------------------------- */

#define TRANSFER MIB(1)

struct stream {
    uint32_t random; /* what the sizes are drawn from */
    uint32_t sum;    /* of bytes and their places */
    size_t moved;
    ssize_t result; /* of the last call */
};

static size_t draw(struct stream *s)
{
    s->random = s->random * 1664525 + 1013904223;
    return 1 + (s->random >> 8) % (s->random % 8 == 0 ? 2 * PIPE_SIZE : 300);
}

static void add(struct stream *s, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        s->sum = s->sum * 31 + bytes[i];
    s->moved += n;
}

static void send_all(void *arg)
{
    struct stream *s = arg;

    while (s->moved < TRANSFER && s->result >= 0) {
        size_t n = draw(s);

        n = MIN(n, TRANSFER - s->moved);
        for (size_t i = 0; i < n; i++)
            buffer[i] = (uint8_t)((s->moved + i) * 2654435761u >> 13);
        s->result = file_write(pipe.write_end, buffer, n);
        if (s->result > 0)
            add(s, buffer, (size_t)s->result);
    }
    close(&pipe.write_end);
}

KTEST(pipe, a_megabyte_in_random_pieces)
{
    struct stream from = {.random = 1};
    struct stream to = {.random = 2};
    struct task *t;
    int status;

    KT_REQUIRE(open_pipe());
    t = task_create("sender", send_all, &from, PRIORITY_KERNEL);
    if (t == NULL)
        close(&pipe.write_end);
    while ((to.result = file_read(pipe.read_end, in, draw(&to))) > 0)
        add(&to, in, (size_t)to.result);
    KT_EQ(to.result, 0);
    KT_EQ(to.moved, TRANSFER);
    KT_EQ(to.sum, from.sum);
    KT_TRUE(t != NULL && task_wait(-1, &status, 0) > 0);
    close_pipe();
}
