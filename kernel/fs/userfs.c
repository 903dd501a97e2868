/*
 * User-space file systems: mounting, messages to the server, replacement of a
 * dead server, unmounting.
 *
 *     mount: FS_STAT ──> struct userfs ──> root inode (kept) ──> fs_mount
 *
 *     userfs_call ──> port lives ──> message ──> reply
 *                      │ ^            │ the server dies meanwhile
 *                 dead v │            v
 *                 userfs_waiting <────┘    until another port is mounted here,
 *                                          or the time limit has passed
 *
 * The task that makes a request waits with the inode locked. Other tasks that
 * need the file wait for the mutex. All of them can be killed.
 *
 * A file that is no longer in use leaves its inode in userfs_released. The next
 * task that calls the server sends the releases first, so that a task that
 * closes a file never waits for a server.
 */
#include "drivers/pit.h"
#include "kernel/abi/errno.h"
#include "kernel/fs/userfs_impl.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/task/cache.h"
#include "mm/kmem.h"

#define TRIES     3    /* servers that may die during one request */
#define ERROR_MAX 4095 /* error numbers are at most this */

static struct kmem_cache *userfs_cache;

static void userfs_ctor(void *obj, size_t size)
{
    struct userfs *u = obj;

    memset(u, 0, size);
    u->userfs_fs.fs_ops = &userfs_ops;
    u->userfs_fs.fs_name = u->userfs_kind;
    mutex_init(&u->userfs_fs.fs_rename, "rename", MUTEX_RANK_RENAME);
    wait_queue_init(&u->userfs_waiting, "file-server");
    list_init(&u->userfs_released);
}

void userfs_init(void)
{
    userfs_cache =
        cache_create("userfs", sizeof(struct userfs), 0, userfs_ctor, NULL);
}

static bool is_userfs(const struct fs *fs)
{
    return fs->fs_ops == &userfs_ops;
}

/* ---- one message -------------------------------------------------------- */

/* The error for the caller of a file operation after a failed call. */
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

/* The result in a reply. */
static int32_t result_of(const struct userfs_request *c)
{
    int32_t result = (int32_t)c->request_words[1];

    if (IPC_LABEL(c->request_words[0]) != 0 || result < -ERROR_MAX)
        return -EIO;
    return result;
}

static int send_request(struct port *port, struct userfs_request *c,
                        bool *received)
{
    return ipc_call_kernel(port, c->request_words, &c->request_buffer,
                           received);
}

/* ---- the current port --------------------------------------------------- */

/* Waits for a new server. The time limit counts from when the death was
 * noticed, for all waiters alike. */
static int wait_for_successor(struct userfs *u)
{
    uint64_t now = timer_ms();
    uint32_t left;
    int error;

    spin_assert_held(&sched_lock);
    if (u->userfs_fs.fs_covers == NULL) /* not mounted yet, or no longer */
        return -EPIPE;
    if (u->userfs_lost_ms == 0)
        u->userfs_lost_ms = now + 1;
    if (now > u->userfs_lost_ms + USERFS_PATIENCE_MS)
        return -EIO;
    left = (uint32_t)(u->userfs_lost_ms + USERFS_PATIENCE_MS + 1 - now);
    error = wait_queue_block(&u->userfs_waiting, true, left);
    return error == -ETIMEDOUT ? 0 : error;
}

/* Sends a request to the live server: USERFS_STALE unless it is the one that
 * the request is for. */
static int ask_once(struct userfs *u, struct userfs_request *c, bool *received)
{
    uint32_t generation = c->request_generation;
    struct port *port;
    int error = 0;

    spin_lock(&sched_lock);
    while (error == 0 && u->userfs_port->port_holders == 0)
        error = wait_for_successor(u);
    if (error == 0 && generation != 0 && generation != u->userfs_generation)
        error = USERFS_STALE;
    port = u->userfs_port;
    if (error == 0) {
        object_get(&port->port_object);
        u->userfs_requests++;
    }
    spin_unlock(&sched_lock);
    if (error != 0)
        return error;
    error = send_request(port, c, received);
    object_put(&port->port_object);
    return error;
}

/* ---- releases ----------------------------------------------------------- */

/* A server that has died has lost its files without a link. */
bool userfs_release(struct userfs *u, struct inode *inode)
{
    bool listed;

    spin_lock(&sched_lock);
    listed = u->userfs_fs.fs_covers != NULL &&
             u->userfs_port->port_holders != 0 &&
             userfs_generation(inode) == u->userfs_generation;
    if (listed)
        list_insert_before(&u->userfs_released, &inode->inode_lru_link);
    spin_unlock(&sched_lock);
    return listed;
}

/* Removes the first release from the list. NULL: there is none. */
static struct inode *next_release(struct userfs *u)
{
    struct inode *inode = NULL;

    if (likely(list_empty(&u->userfs_released)))
        return NULL;
    spin_lock(&sched_lock);
    if (!list_empty(&u->userfs_released)) {
        inode =
            list_entry(u->userfs_released.next, struct inode, inode_lru_link);
        list_remove(&inode->inode_lru_link);
        list_init(&inode->inode_lru_link);
    }
    spin_unlock(&sched_lock);
    return inode;
}

