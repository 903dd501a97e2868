/*
 * The lying file server (liar.h): right replies, and lies.
 */
#include "user/tests/usertests/liar.h"
#include "user/tests/usertests/test.h"
#include "user/lib/ipc.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

#define TRUTH   0x80        /* bits that select no lie */
#define SILENCE 0x80000000u /* the other bits are a request without a reply */
#define SILENT  "silent"    /* a file: there was one */

int liar_port;

/* ---- the truth ---------------------------------------------------------- */

static uint32_t releases; /* seen: FS_STAT reports them as fs_files */

static int truth_lookup(uint32_t dir, const char *name)
{
    if (dir == 1 && strcmp(name, "f") == 0)
        return 2;
    if (dir == 1 && strcmp(name, "d") == 0)
        return 3;
    if (dir == 1 && strcmp(name, "e") == 0)
        return 5;
    if (dir == 1 && name[0] == 'x')
        return 100 + atoi(name + 1);
    if (dir == 3 && strcmp(name, "s") == 0)
        return 4;
    if (dir == 4 && strcmp(name, "..") == 0)
        return 3;
    return (dir == 3 || dir == 5) && strcmp(name, "..") == 0 ? 1 : -ENOENT;
}

static void truth_inode(uint32_t file, struct fs_attr *attr)
{
    bool dir = file == 1 || (file >= 3 && file <= 5);

    *attr = (struct fs_attr){
        .attr_type = dir ? FILE_DIRECTORY : FILE_REGULAR,
        .attr_nlink = dir ? 3 : 1,
        .attr_size = dir ? 0 : 5,
    };
}

/* Requests whose reply has bytes: returns how many, and sets the result. */
static uint32_t truth_bytes(struct message *m, uint32_t label)
{
    uint32_t *w = m->msg_word;
    uint32_t n = 0;

    switch (label) {
    case FS_STAT:
        *(struct fs_stat *)(void *)message_bytes = (struct fs_stat){
            .fs_root = 1, .fs_files = releases, .fs_kind = "liar"};
        w[0] = 0;
        return sizeof(struct fs_stat);
    case FS_INODE:
        truth_inode(w[0], (struct fs_attr *)(void *)message_bytes);
        w[0] = 0;
        return sizeof(struct fs_attr);
    case FS_NAME:
        message_bytes[0] = w[0] == 3 ? 'd' : 's';
        w[0] = 0;
        return 1;
    case FS_READ:
        n = w[1] < 5 ? MIN(5 - w[1], w[2]) : 0;
        memcpy(message_bytes, "hello" + w[1] % 5, n);
        break;
    case FS_GETDENTS:
        if (w[0] != 3 && w[1]++ == 0) /* "d" is empty: for mounts */
            n = (uint32_t)dirent_store(message_bytes, w[2], 2, FILE_REGULAR,
                                       "f", 1);
        break;
    }
    w[0] = n;
    return n;
}

static void truth(struct message *m, const char *sent)
{
    struct ipc_buffer *b = m->msg_buffer;
    uint32_t label = IPC_LABEL(m->msg_tag);
    uint32_t *w = m->msg_word;
    int r;

    b->ipc_send = message_bytes;
    b->ipc_send_size = 0;
    switch (label) {
    case FS_LOOKUP:
        r = truth_lookup(w[0], sent);
        w[0] = r < 0 ? (uint32_t)r : 0;
        w[1] = (uint32_t)r;
        break;
    case FS_CREATE:
        w[0] = 0;
        w[1] = 199;
        break;
    case FS_WRITE:
        w[0] = b->ipc_received;
        w[1] += b->ipc_received;
        break;
    case FS_STAT:
    case FS_INODE:
    case FS_NAME:
    case FS_READ:
    case FS_GETDENTS:
        b->ipc_send_size = truth_bytes(m, label);
        break;
    case FS_RELEASE:
        releases++;
        /* fall through */
    default:
        w[0] = 0;
        w[1] = 0;
    }
    m->msg_tag = b->ipc_send_size > 0 ? IPC_DATA : 0;
}

/* ---- the lies ----------------------------------------------------------- */

