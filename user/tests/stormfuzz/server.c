/*
 * A hostile file server. It handles one kind of request badly, after some
 * replies to such requests that are right.
 *
 * Its tree never changes, and is found by arithmetic: entries a, b, c and d of
 * directory n are the files 4n … 4n + 3. a and b are directories, except at the
 * third level. It accepts changes and forgets them, so even its right replies
 * contradict each other.
 */
#include "user/tests/stormfuzz/stormfuzz.h"
#include "user/tests/syscallfuzz/fuzzer.h"
#include "user/lib/fs_server.h"
#include "user/lib/ipc.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

#define ROOT   1u
#define LEVEL3 64u /* the first file there */
#define SIZE   5u

enum manner {
    SILENT, /* no reply */
    DIES,   /* exits instead of replying */
    LIES,   /* wrong words, or bytes, or number of bytes */
    SLOW,   /* a right reply, late */
    MANNERS,
};

static char reply[FS_DATA_MAX];
static char sent[FS_DATA_MAX + 1];

static bool is_directory(uint32_t file)
{
    return file == ROOT || (file % 4 < 2 && file < LEVEL3);
}

/* ---- right replies ------------------------------------------------------ */

static uint32_t look_up(uint32_t dir, const char *name, uint32_t *file)
{
    if (strcmp(name, "..") == 0)
        *file = dir / 4;
    else if (name[0] >= 'a' && name[0] <= 'd' && is_directory(dir))
        *file = dir * 4 + (uint32_t)(name[0] - 'a');
    else
        return (uint32_t)-ENOENT;
    return 0;
}

static uint32_t list(uint32_t dir, uint32_t *offset, uint32_t room)
{
    uint32_t n = 0;

    for (; *offset < 4; ++*offset) {
        uint32_t file = dir * 4 + *offset;
        char name = (char)('a' + *offset);
        size_t size = dirent_store(
            reply + n, MIN(room, FS_DATA_MAX) - n, file,
            is_directory(file) ? FILE_DIRECTORY : FILE_REGULAR, &name, 1);

        if (size == 0)
            break;
        n += (uint32_t)size;
    }
    return n;
}

static void stat_fs(void)
{
    *(struct fs_stat *)(void *)reply =
        (struct fs_stat){.fs_root = ROOT, .fs_kind = "hostile"};
}

static void stat_file(uint32_t file)
{
    bool dir = is_directory(file);

    *(struct fs_attr *)(void *)reply = (struct fs_attr){
        .attr_type = dir ? FILE_DIRECTORY : FILE_REGULAR,
        .attr_nlink = 2,
        .attr_size = dir ? 0 : SIZE,
    };
}

/* Changes the request's words into the reply's; returns its bytes. */
static uint32_t answer(uint32_t label, uint32_t *w, uint32_t received)
{
    uint32_t n = 0;
    uint32_t file = w[0];

    w[0] = 0;
    switch (label) {
    case FS_STAT:
        stat_fs();
        return sizeof(struct fs_stat);
    case FS_INODE:
        stat_file(file);
        return sizeof(struct fs_attr);
    case FS_NAME:
        reply[0] = (char)('a' + file % 4);
        return 1;
    case FS_LOOKUP:
        w[0] = look_up(file, sent, &w[1]);
        return 0;
    case FS_CREATE:
        w[1] = 4 * LEVEL3 + below(1000);
        return 0;
    case FS_READ:
        n = w[1] < SIZE ? MIN(SIZE - w[1], w[2]) : 0;
        memset(reply, '#', n);
        break;
    case FS_WRITE:
        w[0] = received;
        w[1] += received;
        return 0;
    case FS_GETDENTS:
        n = list(file, &w[1], w[2]);
        break;
    default:
        w[1] = below(2); /* links left */
    }
    w[0] = n;
    return n;
}

/* ---- wrong replies ------------------------------------------------------ */

static uint32_t wrong_word(void)
{
    switch (below(4)) {
    case 0:
        return below(LEVEL3 * 4);
    case 1:
        return -below(40);
    case 2:
        return FS_DATA_MAX + below(3) - 1;
    default:
        return any_bits();
    }
}

/* A name stays printable, so that /proc/mounts shows it. */
static void spoil(uint32_t label, struct message *m)
{
    struct ipc_buffer *b = m->msg_buffer;

    switch (below(5)) {
    case 0:
        b->ipc_send_size = below(2) == 0 ? below(300) : below(FS_DATA_MAX);
        break;
    case 1:
        reply[below(64)] =
            (char)(label == FS_NAME ? 'a' + below(26) : below(256));
        break;
    case 2:
        m->msg_tag |= below(0x200);
        break;
    default:
        m->msg_word[below(2)] = wrong_word();
    }
}

/* ---- the loop ----------------------------------------------------------- */

/* The port, of which no other task has the end that receives. */
static int make_port(void)
{
    int port = port_create();
    struct ipc_buffer b = {.ipc_send_handle = port};
    struct message m = {.msg_tag = IPC_HANDLE, .msg_buffer = &b};

    if (port < 0 || ipc_call(CARRIER, &m) < 0)
        _exit(1);
    for (int h = 0; h < HANDLES_MAX; h++)
        if (h != port)
            close(h);
    return port;
}

static bool behave(enum manner manner, uint32_t label, struct message *m)
{
    switch (manner) {
    case SILENT:
        return false;
    case DIES:
        _exit(0);
    case LIES:
        spoil(label, m);
        break;
    default:
        sleep_ms(below(30));
    }
    return true;
}

void server_run(void)
{
    struct ipc_buffer b = {
        .ipc_send = reply, .ipc_receive = sent, .ipc_receive_max = FS_DATA_MAX};
    struct message m = {.msg_buffer = &b};
    uint32_t bad = FS_STAT + below(FS_UNMOUNT - FS_STAT + 1);
    enum manner manner = (enum manner)below(MANNERS);
    uint32_t patience = below(6);
    int port = make_port();

    for (;;) {
        int r = ipc_receive(port, &m);
        uint32_t label = IPC_LABEL(m.msg_tag);

        if (r < 0 || m.msg_client == 0)
            continue;
        if (m.msg_tag & IPC_HANDLE)
            close(b.ipc_received_handle);
        sent[m.msg_tag & IPC_DATA ? b.ipc_received : 0] = 0;
        b.ipc_send_size = answer(label, m.msg_word,
                                 m.msg_tag & IPC_DATA ? b.ipc_received : 0);
        m.msg_tag = 0;
        if (label == bad && (patience == 0 || patience-- == 0) &&
            !behave(manner, label, &m))
            continue;
        m.msg_tag |= b.ipc_send_size > 0 ? IPC_DATA : 0;
        ipc_reply(m.msg_client, &m);
    }
}
