/*
 * File servers (user/lib/fs_server.h): messages to function calls and back.
 *
 *     ipc_receive ──> execute ──> lookup, change, execute_bytes, with_file …
 *          ^                              │ one function of the server
 *          └────── ipc_reply_receive <────┘
 *
 * Any program with a handle may call the port, so the contents of a request are
 * checked here: label, sizes and names.
 */
#include "user/lib/fs_server.h"
#include "user/lib/ipc.h"
#include "user/lib/string.h"

#define MOUNTED 1 /* label: the child that mounts reports the result */

struct service {
    const struct fs_functions *service_do;
    void *service_fs;
    bool service_ended;  /* unmounted */
    pid_t service_child; /* that mounts; 0: none */
    int service_error;   /* the result it reported */
};

/* The bytes of a message in either direction, with room for a NUL. */
static char received[FS_DATA_MAX + 4];
static char reply_bytes[FS_DATA_MAX];

/* ---- names -------------------------------------------------------------- */

static bool name_good(const char *name, size_t n)
{
    return n > 0 && n <= NAME_MAX && strlen(name) == n &&
           strchr(name, '/') == NULL && strcmp(name, ".") != 0;
}

/* The name in a request, or NULL; ".." only if `up`. */
static const char *name_in(uint32_t n, bool up)
{
    received[n] = '\0';
    if (!name_good(received, n) || (!up && strcmp(received, "..") == 0))
        return NULL;
    return received;
}

/* Both names of a rename: "from", NUL, "to". */
static const char *names_in(uint32_t n, const char **from)
{
    const char *to;
    size_t first;

    received[n] = '\0';
    first = strlen(received);
    *from = name_in((uint32_t)first, false);
    if (*from == NULL || first >= n)
        return NULL;
    to = received + first + 1;
    return name_good(to, n - first - 1) && strcmp(to, "..") != 0 ? to : NULL;
}

/* ---- requests ----------------------------------------------------------- */

#define CALL(function, missing, ...)                                           \
    (s->service_do->function == NULL                                           \
         ? (missing)                                                           \
         : s->service_do->function(s->service_fs, __VA_ARGS__))

static int lookup(const struct service *s, struct message *m, uint32_t n)
{
    const char *name = name_in(n, true);

    if (name == NULL)
        return -EINVAL;
    return s->service_do->fs_lookup(s->service_fs, m->msg_word[0], name,
                                    &m->msg_word[1]);
}

static int change(const struct service *s, struct message *m, uint32_t n)
{
    const char *name = name_in(n, false);
    uint32_t *w = m->msg_word;

    if (name == NULL)
        return -EINVAL;
    switch (IPC_LABEL(m->msg_tag)) {
    case FS_CREATE:
        return CALL(fs_create, -EROFS, w[0], name, w[1], w[2], &w[1]);
    case FS_LINK:
        return CALL(fs_link, -EROFS, w[0], name, w[1]);
    case FS_UNLINK:
        return CALL(fs_unlink, -EROFS, w[0], name, w[1], &w[1]);
    default:
        return CALL(fs_rmdir, -EROFS, w[0], name, w[1]);
    }
}

static int rename_file(const struct service *s, const struct message *m,
                       uint32_t n)
{
    const uint32_t *w = m->msg_word;
    const char *from;
    const char *to = names_in(n, &from);

    if (to == NULL)
        return -EINVAL;
    return CALL(fs_rename, -EROFS, w[0], from, w[1], to, w[2]);
}

/* Sends a structure as the reply's bytes, if there is no error. */
static int reply_struct(int r, uint32_t size, uint32_t *bytes)
{
    *bytes = r < 0 ? 0 : size;
    return MIN(r, 0);
}

/* Requests whose reply has bytes. Returns the result; *bytes gets their
 * number. */
static ssize_t execute_bytes(const struct service *s, struct message *m,
                             uint32_t *bytes)
{
    const uint32_t size = MIN(m->msg_word[2], FS_DATA_MAX);
    void *out = reply_bytes;
    uint32_t *w = m->msg_word;
    ssize_t r;

    switch (IPC_LABEL(m->msg_tag)) {
    case FS_STAT:
        memset(out, 0, sizeof(struct fs_stat));
        return reply_struct(s->service_do->fs_stat(s->service_fs, out),
                            sizeof(struct fs_stat), bytes);
    case FS_INODE:
        memset(out, 0, sizeof(struct fs_attr));
        return reply_struct(s->service_do->fs_inode(s->service_fs, w[0], out),
                            sizeof(struct fs_attr), bytes);
    case FS_NAME:
        r = CALL(fs_name, -EINVAL, w[0], out);
        return reply_struct((int)r, (uint32_t)strnlen(out, NAME_MAX), bytes);
    case FS_READ:
        r = CALL(fs_read, -EINVAL, w[0], w[1], out, size);
        break;
    default:
        r = CALL(fs_getdents, -EINVAL, w[0], &w[1], out, size);
        break;
    }
    *bytes = (uint32_t)MAX(r, 0);
    return r;
}

