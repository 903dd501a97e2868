/*
 * File servers that lie, hang and die: at worst their own files fail.
 *
 * The liar keeps a small tree that never changes (f is "hello"):
 *
 *     1 ──> f 2
 *      └──> d 3 ──> s 4              x0 … x99: 100 … 199, files
 *
 * It answers truthfully, but for the one lie that the notification bits of its
 * port name.
 */
#include "user/bin/usertests/test.h"
#include "user/lib/fs_server.h"
#include "user/lib/ipc.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

#define KEEP  0x7eeeeeee /* the truth */
#define TRUTH 0x80       /* bits that mean no lie at all */

enum trick {
    PLAIN,
    DIE,    /* ends instead of answering */
    HANG,   /* never answers this one */
    LABEL,  /* the answer has a label */
    HANDLE, /* a handle comes along */
    OWN,    /* uses its own file system */
    WRONG,  /* answers others first */
    DOWN,   /* d is in s, too */
    CYCLE,  /* and s is above d */
};

/* What is said of a request instead of the truth. */
struct lie {
    uint32_t lie_label;
    int32_t lie_result; /* word 0, or KEEP */
    int32_t lie_word;   /* word 1, or KEEP */
    int32_t lie_bytes;  /* how many, or KEEP */
    int32_t lie_at;     /* where among them is … */
    uint32_t lie_value; /* … this word; lie_at KEEP: nowhere */
    int (*lie_try)(unsigned i);
    int lie_error; /* that lie_try comes to */
    enum trick lie_trick;
};

static int server_port; /* to call the liar by */
static char bytes[FS_DATA_MAX];

static const struct lie lies[];
static const struct lie mount_lies[];

/* ---- the truth ---------------------------------------------------------- */

static uint32_t releases; /* seen: FS_STAT tells them as fs_files */

static int truth_lookup(uint32_t dir, const char *name)
{
    if (dir == 1 && strcmp(name, "f") == 0)
        return 2;
    if (dir == 1 && strcmp(name, "d") == 0)
        return 3;
    if (dir == 1 && name[0] == 'x')
        return 100 + atoi(name + 1);
    if (dir == 3 && strcmp(name, "s") == 0)
        return 4;
    if (dir == 4 && strcmp(name, "..") == 0)
        return 3;
    return dir == 3 && strcmp(name, "..") == 0 ? 1 : -ENOENT;
}

static void truth_inode(uint32_t file, struct fs_attr *attr)
{
    bool dir = file == 1 || file == 3 || file == 4;

    *attr = (struct fs_attr){
        .attr_type = dir ? FILE_DIRECTORY : FILE_REGULAR,
        .attr_nlink = dir ? 3 : 1,
        .attr_size = dir ? 0 : 5,
    };
}

