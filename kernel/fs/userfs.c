/*
 * Remote file systems as objects: mounted, served by one port after the other,
 * unmounted.
 *
 *     mount: FS_STAT ──> struct remote ──> root inode (kept) ──> fs_mount
 *
 *     remote_ask ──> port lives ──> message ──> answer
 *                      │ ^            │ the server dies meanwhile
 *                 dead v │            v
 *                 remote_waiting <────┘    until another port is mounted here,
 *                                          or the patience is at an end
 *
 * A request waits in the task that makes it, with the inode locked: others who
 * want that file wait behind it. As they wait for a mutex they cannot be killed
 * so long; the one in front can, and so can the server.
 */
#include "drivers/pit.h"
#include "kernel/abi/errno.h"
#include "kernel/fs/userfs_impl.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/task/cache.h"
#include "mm/kmem.h"

#define TRIES     3    /* with servers that die of the request */
#define ERROR_MAX 4095 /* no error number is larger */

static struct kmem_cache *remote_cache;

static void remote_ctor(void *obj, size_t size)
{
    struct remote *r = obj;

    memset(r, 0, size);
    r->remote_fs.fs_ops = &remote_ops;
    r->remote_fs.fs_name = r->remote_kind;
    mutex_init(&r->remote_fs.fs_rename, "rename", MUTEX_RANK_RENAME);
    wait_queue_init(&r->remote_waiting, "file server");
}

void remote_init(void)
{
    remote_cache =
        cache_create("remote", sizeof(struct remote), 0, remote_ctor, NULL);
}

static bool is_remote(const struct fs *fs)
{
    return fs->fs_ops == &remote_ops;
}

/* ---- one message -------------------------------------------------------- */

/* A task of the kernel has nobody who could kill it, so it does not wait for
 * ever. */
static uint32_t patience(void)
{
    return task_self()->task_space == NULL ? REMOTE_PATIENCE_MS : 0;
}

/* What a call that failed means to whoever wanted something of a file. */
static int32_t failure(int error)
{
    switch (error) {
    case -EPIPE:
    case -EINTR:
    case -EDEADLK:
    case -EFAULT:
    case -ENOMEM:
        return error;
    default:
        return -EIO;
    }
}

/* The result that an answer brings. */
static int32_t result_of(const struct remote_call *c)
{
    int32_t result = (int32_t)c->call_words[1];

    if (IPC_LABEL(c->call_words[0]) != 0 || result < -ERROR_MAX)
        return -EIO;
    return result;
}

static int send(struct port *port, struct remote_call *c, bool *received)
{
    return ipc_call_kernel(port, c->call_words, &c->call_buffer, 0, patience(),
                           received);
}

/* ---- the port that serves now ------------------------------------------- */

/* Waits for another server; the time runs from when the death was noticed, for
 * all alike. sched_lock held. */
static int wait_for_successor(struct remote *r)
{
    uint64_t now = timer_ms();
    int error;

    if (r->remote_fs.fs_covers == NULL) /* not mounted yet, or any more */
        return -EPIPE;
    if (r->remote_lost_ms == 0)
        r->remote_lost_ms = now + 1;
    if (now > r->remote_lost_ms + REMOTE_PATIENCE_MS)
        return -EIO;
    error = wait_queue_block(
        &r->remote_waiting, true,
        (uint32_t)(r->remote_lost_ms + REMOTE_PATIENCE_MS + 1 - now));
    return error == -ETIMEDOUT ? 0 : error;
}

/* A port that lives, and is the one meant, with a reference. */
static int get_port(struct remote *r, uint32_t servers, struct port **port)
{
    int error = 0;

    spin_lock(&sched_lock);
    while (error == 0 && r->remote_port->port_holders == 0)
        error = wait_for_successor(r);
    if (error == 0 && servers != 0 && servers != r->remote_servers)
        error = REMOTE_ANOTHER;
    *port = r->remote_port;
    if (error == 0)
        object_get(&(*port)->port_object);
    r->remote_requests++;
    spin_unlock(&sched_lock);
    return error;
}

static int ask_once(struct remote *r, struct remote_call *c, bool *received)
{
    struct port *port;
    int error = get_port(r, c->call_servers, &port);

    if (error != 0)
        return error;
    error = send(port, c, received);
    object_put(&port->port_object);
    return error;
}

