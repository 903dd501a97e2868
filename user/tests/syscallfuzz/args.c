/*
 * Random system calls.
 *
 * The kind of an argument is mostly right for its position, since a call with a
 * wrong first argument does little: handles for handles, paths for paths. One
 * in four is of any kind. Pointers are valid, valid for some bytes only, or
 * invalid in several ways.
 *
 * Only effects outside the batch are excluded: kill and setpgid select the
 * batch or nothing, no handle is the console, and no path leads to a file of
 * others.
 */
#include "user/tests/syscallfuzz/fuzz.h"
#include "user/tests/syscallfuzz/fuzzer.h"
#include "user/lib/ipc.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

#define AREA_PAGES 8

enum kind {
    ANY, /* one of the others */
    SMALL,
    BIG,
    HANDLE,
    PATH,
    POINTER,
    SIZE,
    FLAGS,
    SELF, /* a pid: this process or none */
    GROUP,
    TAG,
    MESSAGE, /* a struct ipc_buffer */
    VECTOR,  /* argv */
    PROGRAM, /* a kind of its own, so never chosen at random */
};

/* The kinds of a call's arguments. */
static const uint8_t kinds[SYSCALL_COUNT][6] = {
    [SYS_exit] = {SMALL},
    [SYS_exec] = {PROGRAM, VECTOR, VECTOR},
    [SYS_wait] = {GROUP, POINTER, SMALL},
    [SYS_kill] = {SELF, SMALL},
    [SYS_sleep] = {SMALL},
    [SYS_setpgid] = {SELF, SELF},
    [SYS_sbrk] = {BIG},
    [SYS_mmap] = {SIZE, SMALL},
    [SYS_munmap] = {POINTER, SIZE},
    [SYS_open] = {PATH, FLAGS},
    [SYS_close] = {HANDLE},
    [SYS_read] = {HANDLE, POINTER, SIZE},
    [SYS_write] = {HANDLE, POINTER, SIZE},
    [SYS_lseek] = {HANDLE, BIG, SMALL},
    [SYS_stat] = {PATH, POINTER},
    [SYS_fstat] = {HANDLE, POINTER},
    [SYS_ftruncate] = {HANDLE, SIZE},
    [SYS_getdents] = {HANDLE, POINTER, SIZE},
    [SYS_mkdir] = {PATH},
    [SYS_rmdir] = {PATH},
    [SYS_unlink] = {PATH},
    [SYS_rename] = {PATH, PATH},
    [SYS_link] = {PATH, PATH},
    [SYS_chdir] = {PATH},
    [SYS_getcwd] = {POINTER, SIZE},
    [SYS_dup] = {HANDLE},
    [SYS_dup2] = {HANDLE, HANDLE},
    [SYS_pipe] = {POINTER},
    [SYS_ttymode] = {HANDLE, SMALL},
    [SYS_tcsetpgrp] = {HANDLE, SELF},
    [SYS_port_create] = {SMALL},
    [SYS_ipc_call] = {HANDLE, TAG, BIG, BIG, BIG, MESSAGE},
    [SYS_ipc_receive] = {HANDLE, SMALL, BIG, BIG, BIG, MESSAGE},
    [SYS_ipc_reply] = {SELF, TAG, BIG, BIG, BIG, MESSAGE},
    [SYS_ipc_reply_receive] = {HANDLE, TAG, BIG, BIG, BIG, MESSAGE},
    [SYS_notify] = {HANDLE, BIG},
    [SYS_irq_bind] = {HANDLE, SMALL, SMALL},
    [SYS_irq_ack] = {SMALL},
    [SYS_name_server] = {SMALL, HANDLE},
    [SYS_grant_take] = {PATH},
    [SYS_map_device] = {BIG, SIZE},
    [SYS_dma_alloc] = {SMALL, POINTER},
    [SYS_alarm] = {HANDLE, SMALL, SMALL},
    [SYS_mount] = {HANDLE, PATH},
    [SYS_umount] = {PATH},
    [SYS_fsync] = {HANDLE},
    [SYS_statfs] = {PATH, POINTER},
};

static uint8_t *area; /* AREA_PAGES, the program's to read and write */
static pid_t own;

static const char *const paths[] = {
    "a",
    "b",
    "a/b",
    "a/b/c",
    "d",
    ".",
    "",
    "a/",
    "./a",
    "a//b",
    "..a", /* a path may begin in the middle: none ends in ".." */
    "/proc",
    "/proc/",
    "/proc/tasks",
    "/proc/kmastat",
    "/proc/a",
    "a name that is just as long as a name may be, or is longer still",
};

/* ---- values ------------------------------------------------------------- */

static uint32_t big(void)
{
    static const uint32_t edges[] = {
        0,          1,          0x7fffffff, 0x80000000, 0xffffffff,
        0xfffff000, 0x00400000, 0x40000000, 0xbffff000, 0xc0000000,
    };

    switch (below(4)) {
    case 0:
        return edges[below(ARRAY_SIZE(edges))] + below(5) - 2;
    case 1:
        return 1u << below(32);
    case 2:
        return below(100000) - 50000;
    default:
        return any_bits();
    }
}

static uint32_t size(void)
{
    return below(8) == 0 ? big() : below(3 * PAGE_SIZE);
}