/* Whether the server must release the file of an unsure inode: the file has no
 * link, and no newer inode has its number (that one would be released itself).
 * 1, 0, or an error of ask_once. */
static int is_unlinked(struct userfs *u, const struct inode *inode)
{
    struct fs_attr attr = {.attr_nlink = 0};
    struct userfs_request c = {
        .request_words = {FS_INODE, inode->inode_number},
        .request_buffer = {.ipc_receive = &attr,
                           .ipc_receive_max = sizeof(attr)},
        .request_generation = userfs_generation(inode),
    };
    bool received;
    int error = ask_once(u, &c, &received);

    if (error != 0 && (!received || error == -EINTR))
        return error;
    return error == 0 && result_of(&c) == 0 &&
           c.request_buffer.ipc_received == sizeof(attr) &&
           attr.attr_nlink == 0 &&
           !inode_known(&u->userfs_fs, inode->inode_number);
}

/* Stops at one that the server may still receive later. */
static void send_releases(struct userfs *u)
{
    struct inode *inode;

    while ((inode = next_release(u)) != NULL) {
        struct userfs_request c = {
            .request_words = {FS_RELEASE, inode->inode_number},
            .request_generation = userfs_generation(inode),
        };
        bool received = false;
        int error = inode->inode_nlink != 0 ? is_unlinked(u, inode) : 1;

        if (error == 1)
            error = ask_once(u, &c, &received);
        if (error < 0 && !received && error != -EPIPE &&
            error != USERFS_STALE) {
            spin_lock(&sched_lock);
            list_insert_after(&u->userfs_released, &inode->inode_lru_link);
            spin_unlock(&sched_lock);
            break;
        }
        inode_free(inode);
    }
}

/* ---- requests ----------------------------------------------------------- */

/* A message that was not received can always be sent again. */
int32_t userfs_call(struct userfs *u, struct userfs_request *c)
{
    uint32_t words[4];
    bool received, again;
    int error;

    send_releases(u);
    memcpy(words, c->request_words, sizeof(words));
    do {
        received = false;
        memcpy(c->request_words, words, sizeof(words));
        error = ask_once(u, c, &received);
        again = !received || (!c->request_once && ++c->request_tries < TRIES);
    } while (error == -EPIPE && again && u->userfs_fs.fs_covers != NULL);
    if (error == 0 || error == USERFS_STALE)
        return error == 0 ? result_of(c) : error;
    return error == -EPIPE ? -EIO : failure(error);
}

/* ---- mounting ----------------------------------------------------------- */

/* Whether the kind is one printable word, fit for a table. */
static bool kind_good(const char *kind)
{
    size_t n = strnlen(kind, FS_NAME_MAX + 1);

    for (size_t i = 0; i < n; i++)
        if (kind[i] <= ' ' || kind[i] > '~')
            return false;
    return n > 0 && n <= FS_NAME_MAX;
}

void userfs_free(struct fs *fs)
{
    struct userfs *u = userfs_of(fs);
    struct inode *inode;

    while ((inode = next_release(u)) != NULL)
        inode_free(inode);
    object_put(&u->userfs_port->port_object);
    kmem_cache_free(userfs_cache, u);
}

/* Once a port may take over, no other one may meanwhile. Inodes in use stay and
 * are each read again at their next use (userfs_ops.c), except those without
 * links, which only the old server knew. Unused inodes are dropped: the number
 * of a file that was never written to disk may belong to another file now. */
static int take_over(struct userfs *u, struct port *port,
                     const struct fs_stat *st)
{
    struct port *old;
    bool may;

    if (!fs_may_change(&u->userfs_fs))
        return -EPERM;
    spin_lock(&sched_lock);
    may = !u->userfs_fs.fs_ended && u->userfs_port->port_holders == 0 &&
          port->port_holders != 0 && st->fs_root == u->userfs_fs.fs_root &&
          strcmp(st->fs_kind, u->userfs_kind) == 0 && !u->userfs_changing;
    if (may)
        u->userfs_changing = true;
    spin_unlock(&sched_lock);
    if (!may)
        return -EBUSY;
    old = u->userfs_port;
    inode_flush(&u->userfs_fs);
    inode_drop_unlinked(&u->userfs_fs);
    spin_lock(&sched_lock);
    u->userfs_port = (struct port *)object_get(&port->port_object);
    u->userfs_lost_ms = 0;
    u->userfs_generation++;
    u->userfs_changing = false;
    spin_unlock(&sched_lock);
    wait_queue_wake_all(&u->userfs_waiting);
    object_put(&old->port_object);
    return 0;
}