/* A message that nobody had received can always be sent again. */
int32_t remote_ask(struct remote *r, struct remote_call *c)
{
    uint32_t words[4];
    bool received, again;
    int error;

    memcpy(words, c->call_words, sizeof(words));
    do {
        received = false;
        memcpy(c->call_words, words, sizeof(words));
        error = ask_once(r, c, &received);
        again = !received || (!c->call_once && ++c->call_tries < TRIES);
    } while (error == -EPIPE && again && r->remote_fs.fs_covers != NULL);
    if (error == 0 || error == REMOTE_ANOTHER)
        return error == 0 ? result_of(c) : error;
    return error == -EPIPE ? -EIO : failure(error);
}

void remote_tell(struct remote *r, struct remote_call *c)
{
    struct port *port = NULL;
    bool received;

    spin_lock(&sched_lock);
    if (c->call_servers == r->remote_servers) {
        port = (struct port *)object_get(&r->remote_port->port_object);
        r->remote_requests++;
    }
    spin_unlock(&sched_lock);
    if (port == NULL)
        return;
    ipc_call_kernel(port, c->call_words, &c->call_buffer, IPC_PATIENT,
                    REMOTE_TELL_MS, &received);
    object_put(&port->port_object);
}

/* ---- mounting ----------------------------------------------------------- */

/* A word that can stand in a table. */
static bool kind_good(const char *kind)
{
    size_t n = strnlen(kind, FS_NAME_MAX + 1);

    for (size_t i = 0; i < n; i++)
        if (kind[i] <= ' ' || kind[i] > '~')
            return false;
    return n > 0 && n <= FS_NAME_MAX;
}

int remote_read_stat(struct port *port, struct fs_stat *out)
{
    struct remote_call c = {
        .call_words = {FS_STAT},
        .call_buffer = {.ipc_receive = out, .ipc_receive_max = sizeof(*out)},
    };
    bool received;
    int error = send(port, &c, &received);
    int32_t result = error != 0 ? failure(error) : result_of(&c);

    if (result < 0)
        return result;
    if (result != 0 || c.call_buffer.ipc_received != sizeof(*out) ||
        out->fs_root == 0 || !kind_good(out->fs_kind))
        return -EIO;
    return 0;
}

/* Gives up a file system that nobody sees (any more). */
static void discard(struct remote *r)
{
    inode_put(r->remote_fs.fs_root_inode);
    inode_flush(&r->remote_fs);
    r->remote_fs.fs_root_inode = NULL;
    object_put(&r->remote_port->port_object);
    kmem_cache_free(remote_cache, r);
}

/* A new file system, which keeps a reference to its root. */
static int create(struct port *port, const struct fs_stat *st,
                  struct remote **out)
{
    struct remote *r = kmem_cache_alloc(remote_cache, KM_NOSLEEP);
    int error;

    if (r == NULL)
        return -ENOMEM;
    r->remote_fs.fs_id = fs_new_id();
    r->remote_fs.fs_root = st->fs_root;
    r->remote_port = (struct port *)object_get(&port->port_object);
    r->remote_lost_ms = 0;
    r->remote_servers = 1;
    r->remote_requests = 1;
    memcpy(r->remote_kind, st->fs_kind, sizeof(r->remote_kind));
    error = inode_get(&r->remote_fs, st->fs_root, &r->remote_fs.fs_root_inode);
    if (error != 0) {
        r->remote_fs.fs_root_inode = NULL;
        discard(r);
        return error;
    }
    *out = r;
    return 0;
}

/* Whether a port may serve a remote file system from now on. If so, nobody else
 * may meanwhile. */
static bool begin_change(struct remote *r, const struct port *port,
                         const struct fs_stat *st)
{
    bool may;

    spin_lock(&sched_lock);
    may = r->remote_port->port_holders == 0 && port->port_holders != 0 &&
          st->fs_root == r->remote_fs.fs_root &&
          strcmp(st->fs_kind, r->remote_kind) == 0 && !r->remote_changing;
    if (may)
        r->remote_changing = true;
    spin_unlock(&sched_lock);
    return may;
}

/* Inodes that somebody uses stay, but for those of files that the old server
 * knew by number alone; each is asked for once more when it is used
 * (userfs_ops.c). The others go: a file that never got onto the medium has left
 * its number to another. */