static uint32_t pointer(void)
{
    uint32_t end = (uint32_t)area + AREA_PAGES * PAGE_SIZE;

    switch (below(10)) {
    case 0:
        return end - below(64); /* valid for a few bytes */
    case 1:
        return 0xC0000000 - below(64);
    case 2:
        return 0xC0000000 + below(MIB(8));
    case 3:
        return big();
    case 4:
        return (uint32_t)kinds; /* may be read only */
    default:
        return (uint32_t)area + below(AREA_PAGES * PAGE_SIZE);
    }
}

/* Never the handle for reports. */
static uint32_t handle(void)
{
    uint32_t h = below(16) == 0 ? big() : below(12);

    return h == REPORT_HANDLE ? 0 : h;
}

static uint32_t self(void)
{
    static const int32_t nobody[] = {0, 0x7fffffff, INT32_MIN, -0x7fffffff};

    return below(2) == 0 ? (uint32_t)own
                         : (uint32_t)nobody[below(ARRAY_SIZE(nobody))];
}

/* Descriptions of messages in the area, with random contents. */
static uint32_t message(void)
{
    struct ipc_buffer *b = (struct ipc_buffer *)area + below(8);

    if (below(3) == 0)
        return below(2) == 0 ? 0 : pointer();
    b->ipc_send = (const void *)pointer();
    b->ipc_send_size = size();
    b->ipc_receive = (void *)pointer();
    b->ipc_receive_max = size();
    b->ipc_send_handle = (int32_t)handle();
    return (uint32_t)b;
}

static uint32_t vector(void)
{
    uint32_t *v = (uint32_t *)(area + PAGE_SIZE);
    uint32_t n = below(6);

    if (below(4) == 0)
        return pointer();
    for (uint32_t i = 0; i < n; i++)
        v[i] = below(4) == 0 ? pointer() : (uint32_t)paths[i];
    v[n] = 0;
    return (uint32_t)v;
}

static uint32_t path(void)
{
    if (below(8) == 0)
        return pointer();
    return (uint32_t)paths[below(ARRAY_SIZE(paths))];
}

static uint32_t flags(void)
{
    static const uint32_t bits[] = {O_CREAT,  O_EXCL,      O_TRUNC,
                                    O_APPEND, O_DIRECTORY, O_CLOEXEC};
    uint32_t f = below(8) == 0 ? big() : below(3);

    for (size_t i = 0; i < ARRAY_SIZE(bits); i++)
        if (below(3) == 0)
            f |= bits[i];
    return f;
}

static uint32_t value(enum kind kind)
{
    switch (kind) {
    case SMALL:
        return below(8) - 2;
    case BIG:
        return big();
    case HANDLE:
        return handle();
    case PATH:
        return path();
    case POINTER:
        return pointer();
    case SIZE:
        return size();
    case FLAGS:
        return flags();
    case SELF:
        return self();
    case GROUP:
        return below(2) == 0 ? UINT32_MAX : self();
    case TAG:
        return below(4) << 16 | below(4) | (below(8) == 0 ? big() : 0);
    case MESSAGE:
        return message();
    case PROGRAM:
        return below(4) == 0 ? path() : (uint32_t) "/bin/true";
    case VECTOR:
        return vector();
    default:
        return value((enum kind)(1 + below(PROGRAM - 1)));
    }
}

/* ---- calls -------------------------------------------------------------- */

/* Arguments that could select other processes, or the handle for reports, keep
 * their kind. */
static bool is_confined(uint32_t number, unsigned at)
{
    switch (number) {
    case SYS_kill:
    case SYS_setpgid:
        return at < 2;
    case SYS_close:
    case SYS_dup2:
        return true;
    default:
        return false;
    }
}

/* Calls that are likely to be the last of a batch. */
static bool is_final(uint32_t number)
{
    switch (number) {
    case SYS_exit:
    case SYS_exec:
    case SYS_kill:
    case SYS_sleep:
    case SYS_ipc_call:
    case SYS_ipc_receive:
    case SYS_ipc_reply_receive:
        return true;
    default:
        return false;
    }
}

/* Makes these calls rare. */
static uint32_t random_number(void)
{
    uint32_t n;

    do {
        n = below(SYSCALL_COUNT);
    } while (is_final(n) && below(20) != 0);
    return below(200) == 0 ? any_bits() >> below(32) : n;
}

void args_next(struct fuzz_call *call)
{
    uint32_t number = random_number();

    call->call_number = number;
    for (unsigned i = 0; i < 6; i++) {
        enum kind kind = number < SYSCALL_COUNT ? kinds[number][i] : ANY;

        if (below(4) == 0 && !is_confined(number, i))
            kind = ANY;
        call->call_registers[i] = value(kind);
    }
}

void args_begin(uint32_t seed)
{
    own = getpid();
    area = mmap(AREA_PAGES * PAGE_SIZE, PROT_READ | PROT_WRITE);
    if (area == MAP_FAILED)
        _exit(1);
    srand(seed);
    for (uint32_t i = 0; i < AREA_PAGES * PAGE_SIZE; i += 4)
        *(uint32_t *)(area + i) = big();
    strlcpy((char *)area + 512, paths[0], 8);
}