/* Changes the reply as the lie says. False: there is none. */
static bool trick(const struct lie *lie, struct message *m, const char *sent)
{
    struct message own = {.msg_tag = 0};
    struct stat st;

    switch (lie->lie_trick) {
    case LEAVE:
        ipc_reply(m->msg_client, m);
        /* fall through */
    case DIE:
        _exit(0);
    case HANG:
        make_file(SILENT, "");
        return false;
    case LABEL:
        m->msg_tag |= FS_LOOKUP;
        break;
    case HANDLE:
        m->msg_tag |= IPC_HANDLE;
        m->msg_buffer->ipc_send_handle = STDOUT_FILENO;
        break;
    case LOST:
        m->msg_buffer->ipc_send = (void *)0x10;
        break;
    case KERNEL:
        m->msg_buffer->ipc_send = (void *)0xC0000010;
        break;
    case SYNC:
        m->msg_word[0] = sync() < 0 ? (uint32_t)-errno : 0;
        break;
    case OWN:
        m->msg_word[0] = stat("m/f", &st) < 0 ? (uint32_t)-errno : 0;
        break;
    case WRONG:
        if (ipc_reply((uint32_t)getpid(), &own) == 0 ||
            ipc_reply(1, &own) == 0 || errno != ESRCH)
            m->msg_word[0] = (uint32_t)-EPERM;
        break;
    case DOWN:
    case CYCLE:
        if (m->msg_word[0] != 0 && strcmp(sent, "d") == 0) {
            m->msg_word[0] = 0;
            m->msg_word[1] = 3;
        }
        if (m->msg_word[1] == 1 && lie->lie_trick == CYCLE)
            m->msg_word[1] = 4;
        break;
    default:
        break;
    }
    return true;
}

static bool send_lie(const struct lie *lie, struct message *m, const char *sent)
{
    uint32_t label = IPC_LABEL(m->msg_tag);
    struct ipc_buffer *b = m->msg_buffer;

    truth(m, sent);
    if (lie == NULL || lie->lie_label != label)
        return true;
    if (lie->lie_result != KEEP)
        m->msg_word[0] = (uint32_t)lie->lie_result;
    if (lie->lie_word != KEEP)
        m->msg_word[1] = (uint32_t)lie->lie_word;
    if (lie->lie_bytes != KEEP)
        b->ipc_send_size = (uint32_t)lie->lie_bytes;
    if (lie->lie_at != KEEP)
        *(uint32_t *)(void *)(message_bytes + lie->lie_at) = lie->lie_value;
    m->msg_tag = b->ipc_send_size > 0 ? IPC_DATA : 0;
    return trick(lie, m, sent);
}

/* A notification selects the lie: its number plus 1. */
void liar_serve(int port, const struct lie *list)
{
    static char sent[FS_DATA_MAX + 1];
    struct ipc_buffer b = {.ipc_receive = sent, .ipc_receive_max = FS_DATA_MAX};
    struct message m = {.msg_buffer = &b};
    const struct lie *lie = NULL;
    uint32_t silent = 0;
    int r;

    for (int h = STDERR_FILENO + 1; h < 64; h++)
        if (h != port)
            close(h);
    for (r = ipc_receive(port, &m);; r = ipc_receive(port, &m)) {
        uint32_t bits = m.msg_word[0];

        if (r == 0 && m.msg_client == 0) {
            silent = bits & SILENCE ? bits & ~SILENCE : 0;
            lie = silent != 0 || bits == TRUTH ? NULL : &list[bits - 1];
        }
        if (r < 0 || m.msg_client == 0)
            continue;
        if (IPC_LABEL(m.msg_tag) == silent) {
            make_file(SILENT, "");
            continue;
        }
        sent[m.msg_tag & IPC_DATA ? b.ipc_received : 0] = 0;
        if (send_lie(lie, &m, sent))
            ipc_reply(m.msg_client, &m);
    }
}

void liar_run(int port)
{
    liar_serve(port, liar_tells);
}

void liar_run_mount(int port)
{
    liar_serve(port, liar_tells_mount);
}

void liar_order(int i)
{
    EQUAL(notify(liar_port, i < 0 ? TRUTH : (uint32_t)i + 1), 0);
}

void liar_silence(uint32_t label)
{
    unlink(SILENT);
    EQUAL(notify(liar_port, SILENCE | label), 0);
}

void liar_until_silent(void)
{
    struct stat st;

    while (stat(SILENT, &st) < 0)
        yield();
}

pid_t liar_begin(void)
{
    pid_t pid = spawn_server(liar_run, &liar_port);

    EQUAL(mkdir("m"), 0);
    EQUAL(mount(liar_port, "m"), 0);
    return pid;
}

void liar_stop(pid_t pid)
{
    expect_killed(pid);
    EQUAL(close(liar_port), 0);
}

void liar_end(pid_t pid)
{
    liar_stop(pid);
    EQUAL(umount("m"), 0);
}

int liar_find(const struct lie *list, uint32_t label, enum trick how)
{
    for (int i = 0; list[i].lie_label != 0; i++)
        if (list[i].lie_label == label && list[i].lie_trick == how)
            return i;
    CHECK(!"there is such a lie");
    return -1;
}