/* Those that bring bytes: how many; the result is theirs or 0. */
static uint32_t truth_bytes(struct message *m, uint32_t label)
{
    uint32_t *w = m->msg_word;
    uint32_t n = 0;

    switch (label) {
    case FS_STAT:
        *(struct fs_stat *)(void *)bytes = (struct fs_stat){
            .fs_root = 1, .fs_files = releases, .fs_kind = "liar"};
        w[0] = 0;
        return sizeof(struct fs_stat);
    case FS_INODE:
        truth_inode(w[0], (struct fs_attr *)(void *)bytes);
        w[0] = 0;
        return sizeof(struct fs_attr);
    case FS_NAME:
        bytes[0] = w[0] == 3 ? 'd' : 's';
        w[0] = 0;
        return 1;
    case FS_READ:
        n = w[1] < 5 ? MIN(5 - w[1], w[2]) : 0;
        memcpy(bytes, "hello" + w[1] % 5, n);
        break;
    case FS_GETDENTS:
        if (w[1]++ == 0)
            n = (uint32_t)fs_put_dirent(bytes, w[2], 2, FILE_REGULAR, "f", 1);
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

/* Changes the answer as the lie says. False: there is none. */
static bool trick(const struct lie *lie, struct message *m, const char *sent)
{
    struct message own = {.msg_tag = 0};
    struct stat st;

    switch (lie->lie_trick) {
    case DIE:
        _exit(0);
    case HANG:
        return false;
    case LABEL:
        m->msg_tag |= FS_LOOKUP;
        break;
    case HANDLE:
        m->msg_tag |= IPC_HANDLE;
        m->msg_buffer->ipc_send_handle = STDOUT_FILENO;
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

static bool tell(const struct lie *lie, struct message *m, const char *sent)
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
        *(uint32_t *)(void *)(bytes + lie->lie_at) = lie->lie_value;
    m->msg_tag = b->ipc_send_size > 0 ? IPC_DATA : 0;
    return trick(lie, m, sent);
}

/* Serves for ever, one of the lies of a list, by what the port is notified of:
 * its number and 1. */
static void serve(int port, const struct lie *list)
{
    static char sent[FS_DATA_MAX + 1];
    struct ipc_buffer b = {
        .ipc_send = bytes, .ipc_receive = sent, .ipc_receive_max = FS_DATA_MAX};
    struct message m = {.msg_buffer = &b};
    const struct lie *lie = NULL;
    int r;

    for (int h = STDERR_FILENO + 1; h < 64; h++)
        if (h != port)
            close(h);
    for (r = ipc_receive(port, &m);; r = ipc_receive(port, &m)) {
        if (r == 0 && m.msg_client == 0)
            lie = m.msg_word[0] == TRUTH ? NULL : &list[m.msg_word[0] - 1];
        if (r < 0 || m.msg_client == 0)
            continue;
        sent[m.msg_tag & IPC_DATA ? b.ipc_received : 0] = 0;
        if (tell(lie, &m, sent))
            ipc_reply(m.msg_client, &m);
    }
}

static void liar(int port)
{
    serve(port, lies);
}

static void mount_liar(int port)
{
    serve(port, mount_lies);
}

/* From now on it tells lie number `i`; -1: the truth. */
static void order(int i)
{
    EQUAL(notify(server_port, i < 0 ? TRUTH : (uint32_t)i + 1), 0);
}

static pid_t begin(void)
{
    pid_t pid = spawn_server(liar, &server_port);

    EQUAL(mkdir("m"), 0);
    EQUAL(mount(server_port, "m"), 0);
    return pid;
}

static void stop(pid_t pid)
{
    EQUAL(kill(pid, SIGKILL), 0);
    expect_signal(pid, SIGKILL);
    EQUAL(close(server_port), 0);
}

static void end(pid_t pid)
{
    stop(pid);
    EQUAL(umount("m"), 0);
}

/* ---- what is tried ------------------------------------------------------ */

/* Each returns -1 with errno, or what it came to. */

static int with_file(const char *path, uint32_t flags, int (*fn)(int h))
{
    int h = open(path, flags);
    int r, error;

    if (h < 0)
        return -1;
    r = fn(h);
    error = errno;
    EQUAL(close(h), 0);
    errno = error;
    return r;
}

static int read_some(int h)
{
    char buf[64];

    return (int)read(h, buf, 8);
}

static int write_some(int h)
{
    return (int)write(h, "12345", 5);
}

static int list_some(int h)
{
    char buf[256];

    return (int)getdents(h, buf, sizeof(buf));
}

static int cut(int h)
{
    return ftruncate(h, 3);
}

/* A file that nobody has looked at yet. */
static int try_look(unsigned i)
{
    char path[16];
    struct stat st;

    snprintf(path, sizeof(path), "m/x%u", i);
    return stat(path, &st);
}

static int try_deep(unsigned i)
{
    struct stat st;

    (void)i;
    return stat("m/d/s", &st);
}

static int try_read(unsigned i)
{
    (void)i;
    return with_file("m/f", O_RDONLY, read_some);
}

static int try_write(unsigned i)
{
    (void)i;
    return with_file("m/f", O_WRONLY, write_some);
}

static int try_list(unsigned i)
{
    (void)i;
    return with_file("m", O_RDONLY, list_some);
}

static int try_cut(unsigned i)
{
    (void)i;
    return with_file("m/f", O_WRONLY, cut);
}

static int try_sync(unsigned i)
{
    (void)i;
    return with_file("m/f", O_RDONLY, fsync);
}

static int try_cwd(unsigned i)
{
    char path[PATH_MAX];
    int r, error;

    (void)i;
    EQUAL(chdir("m/d"), 0);
    r = getcwd(path, sizeof(path));
    error = errno;
    EQUAL(chdir("../.."), 0);
    errno = error;
    return r;
}

static int try_unlink(unsigned i)
{
    (void)i;
    return unlink("m/f");
}

static int try_create(unsigned i)
{
    (void)i;
    return with_file("m/new", O_WRONLY | O_CREAT, write_some);
}

static int try_mkdir(unsigned i)
{
    (void)i;
    return mkdir("m/new");
}

static int try_rmdir(unsigned i)
{
    (void)i;
    return rmdir("m/d/s");
}

static int try_rename(unsigned i)
{
    (void)i;
    return rename("m/f", "m/g");
}

static int try_link(unsigned i)
{
    (void)i;
    return link("m/f", "m/g");
}

static int try_statfs(unsigned i)
{
    struct fs_stat st;

    (void)i;
    return statfs("m", &st);
}

#define SAYS(label, result, word, n, fn)                                       \
    {                                                                          \
        label, result, word, n, KEEP, 0, fn, EIO, PLAIN                        \
    }
#define PUTS(label, at, value, fn)                                             \
    {                                                                          \
        label, KEEP, KEEP, KEEP, at, value, fn, EIO, PLAIN                     \
    }
#define DOES(label, trick, fn, error)                                          \
    {                                                                          \
        label, KEEP, KEEP, KEEP, KEEP, 0, fn, error, trick                     \
    }
/* The second word of a dirent. */
#define RECLEN(reclen, type, namlen)                                           \
    ((uint32_t)(reclen) | (uint32_t)(type) << 16 | (uint32_t)(namlen) << 24)

static const struct lie lies[] = {
    SAYS(FS_LOOKUP, 5, KEEP, KEEP, try_look),
    SAYS(FS_LOOKUP, INT32_MIN, KEEP, KEEP, try_look),
    SAYS(FS_LOOKUP, KEEP, 0, KEEP, try_look),
    SAYS(FS_LOOKUP, KEEP, 1, KEEP, try_look), /* the root, and itself */
    SAYS(FS_LOOKUP, KEEP, 1, KEEP, try_deep),
    SAYS(FS_LOOKUP, KEEP, 3, KEEP, try_deep),
    SAYS(FS_LOOKUP, KEEP, KEEP, 8, try_look), /* bytes that nobody asked for */
    SAYS(FS_INODE, 5, KEEP, KEEP, try_look),
    SAYS(FS_INODE, KEEP, KEEP, 4, try_look),
    SAYS(FS_INODE, KEEP, KEEP, 0, try_look),
    SAYS(FS_INODE, KEEP, KEEP, 65536, try_look),
    PUTS(FS_INODE, 0, 0, try_look), /* types that are none */
    PUTS(FS_INODE, 0, FILE_PIPE, try_look),
    PUTS(FS_INODE, 0, 0x80000002, try_look),
    PUTS(FS_INODE, 4, 0, try_look), /* without links */
    SAYS(FS_READ, 9, KEEP, KEEP, try_read),
    SAYS(FS_READ, 5, KEEP, 4, try_read),
    SAYS(FS_READ, 3, KEEP, 4, try_read),
    SAYS(FS_READ, 5, KEEP, 0, try_read),
    SAYS(FS_READ, 9, KEEP, 9, try_read),
    SAYS(FS_WRITE, 6, KEEP, KEEP, try_write),
    SAYS(FS_WRITE, 0, KEEP, KEEP, try_write),
    SAYS(FS_WRITE, KEEP, 4, KEEP, try_write),
    SAYS(FS_WRITE, KEEP, -1, KEEP, try_write),
    SAYS(FS_GETDENTS, 8, KEEP, KEEP, try_list),
    SAYS(FS_GETDENTS, 300, KEEP, 300, try_list),
    SAYS(FS_GETDENTS, 4, KEEP, 4, try_list),
    PUTS(FS_GETDENTS, 0, 0, try_list),
    PUTS(FS_GETDENTS, 4, RECLEN(0, 1, 1), try_list),
    PUTS(FS_GETDENTS, 4, RECLEN(8, 1, 1), try_list),
    PUTS(FS_GETDENTS, 4, RECLEN(16, 1, 1), try_list),
    PUTS(FS_GETDENTS, 4, RECLEN(11, 1, 1), try_list),
    PUTS(FS_GETDENTS, 4, RECLEN(65532, 1, 1), try_list),
    {FS_GETDENTS, 11, KEEP, 11, 4, RECLEN(11, 1, 1), try_list, EIO, PLAIN},
    PUTS(FS_GETDENTS, 4, RECLEN(12, 1, 0), try_list),
    PUTS(FS_GETDENTS, 4, RECLEN(12, 1, 2), try_list),
    PUTS(FS_GETDENTS, 4, RECLEN(12, 1, 200), try_list),
    PUTS(FS_GETDENTS, 4, RECLEN(12, 9, 1), try_list),
    PUTS(FS_GETDENTS, 8, '/', try_list),
    PUTS(FS_GETDENTS, 8, 'f' | 'g' << 8, try_list),
    SAYS(FS_NAME, KEEP, KEEP, 0, try_cwd),
    SAYS(FS_NAME, KEEP, KEEP, 60, try_cwd),
    PUTS(FS_NAME, 0, '/', try_cwd),
    PUTS(FS_NAME, 0, 0, try_cwd),
    SAYS(FS_UNLINK, KEEP, 1, KEEP, try_unlink),
    SAYS(FS_UNLINK, KEEP, -1, KEEP, try_unlink),
    SAYS(FS_CREATE, KEEP, 0, KEEP, try_create),
    SAYS(FS_CREATE, KEEP, 1, KEEP, try_mkdir),
    SAYS(FS_CREATE, 1, KEEP, KEEP, try_mkdir),
    SAYS(FS_RMDIR, 1, KEEP, KEEP, try_rmdir),
    SAYS(FS_RENAME, 1, KEEP, KEEP, try_rename),
    SAYS(FS_LINK, 1, KEEP, KEEP, try_link),
    SAYS(FS_TRUNCATE, 1, KEEP, KEEP, try_cut),
    SAYS(FS_SYNC, 1, KEEP, KEEP, try_sync),
    SAYS(FS_STAT, 1, KEEP, KEEP, try_statfs),
    SAYS(FS_STAT, KEEP, KEEP, 8, try_statfs),
    PUTS(FS_STAT, 0, 2, try_statfs), /* another root */
    DOES(FS_LOOKUP, LABEL, try_look, EIO),
    DOES(FS_READ, LABEL, try_read, EIO),
    DOES(FS_READ, HANDLE, try_read, EIO),
    DOES(FS_INODE, HANDLE, try_look, EIO),
    DOES(FS_LOOKUP, OWN, try_look, EDEADLK),
    DOES(FS_LOOKUP, WRONG, try_look, 0),
    /* Errors of its own are the program's. */
    {FS_READ, -ENOSPC, KEEP, 0, KEEP, 0, try_read, ENOSPC, PLAIN},
    {FS_STAT, -EROFS, KEEP, 0, KEEP, 0, try_statfs, EROFS, PLAIN},
    /* Those that other cases ask for. */
    DOES(FS_LOOKUP, DOWN, NULL, 0),
    DOES(FS_LOOKUP, CYCLE, NULL, 0),
    DOES(FS_READ, HANG, NULL, 0),
    DOES(FS_READ, DIE, NULL, 0),
    DOES(FS_WRITE, DIE, NULL, 0),
    DOES(FS_UNLINK, DIE, NULL, 0),
    DOES(FS_RELEASE, DIE, NULL, 0),
    DOES(FS_RELEASE, HANG, NULL, 0),
    PUTS(FS_INODE, 0, FILE_DIRECTORY, NULL),
    {0},
};

/* Of a server that is to be mounted. */
static const struct lie mount_lies[] = {
    SAYS(FS_STAT, 1, KEEP, KEEP, NULL),
    SAYS(FS_STAT, -1, KEEP, 0, NULL),
    SAYS(FS_STAT, KEEP, KEEP, 8, NULL),
    SAYS(FS_STAT, KEEP, KEEP, 0, NULL),
    SAYS(FS_STAT, KEEP, KEEP, 65536, NULL),
    PUTS(FS_STAT, 0, 0, NULL),
    PUTS(FS_STAT, 24, 0, NULL),
    PUTS(FS_STAT, 24, 'a' | ' ' << 8, NULL),
    PUTS(FS_INODE, 0, FILE_REGULAR, NULL),
    PUTS(FS_INODE, 4, 0, NULL),
    SAYS(FS_INODE, -ENOENT, KEEP, 0, NULL),
    DOES(FS_STAT, HANG, NULL, 0),
    DOES(FS_INODE, DIE, NULL, 0),
    {0},
};

/* Where a lie is in its list. */
static int find(const struct lie *list, uint32_t label, enum trick how)
{
    for (int i = 0; list[i].lie_label != 0; i++)
        if (list[i].lie_label == label && list[i].lie_trick == how)
            return i;
    CHECK(!"there is such a lie");
    return -1;
}

/* ---- lies --------------------------------------------------------------- */

static void liar_lies(void)
{
    pid_t pid = begin();
    int before = dup(STDIN_FILENO);
    int h;

    EQUAL(close(before), 0);
    for (unsigned i = 0; lies[i].lie_try != NULL; i++) {
        int r, error;

        order((int)i);
        r = lies[i].lie_try(i);
        error = r == -1 ? errno : MIN(r, 0);
        if (error != lies[i].lie_error) {
            printf("# lie %u\n", i);
            fflush(stdout);
            EQUAL(error, lies[i].lie_error);
        }
        order(-1);
        CHECK(has_text("m/f", "hello"));
    }
    h = dup(STDIN_FILENO); /* no handle has come along */
    EQUAL(h, before);
    EQUAL(close(h), 0);
    end(pid);
}

static void liar_mounts(void)
{
    pid_t pid = spawn_server(mount_liar, &server_port);

    EQUAL(mkdir("m"), 0);
    for (int i = 0; mount_lies[i].lie_trick == PLAIN; i++) {
        order(i);
        EQUAL(mount(server_port, "m"), -1);
        if (errno != EIO && errno != ENOTDIR && errno != EPERM &&
            errno != ENOENT)
            EQUAL(errno, i);
    }
    order(-1);
    FAILS(mount(server_port, "/"), EBUSY);
    FAILS(mount(server_port, "/proc"), EBUSY);
    EQUAL(mount(server_port, "m"), 0);
    FAILS(mount(server_port, "m"), EBUSY);
    EQUAL(umount("m"), 0);
    order(find(mount_lies, FS_INODE, DIE));
    FAILS(mount(server_port, "m"), EIO);
    FAILS(mount(server_port, "m"), EPIPE);
    expect_exit(pid, 0);
}

/* Nothing ends but what a kill can end. */
static void try_mount(int unused)
{
    (void)unused;
    mount(server_port, "m");
}

static void liar_mount_hangs(void)
{
    pid_t server = spawn_server(mount_liar, &server_port);
    pid_t pid;

    EQUAL(mkdir("m"), 0);
    order(find(mount_lies, FS_STAT, HANG));
    pid = spawn(try_mount, 0);
    until_blocked(pid);
    EQUAL(kill(pid, SIGKILL), 0);
    expect_signal(pid, SIGKILL);
    stop(server);
}

/* Walks come to an end, and nobody waits for himself or in a circle. */
static void rmdirs(int which)
{
    EQUAL(chdir(which ? "m/d" : "m/d/s"), 0);
    for (int i = 0; i < 20; i++) {
        FAILS(rmdir("nothing"), ENOENT);
        rmdir(which ? "s" : "d");
        rename(which ? "s" : "d", which ? "s/x" : "d/x");
    }
}

static void liar_circle(void)
{
    char back[PATH_MAX], path[PATH_MAX];
    pid_t pid = begin();
    pid_t one, other;

    CHECK(getcwd(back, sizeof(back)) > 0);
    CHECK(path_join(path, sizeof(path), back, "m/f"));
    EQUAL(chdir("m/d"), 0);
    for (int i = 0; lies[i].lie_label != 0; i++)
        if (lies[i].lie_label == FS_LOOKUP && lies[i].lie_word == 1)
            order(i); /* s is the root */
    FAILS(rmdir("s"), EIO);
    EQUAL(chdir(back), 0);
    order(find(lies, FS_LOOKUP, DOWN));
    FAILS(rename("m/d/s/d", "m/d/x"), EINVAL);
    order(find(lies, FS_LOOKUP, CYCLE));
    EQUAL(chdir("m/d/s/d/s/d"), 0);
    FAILS(rename("s", "s/x"), EINVAL);
    FAILS(rename(path, "g"), EIO); /* the root is nowhere above */
    FAILS(getcwd(path, sizeof(path)), ERANGE);
    EQUAL(chdir(back), 0);
    other = spawn(rmdirs, 0);
    one = spawn(rmdirs, 1);
    expect_exit(other, 0);
    expect_exit(one, 0);
    end(pid);
}

/* ---- servers that hang -------------------------------------------------- */

static void read_until_killed(int unused)
{
    (void)unused;
    try_read(0);
}

static void liar_hangs(void)
{
    pid_t server = begin();
    pid_t first, second;
    struct stat st;

    order(find(lies, FS_READ, HANG));
    first = spawn(read_until_killed, 0);
    until_blocked(first);
    second = spawn(read_until_killed, 0); /* waits for the first */
    until_blocked(second);
    EQUAL(stat("m/d", &st), 0); /* others are not concerned */
    EQUAL(kill(first, SIGKILL), 0);
    expect_signal(first, SIGKILL);
    EQUAL(kill(second, SIGKILL), 0);
    expect_signal(second, SIGKILL);
    order(-1);
    CHECK(has_text("m/f", "hello"));
    end(server);
}

/* A release that is never answered does not keep the server from dying. */
static void unlink_and_close(int h)
{
    EQUAL(close(h), 0);
}

static void liar_release_dies(void)
{
    pid_t server = begin();
    int h = open("m/f", O_RDONLY);
    pid_t pid;

    CHECK(h >= 0);
    EQUAL(unlink("m/f"), 0);
    pid = spawn(unlink_and_close, h);
    expect_exit(pid, 0);
    order(find(lies, FS_RELEASE, DIE));
    EQUAL(close(h), 0);
    expect_exit(server, 0);
    EQUAL(close(server_port), 0);
    EQUAL(umount("m"), 0);
}

/* Nor does it keep a dying program for ever, nor the server's other files. */
static void hold(int h)
{
    (void)h;
    sleep(100);
}

static void liar_release_hangs(void)
{
    pid_t server = begin();
    int h = open("m/f", O_RDONLY);
    uint32_t before = uptime_ms();
    struct stat st;
    pid_t pid;

    CHECK(h >= 0);
    EQUAL(unlink("m/f"), 0);
    order(find(lies, FS_RELEASE, HANG));
    pid = spawn(hold, h);
    EQUAL(close(h), 0);
    EQUAL(kill(pid, SIGKILL), 0);
    EQUAL(stat("m/d", &st), 0);
    expect_signal(pid, SIGKILL);
    CHECK(uptime_ms() - before >= 10000);
    end(server);
}

/* ---- servers that die --------------------------------------------------- */

/* Another liar in the place of one that has died. */
static pid_t succeed(void)
{
    EQUAL(close(server_port), 0);
    return spawn_server(liar, &server_port);
}

static void read_hello(int unused)
{
    uint32_t before = uptime_ms();

    (void)unused;
    CHECK(has_text("m/f", "hello"));
    CHECK(uptime_ms() - before < 2000); /* it was woken */
}

/* In the middle of a request that can be made again, and between two. */
static void liar_successor(void)
{
    pid_t server = begin();
    pid_t client;
    char buf[8];
    int h = open("m/f", O_RDONLY);

    CHECK(h >= 0);
    order(find(lies, FS_READ, DIE));
    client = spawn(read_hello, 0);
    until_blocked(client);
    expect_exit(server, 0);
    server = succeed();
    EQUAL(mount(server_port, "m"), 0);
    expect_exit(client, 0);
    EQUAL(kill(server, SIGKILL), 0);
    expect_signal(server, SIGKILL);
    server = succeed();
    EQUAL(mount(server_port, "m"), 0);
    FAILS(mount(server_port, "m"), EBUSY);
    EQUAL(read(h, buf, 8), 5);
    EQUAL(close(h), 0);
    end(server);
}

/* Readers who never notice that the server is killed again and again. */
static void read_on(int h)
{
    struct stat st;
    char buf[8];
    int n;

    for (n = 0; stat("stop", &st) < 0; n++) {
        EQUAL(lseek(h, 0, SEEK_SET), 0);
        EQUAL(read(h, buf, 8), 5);
        EQUAL(memcmp(buf, "hello", 5), 0);
        CHECK(has_text("m/f", "hello"));
    }
    CHECK(n > 10);
}

static void liar_storm(void)
{
    pid_t server = begin();
    pid_t readers[3];

    for (int i = 0; i < 3; i++)
        readers[i] = spawn(read_on, open("m/f", O_RDONLY));
    for (int i = 0; i < 20; i++) {
        for (int k = 0; k < 3 * i; k++)
            yield();
        EQUAL(kill(server, SIGKILL), 0);
        expect_signal(server, SIGKILL);
        server = succeed();
        EQUAL(mount(server_port, "m"), 0);
    }
    sleep_ms(10);
    make_file("stop", "");
    for (int i = 0; i < 3; i++)
        expect_exit(readers[i], 0);
    for (int h = 3; h < 10; h++)
        if (h != server_port)
            close(h);
    end(server);
}

/* A change that may have been made already is not made again. */
static void unlink_fails(int unused)
{
    uint32_t before = uptime_ms();

    (void)unused;
    FAILS(unlink("m/f"), EIO);
    CHECK(uptime_ms() - before < 1000); /* it waited for nobody */
}

static void liar_change_once(void)
{
    pid_t server = begin();
    pid_t client;

    order(find(lies, FS_UNLINK, DIE));
    client = spawn(unlink_fails, 0);
    expect_exit(client, 0);
    expect_exit(server, 0);
    server = succeed();
    EQUAL(mount(server_port, "m"), 0);
    CHECK(has_text("m/f", "hello"));
    end(server);
}

/* Nobody waits for a successor for ever; but it may still come. */
static void liar_no_successor(void)
{
    pid_t server = begin();
    uint32_t before;
    struct stat st;

    EQUAL(kill(server, SIGKILL), 0);
    expect_signal(server, SIGKILL);
    before = uptime_ms();
    FAILS(stat("m/f", &st), EIO);
    CHECK(uptime_ms() - before >= 5000);
    before = uptime_ms();
    FAILS(stat("m/f", &st), EIO);
    CHECK(uptime_ms() - before < 1000);
    server = succeed();
    EQUAL(mount(server_port, "m"), 0);
    EQUAL(stat("m/f", &st), 0);
    end(server);
}

/* One that has another root, or keeps other files by the same numbers. */
static void liar_impostor(void)
{
    pid_t server = begin();
    int h = open("m/f", O_RDONLY);
    char buf[8];

    CHECK(h >= 0);
    EQUAL(kill(server, SIGKILL), 0);
    expect_signal(server, SIGKILL);
    EQUAL(close(server_port), 0);
    server = spawn_server(mount_liar, &server_port);
    order(find(mount_lies, FS_STAT, PLAIN) + 6); /* no kind */
    FAILS(mount(server_port, "m"), EIO);
    order(find(mount_lies, FS_INODE, PLAIN));
    stop(server);
    server = spawn_server(liar, &server_port);
    EQUAL(mount(server_port, "m"), 0);
    for (int i = 0; lies[i].lie_label != 0; i++)
        if (lies[i].lie_label == FS_INODE && lies[i].lie_try == NULL)
            order(i); /* f is a directory now */
    FAILS(read(h, buf, 8), EIO);
    order(-1);
    EQUAL(read(h, buf, 8), 5);
    EQUAL(close(h), 0);
    end(server);
}

/* A file without a name went with the server that knew it. What has its number
 * now is another. */
static void liar_orphan(void)
{
    pid_t server = begin();
    int h = open("m/f", O_RDONLY);
    struct fs_stat st;
    char buf[8];

    CHECK(h >= 0);
    EQUAL(unlink("m/f"), 0);
    EQUAL(read(h, buf, 8), 5);
    EQUAL(kill(server, SIGKILL), 0);
    expect_signal(server, SIGKILL);
    server = succeed();
    EQUAL(mount(server_port, "m"), 0);
    FAILS(read(h, buf, 8), EIO);
    for (int i = 0; lies[i].lie_label != 0; i++)
        if (lies[i].lie_label == FS_INODE && lies[i].lie_at == 4)
            order(i); /* "that one? yes, it has no link" */
    FAILS(read(h, buf, 8), EIO);
    order(-1);
    CHECK(has_text("m/f", "hello"));
    EQUAL(close(h), 0);
    EQUAL(statfs("m", &st), 0);
    EQUAL(st.fs_files, 0); /* it heard of no release */
    h = open("m/f", O_RDONLY);
    EQUAL(unlink("m/f"), 0);
    EQUAL(close(h), 0);
    EQUAL(statfs("m", &st), 0);
    EQUAL(st.fs_files, 1);
    end(server);
}

/* Also not if it was just being written: the next server may have given the
 * number to another file. */
static void write_fails(int h)
{
    FAILS(write(h, "12345", 5), EIO);
}

static void liar_orphan_written(void)
{
    pid_t server = begin();
    int h = open("m/f", O_RDWR);
    pid_t client;

    CHECK(h >= 0);
    EQUAL(unlink("m/f"), 0);
    order(find(lies, FS_WRITE, DIE));
    client = spawn(write_fails, h);
    until_blocked(client);
    expect_exit(server, 0);
    server = succeed();
    EQUAL(mount(server_port, "m"), 0);
    expect_exit(client, 0);
    EQUAL(close(h), 0);
    end(server);
}

const struct test liar_tests[] = {
    TEST(liar, lies),
    TEST(liar, mounts),
    TEST(liar, mount_hangs),
    TEST(liar, circle),
    TEST(liar, hangs),
    TEST(liar, release_dies),
    TEST(liar, successor),
    TEST(liar, change_once),
    TEST(liar, no_successor),
    TEST(liar, impostor),
    TEST(liar, orphan),
    TEST(liar, orphan_written),
    TEST(liar, storm),
    TEST(liar, release_hangs),
    TEST_END,
};