/* Requests about a whole file, or all files. */
static int with_file(struct service *s, const struct message *m)
{
    const uint32_t *w = m->msg_word;

    switch (IPC_LABEL(m->msg_tag)) {
    case FS_TRUNCATE:
        return CALL(fs_truncate, -EROFS, w[0], w[1]);
    case FS_RELEASE:
        return CALL(fs_release, 0, w[0]);
    case FS_SYNC:
        return CALL(fs_sync, 0, w[0]);
    default:
        s->service_ended = true;
        return s->service_do->fs_unmount == NULL
                   ? 0
                   : s->service_do->fs_unmount(s->service_fs);
    }
}

/* The report of the child that mounts; accepted from no other task. */
static int accept_report(struct service *s, const struct message *m)
{
    if (s->service_child == 0 ||
        (pid_t)IPC_PID(m->msg_client) != s->service_child)
        return -EINVAL;
    s->service_error = (int)m->msg_word[0];
    s->service_child = 0;
    return 0;
}

/* Executes a request and builds the reply. */
static void execute(struct service *s, struct message *m)
{
    uint32_t n = m->msg_tag & IPC_DATA ? m->msg_buffer->ipc_received : 0;
    uint32_t *w = m->msg_word;
    uint32_t bytes = 0;
    ssize_t r = -EINVAL;

    switch (IPC_LABEL(m->msg_tag)) {
    case FS_LOOKUP:
        r = lookup(s, m, n);
        break;
    case FS_CREATE:
    case FS_LINK:
    case FS_UNLINK:
    case FS_RMDIR:
        r = change(s, m, n);
        break;
    case FS_RENAME:
        r = rename_file(s, m, n);
        break;
    case FS_WRITE:
        r = -EFBIG; /* offsets stay below 2^31 */
        if (w[1] <= INT32_MAX - n)
            r = CALL(fs_write, -EROFS, w[0], w[1], received, n, &w[1]);
        break;
    case FS_TRUNCATE:
    case FS_RELEASE:
    case FS_SYNC:
    case FS_UNMOUNT:
        r = with_file(s, m);
        break;
    case FS_STAT:
    case FS_INODE:
    case FS_NAME:
    case FS_READ:
    case FS_GETDENTS:
        r = execute_bytes(s, m, &bytes);
        break;
    case MOUNTED:
        r = accept_report(s, m);
        break;
    }
    m->msg_tag = bytes > 0 ? IPC_DATA : 0;
    m->msg_buffer->ipc_send_size = bytes;
    w[0] = (uint32_t)r;
}

/* ---- serving ------------------------------------------------------------ */

/* mount() calls the server itself, so a child must mount and report the result.
 * 0 or -1. */
static int mount_by_child(struct service *s, int port, const char *path)
{
    struct message m = {.msg_tag = MOUNTED};
    pid_t pid = fork();

    if (pid != 0) {
        s->service_child = pid;
        return pid < 0 ? -1 : 0;
    }
    if (mount(port, path) < 0)
        m.msg_word[0] = (uint32_t)errno;
    _exit(ipc_call(port, &m) < 0);
}

/* The child has reported and exits. Whether to continue. */
static bool end_child(const struct service *s, pid_t child)
{
    int status;

    if (child != 0 && s->service_child == 0)
        waitpid(child, &status, 0);
    return s->service_error == 0;
}

/* Serves requests until the service ends. Ignores clients that cannot receive
 * their reply. */
static void serve(struct service *s, int port, struct message *m)
{
    int result = ipc_receive(port, m);

    for (;;) {
        pid_t mounter = s->service_child;

        if (result == 0 && m->msg_buffer->ipc_received_handle >= 0)
            close(m->msg_buffer->ipc_received_handle);
        if (result == 0 && m->msg_client != 0) {
            execute(s, m);
            if (s->service_ended || mounter != s->service_child) {
                ipc_reply(m->msg_client, m);
                if (s->service_ended || !end_child(s, mounter))
                    return;
                result = ipc_receive(port, m);
            } else {
                result = ipc_reply_receive(port, m);
            }
            continue;
        }
        if (result == 0 && s->service_do->fs_notified != NULL)
            s->service_do->fs_notified(s->service_fs, m->msg_word[0]);
        result = ipc_receive(port, m);
    }
}

int fs_serve(int port, const char *path, const struct fs_functions *functions,
             void *fs)
{
    struct ipc_buffer b = {
        .ipc_send = reply_bytes,
        .ipc_receive = received,
        .ipc_receive_max = FS_DATA_MAX,
    };
    struct message m = {.msg_buffer = &b};
    struct service s = {.service_do = functions, .service_fs = fs};

    if (path != NULL && mount_by_child(&s, port, path) < 0)
        return -1;
    serve(&s, port, &m);
    if (s.service_error == 0)
        return 0;
    errno = s.service_error;
    return -1;
}