int userfs_mount(struct port *port, struct inode *dir)
{
    struct fs_stat st;
    struct userfs_request c = {
        .request_words = {FS_STAT},
        .request_buffer = {.ipc_receive = &st, .ipc_receive_max = sizeof(st)},
    };
    struct userfs *u;
    int32_t result;
    bool received;
    int error;

    if (dir->inode_type != FILE_DIRECTORY)
        return -ENOTDIR;
    error = send_request(port, &c, &received);
    result = error != 0 ? failure(error) : result_of(&c);
    if (result < 0)
        return result;
    if (result != 0 || c.request_buffer.ipc_received != sizeof(st) ||
        st.fs_root == 0 || !kind_good(st.fs_kind))
        return -EIO;
    if (is_userfs(dir->inode_fs) && dir->inode_number == dir->inode_fs->fs_root)
        return take_over(userfs_of(dir->inode_fs), port, &st);
    u = kmem_cache_alloc(userfs_cache, KM_NOSLEEP);
    if (u == NULL)
        return -ENOMEM;
    u->userfs_fs.fs_id = fs_new_id();
    u->userfs_fs.fs_root = st.fs_root;
    u->userfs_port = (struct port *)object_get(&port->port_object);
    u->userfs_lost_ms = 0;
    u->userfs_generation = 1;
    u->userfs_requests = 1;
    memcpy(u->userfs_kind, st.fs_kind, sizeof(u->userfs_kind));
    error = fs_mount(&u->userfs_fs, dir);
    if (error != 0)
        inode_end(&u->userfs_fs);
    return error;
}

/* ---- unmounting --------------------------------------------------------- */

/* A file system that is unmounted has no users and gets none. */
int userfs_unmount(struct inode *root)
{
    struct userfs_request c = {.request_words = {FS_UNMOUNT}};
    struct fs *fs = root->inode_fs;
    int32_t result = -EINVAL;
    bool lives;

    if (is_userfs(fs) && root->inode_number == fs->fs_root)
        result = fs_may_change(fs) ? fs_unmount(root, false) : -EPERM;
    if (result != 0) {
        inode_put(root);
        return result;
    }
    lives = userfs_of(fs)->userfs_port->port_holders != 0;
    result = lives ? userfs_call(userfs_of(fs), &c) : 0;
    inode_put(root);
    return MIN(result, 0);
}

int userfs_unmount_forced(struct inode *root)
{
    int error = fs_unmount(root, true);

    if (error == 0)
        wait_queue_wake_all(&userfs_of(root->inode_fs)->userfs_waiting);
    inode_put(root);
    return error;
}

void userfs_unmount_session(uint32_t number)
{
    struct inode *root;
    uint32_t last = 0;
    struct fs *fs;

    while ((fs = fs_next(last, NULL, &root)) != NULL) {
        last = fs->fs_id;
        if (fs->fs_owner == number)
            userfs_unmount_forced(root);
        else
            inode_put(root);
    }
}

/* ---- snapshots and checks ----------------------------------------------- */

bool userfs_snapshot(struct fs *fs, struct userfs_stat *out)
{
    const struct userfs *u = userfs_of(fs);
    const struct task *server;

    if (!is_userfs(fs))
        return false;
    *out = (struct userfs_stat){.stat_lives = false};
    spin_lock(&sched_lock);
    out->stat_lives = u->userfs_port->port_holders != 0;
    out->stat_server = u->userfs_port->port_server;
    out->stat_port = u->userfs_port->port_number;
    out->stat_servers = u->userfs_generation;
    out->stat_requests = u->userfs_requests;
    server = task_find(out->stat_server);
    if (server != NULL)
        memcpy(out->stat_name, server->task_name, sizeof(out->stat_name));
    spin_unlock(&sched_lock);
    return true;
}

/* Under sched_lock: a new server may replace the port meanwhile. */
static bool port_good(struct userfs *u)
{
    bool good;

    spin_lock(&sched_lock);
    good = u->userfs_port->port_object.object_type == &port_type &&
           u->userfs_port->port_object.object_refs != 0;
    spin_unlock(&sched_lock);
    return good;
}

static const char *userfs_check(struct userfs *u)
{
    const struct fs *fs = &u->userfs_fs;
    const struct inode *root = fs->fs_root_inode;

    if (root == NULL || root->inode_fs != fs ||
        root->inode_number != fs->fs_root || root->inode_refs == 0)
        return "a user-space file system does not keep its root";
    if (fs->fs_covers == NULL || fs->fs_covers->inode_mounted != fs)
        return "a user-space file system is not mounted on its inode";
    if (!port_good(u))
        return "a user-space file system has no port";
    if (fs->fs_name != u->userfs_kind || !kind_good(u->userfs_kind))
        return "the kind of a user-space file system is not a word";
    return NULL;
}

const char *userfs_verify(const char **where)
{
    static char text[16];
    const char *wrong = NULL;
    struct inode *root;
    struct fs *fs;
    uint32_t last = 0;

    while (wrong == NULL && (fs = fs_next(last, NULL, &root)) != NULL) {
        last = fs->fs_id;
        if (is_userfs(fs))
            wrong = userfs_check(userfs_of(fs));
        inode_put(root);
    }
    snprintf(text, sizeof(text), "mount %u", (unsigned)last);
    *where = text;
    return wrong;
}