static int take_over(struct remote *r, struct port *port,
                     const struct fs_stat *st)
{
    struct port *old;

    if (!begin_change(r, port, st))
        return -EBUSY;
    old = r->remote_port;
    inode_flush(&r->remote_fs);
    inode_forget_unlinked(&r->remote_fs);
    spin_lock(&sched_lock);
    r->remote_port = (struct port *)object_get(&port->port_object);
    r->remote_lost_ms = 0;
    r->remote_servers++;
    r->remote_changing = false;
    wait_queue_wake_locked(&r->remote_waiting, UINT32_MAX);
    spin_unlock(&sched_lock);
    object_put(&old->port_object);
    return 0;
}

int remote_mount(struct port *port, struct inode *dir)
{
    struct fs_stat st;
    struct remote *r;
    int error;

    if (dir->inode_type != FILE_DIRECTORY)
        return -ENOTDIR;
    error = remote_read_stat(port, &st);
    if (error != 0)
        return error;
    if (is_remote(dir->inode_fs) && dir->inode_number == dir->inode_fs->fs_root)
        return take_over(remote_of(dir->inode_fs), port, &st);
    error = create(port, &st, &r);
    if (error != 0)
        return error;
    error = fs_mount(&r->remote_fs, dir);
    if (error != 0)
        discard(r);
    return error;
}

/* ---- unmounting --------------------------------------------------------- */

/* Once it is uncovered nobody can get in any more, and nobody is in it. */
int remote_unmount(struct inode *root)
{
    struct remote_call c = {.call_words = {FS_UNMOUNT}};
    struct fs *fs = root->inode_fs;
    int32_t result = -EINVAL;
    bool lives;

    if (is_remote(fs) && root->inode_number == fs->fs_root)
        result = fs_unmount_root(root, 2);
    if (result != 0) {
        inode_put(root);
        return result;
    }
    lives = remote_of(fs)->remote_port->port_holders != 0;
    result = lives ? remote_ask(remote_of(fs), &c) : 0;
    inode_put(root);
    discard(remote_of(fs));
    return MIN(result, 0);
}

/* ---- looking ------------------------------------------------------------ */

bool remote_look(struct fs *fs, struct remote_stat *out)
{
    const struct remote *r = remote_of(fs);
    const struct task *server;

    if (!is_remote(fs))
        return false;
    *out = (struct remote_stat){.stat_lives = false};
    spin_lock(&sched_lock);
    out->stat_lives = r->remote_port->port_holders != 0;
    out->stat_server = r->remote_port->port_server;
    out->stat_port = r->remote_port->port_number;
    out->stat_servers = r->remote_servers;
    out->stat_requests = r->remote_requests;
    server = task_find(out->stat_server);
    if (server != NULL)
        memcpy(out->stat_name, server->task_name, sizeof(out->stat_name));
    spin_unlock(&sched_lock);
    return true;
}

static const char *check(const struct remote *r)
{
    const struct fs *fs = &r->remote_fs;
    const struct inode *root = fs->fs_root_inode;

    if (root == NULL || root->inode_fs != fs ||
        root->inode_number != fs->fs_root || root->inode_refs == 0)
        return "a remote file system does not keep its root";
    if (fs->fs_covers == NULL || fs->fs_covers->inode_mounted != fs)
        return "a remote file system does not cover what it says";
    if (r->remote_port->port_object.object_type != &port_type ||
        r->remote_port->port_object.object_refs == 0)
        return "the port of a remote file system is none";
    if (fs->fs_name != r->remote_kind || !kind_good(r->remote_kind))
        return "the kind of a remote file system is no word";
    return NULL;
}

const char *remote_verify(const char **where)
{
    static char text[16];
    struct inode *on, *root;
    const char *wrong = NULL;
    struct fs *fs;
    uint32_t last = 0;

    while (wrong == NULL && (fs = fs_next(last, &on, &root)) != NULL) {
        last = fs->fs_id;
        if (is_remote(fs))
            wrong = check(remote_of(fs));
        inode_put(root);
        inode_put(on);
    }
    snprintf(text, sizeof(text), "mount %u", (unsigned)last);
    *where = text;
    return wrong;
}
