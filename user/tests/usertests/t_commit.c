/*
 * Promised memory: excess requests are refused; promised pages are available.
 */
#include "user/tests/usertests/test.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

#define RESERVE KIB(16) /* promised for every stack */
#define BLOCK   10001

/* A row of /proc/meminfo, in KiB. */
static size_t meminfo(const char *row)
{
    FILE *f = fopen("/proc/meminfo", "r");
    size_t n = strlen(row);
    char line[80];
    size_t pages = 0;

    CHECK(f != NULL);
    while (fgets(line, sizeof(line), f) != NULL)
        if (strncmp(line, row, n) == 0 && line[n] == ' ')
            pages = (size_t)strtol(line + n, NULL, 10);
    fclose(f);
    return pages * (PAGE_SIZE / KIB(1));
}

/* Bytes that could be promised now. */
static size_t room(void)
{
    return (meminfo("limit") - meminfo("committed")) * 1024;
}

/* All that can be promised, in mappings of a power of two pages, linked. */
struct mapping {
    struct mapping *mapping_next;
    size_t mapping_bytes;
};

static struct mapping *map_all(size_t largest)
{
    struct mapping *all = NULL;

    for (size_t bytes = largest; bytes >= PAGE_SIZE; bytes /= 2) {
        struct mapping *m;

        while ((m = mmap(bytes, PROT_READ | PROT_WRITE)) != MAP_FAILED) {
            *m = (struct mapping){all, bytes};
            all = m;
        }
        EQUAL(errno, ENOMEM);
    }
    return all;
}

static size_t unmap_all(struct mapping *all)
{
    size_t bytes = 0;

    while (all != NULL) {
        struct mapping m = *all;

        bytes += m.mapping_bytes;
        EQUAL(munmap(all, m.mapping_bytes), 0);
        all = m.mapping_next;
    }
    return bytes;
}

/* ---- more than there is ------------------------------------------------- */

static void **malloc_all(size_t *n)
{
    void **all = NULL;
    void **p;

    for (*n = 0; (p = malloc(BLOCK)) != NULL; ++*n) {
        *p = all;
        all = p;
    }
    EQUAL(errno, ENOMEM);
    return all;
}

/* As in xv6's usertests: allocate until NULL, free, allocate again. */
TEST(commit, malloc_until_null)
{
    void **all;
    void **next;
    size_t least = room() / BLOCK / 2;
    size_t first, n;

    for (int round = 0; round < 2; round++) {
        for (all = malloc_all(&n); all != NULL; all = next) {
            next = *all;
            free(all);
        }
        CHECK(n > least);
        if (round == 0)
            first = n;
    }
    CHECK(n + n / 20 >= first);
    all = malloc(20 * 1024);
    CHECK(all != NULL);
    memset(all, 1, 20 * 1024);
}

/* Each page is used after the last one has been promised. */
TEST(commit, promised_memory_is_there)
{
    size_t least = room() / PAGE_SIZE / 2;
    struct mapping *all = map_all(MIB(1));
    size_t pages = 0;

    FAILS(fork(), ENOMEM);
    FAILS(sbrk(PAGE_SIZE), ENOMEM);
    FAILS(mmap(PAGE_SIZE, PROT_READ), ENOMEM);
    for (struct mapping *m = all; m != NULL; m = m->mapping_next)
        for (size_t at = PAGE_SIZE; at < m->mapping_bytes; at += PAGE_SIZE) {
            ((volatile char *)m)[at] = 1;
            pages++;
        }
    CHECK(pages > least);
    unmap_all(all);
    CHECK(mmap(least * PAGE_SIZE, PROT_READ) != MAP_FAILED);
}

TEST(commit, amounts_are_exact)
{
    size_t before, all;
    void *end = sbrk(0);

    unmap_all(map_all(MIB(1))); /* the tables stay */
    before = meminfo("committed");
    CHECK(before > RESERVE / 1024);
    CHECK(before <= meminfo("limit"));
    CHECK(sbrk(5 * PAGE_SIZE) == end);
    EQUAL(meminfo("committed"), before + 20);
    FAILS(sbrk(INT32_MAX), ENOMEM);
    FAILS(mmap(MIB(1024), PROT_READ | PROT_WRITE), ENOMEM);
    EQUAL(sbrk(0), (char *)end + 5 * PAGE_SIZE);
    EQUAL(meminfo("committed"), before + 20);
    CHECK(sbrk(-5 * (int32_t)PAGE_SIZE) != MAP_FAILED);
    EQUAL(meminfo("committed"), before);
    all = unmap_all(map_all(MIB(1)));
    EQUAL(meminfo("committed"), before);
    /* Except for pages that the kernel needed for this. */
    CHECK(all < room() + KIB(256) && all + KIB(256) > room());
}

