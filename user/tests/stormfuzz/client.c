/*
 * Random calls with paths on hostile servers, and messages to their ports. Any
 * of them may fail, or wait until the task is killed.
 */
#include "user/tests/stormfuzz/stormfuzz.h"
#include "user/tests/syscallfuzz/fuzzer.h"
#include "user/lib/ipc.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

#define PATH_BYTES 16
#define KEPT       8 /* files open at a time */

static char buf[4096];

static int port(void)
{
    return ports[below(SERVERS)];
}

/* No path leads out of the round's directory: ".." is not the first name, and
 * there is at most one. */
static const char *path(char *to)
{
    char *p = to;
    uint32_t names = below(4);

    if (below(8) != 0) {
        *p++ = 'm';
        *p++ = (char)('0' + below(SERVERS));
    } else {
        *p++ = (char)('a' + below(4));
    }
    while (names-- > 0) {
        *p++ = '/';
        *p++ = (char)('a' + below(5)); /* e is missing in servers */
    }
    *p = 0;
    if (below(8) == 0)
        strlcat(to, "/..", PATH_BYTES);
    return to;
}

static int open_any(const char *p)
{
    static const uint32_t flags[] = {O_RDONLY, O_RDWR, O_RDWR | O_CREAT,
                                     O_RDWR | O_TRUNC, O_RDONLY | O_DIRECTORY};

    return open(p, flags[below(ARRAY_SIZE(flags))]);
}

static void use_file(int h)
{
    for (uint32_t n = below(6); n-- > 0;) {
        switch (below(6)) {
        case 0:
        case 1:
            read(h, buf, below(sizeof(buf)));
            break;
        case 2:
            write(h, buf, below(sizeof(buf)));
            break;
        case 3:
            lseek(h, (off_t)below(10), SEEK_SET);
            break;
        case 4:
            getdents(h, buf, sizeof(buf));
            break;
        default:
            if (below(2) == 0)
                fsync(h);
            else
                ftruncate(h, below(100));
        }
    }
}

/* Files stay open for a while, so that unmounting finds them in use. */
static void use_files(const char *p)
{
    static int kept[KEPT];
    int *h = &kept[below(KEPT)];

    if (*h > 0)
        close(*h);
    *h = open_any(p);
    use_file(*h);
}

static void read_proc(void)
{
    static const char *const files[] = {"/proc/mounts", "/proc/tasks",
                                        "/proc/servers", "/proc/sessions",
                                        "/proc/kmastat"};
    int h = open(files[below(ARRAY_SIZE(files))], O_RDONLY);

    while (read(h, buf, sizeof(buf)) > 0)
        continue;
    close(h);
}

/* A request or what resembles one, with a handle to a file sometimes. */
static void send(const char *p)
{
    struct ipc_buffer b = {.ipc_send = buf,
                           .ipc_send_size = below(100),
                           .ipc_receive = buf,
                           .ipc_receive_max = below(sizeof(buf)),
                           .ipc_send_handle = -1};
    struct message m = {.msg_tag = FS_STAT + below(20) +
                                   (below(2) == 0 ? 0 : IPC_DATA),
                        .msg_word = {below(200), below(200), below(200)},
                        .msg_buffer = &b};

    if (below(4) == 0) {
        b.ipc_send_handle = open_any(p);
        m.msg_tag |= IPC_HANDLE;
    }
    if (ipc_call(port(), &m) == 0 && m.msg_tag & IPC_HANDLE)
        close(b.ipc_received_handle);
    close(b.ipc_send_handle);
}

static void go(const char *p)
{
    if (chdir(below(2) == 0 ? top : p) == 0)
        getcwd(buf, sizeof(buf));
}

static void change_tree(const char *p, const char *q)
{
    switch (below(5)) {
    case 0:
        mkdir(p);
        break;
    case 1:
        rmdir(p);
        break;
    case 2:
        unlink(p);
        break;
    case 3:
        link(p, q);
        break;
    default:
        rename(p, q);
    }
}

/* Of the file system as a whole. */
static void change_mounts(const char *p)
{
    struct fs_stat st;

    switch (below(5)) {
    case 0:
        umount(p);
        break;
    case 1:
        statfs(p, &st);
        break;
    default:
        mount(port(), p);
    }
}

static void step(const char *p, const char *q)
{
    char *const arguments[] = {buf, NULL};
    struct stat st;

    switch (below(12)) {
    case 0:
    case 1:
        change_mounts(p);
        break;
    case 2:
        send(p);
        break;
    case 3:
        notify(port(), below(1000));
        break;
    case 4:
        read_proc();
        break;
    case 5:
        go(p);
        break;
    case 6:
    case 7:
        change_tree(p, q);
        break;
    case 8:
        sleep_ms(below(4));
        break;
    case 9:
        execv(p, arguments); /* no server has a program: it fails */
        break;
    case 10:
        stat(p, &st);
        break;
    default:
        use_files(p);
    }
}

void client_run(void)
{
    char p[PATH_BYTES], q[PATH_BYTES];

    close(CARRIER);
    if (chdir(top) < 0)
        _exit(1);
    for (;;)
        step(path(p), path(q));
}