/* ---- fork --------------------------------------------------------------- */

static void nothing(int unused)
{
    (void)unused;
}

/* The fork is refused: a copy of every page would be promised. */
TEST(commit, fork_of_a_large_program)
{
    size_t bytes = room() / 8 * 5;
    char *p = mmap(bytes, PROT_READ | PROT_WRITE);
    int gate[2];
    pid_t small;

    CHECK(p != MAP_FAILED);
    FAILS(fork(), ENOMEM);
    EQUAL(munmap(p, bytes), 0);
    make_pipe(gate);
    small = fork();
    CHECK(small >= 0);
    if (small == 0) { /* a small program, while there is a large one */
        char c;

        EQUAL(read(gate[0], &c, 1), 1);
        expect_exit(spawn(nothing, 0), 0);
        _exit(0);
    }
    bytes = room() / 2;
    p = mmap(bytes, PROT_READ | PROT_WRITE);
    CHECK(p != MAP_FAILED);
    FAILS(fork(), ENOMEM);
    EQUAL(write(gate[1], "", 1), 1);
    expect_exit(small, 0);
    p[bytes - 1] = 1;
}

/* Memory that no task can write to is promised once, not again at a fork. */
TEST(commit, fork_shares_read_only_memory)
{
    size_t bytes = room() / 8 * 5;
    const char *p = mmap(bytes, PROT_READ);
    pid_t child;

    CHECK(p != MAP_FAILED);
    child = spawn(nothing, 0);
    EQUAL(munmap((void *)p, bytes), 0);
    expect_exit(child, 0);
}

/* All of them fork until that fails; then each closes its end of `alive`, and
 * waits until the gate is closed. */
static void bomb(const int alive[2], const int gate[2])
{
    char c;

    close(alive[0]);
    close(gate[1]);
    while (fork() >= 0)
        continue;
    if (errno == ENOMEM)
        close(alive[1]);
    read(gate[0], &c, 1);
    _exit(0);
}

TEST(commit, fork_bomb)
{
    size_t before = meminfo("committed");
    int alive[2], gate[2];
    pid_t first;
    char c;

    make_pipe(alive);
    make_pipe(gate);
    first = fork();
    CHECK(first >= 0);
    if (first == 0)
        bomb(alive, gate);
    close(alive[1]);
    EQUAL(read(alive[0], &c, 1), 0); /* the last fork has failed */
    FAILS(fork(), ENOMEM);
    CHECK(meminfo("committed") > before);
    close(gate[1]);
    expect_exit(first, 0);
    for (int i = 0; i < 1000 && meminfo("committed") > before; i++)
        sleep_ms(10);
    EQUAL(meminfo("committed"), before);
    expect_exit(spawn(nothing, 0), 0);
}

/* ---- exec --------------------------------------------------------------- */

TEST(commit, exec_without_memory)
{
    char *const argv[] = {"true", NULL};
    struct mapping *all = map_all(MIB(1));

    FAILS(execve("/bin/true", argv, NULL), ENOMEM);
    unmap_all(all);
    execve("/bin/true", argv, NULL);
    test_fail(__FILE__, __LINE__, "exec after memory came back", errno);
}

/* ---- the stack ---------------------------------------------------------- */

/* The reserve can be used when no other memory is free. */
TEST(commit, stack_reserve)
{
    map_all(MIB(1));
    EQUAL(use_stack(RESERVE - KIB(2)), 1);
}

TEST_KILLED(commit, stack_beyond_reserve, SIGSEGV)
{
    map_all(MIB(1));
    use_stack(2 * RESERVE);
}

/* A call that would write beyond it fails; the program continues. */
TEST(commit, call_beyond_reserve)
{
    struct mapping *all;
    int zero = open("/dev/zero", O_RDONLY);
    uintptr_t below = (uintptr_t)&all - 2 * RESERVE;

    CHECK(zero >= 0);
    all = map_all(MIB(1));
    FAILS(read(zero, (void *)below, 1), ENOMEM);
    unmap_all(all);
    EQUAL(read(zero, (void *)below, 1), 1);
}
