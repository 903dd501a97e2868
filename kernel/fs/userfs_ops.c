/*
 * The operations of user-space file systems (struct fs_ops), as messages.
 *
 * Each function turns its arguments into a request and checks the reply before
 * any of it reaches an inode or a program: numbers, types, counts, sizes,
 * names. An invalid reply is -EIO. File contents are copied directly between
 * the program's memory and the server's.
 *
 * inode_data records which of the successive servers the inode was last read
 * from, and whether the inode has changed since in a way that replies do not
 * report (size and links of a directory, blocks of a file). If so, the inode is
 * read again before its attributes are used. inode_data also records whether
 * the file was written since the last fsync: if the server has died since, the
 * next fsync fails, once. After a change without a reply the inode is unsure:
 * it is read again before the next request, and may then have no link.
 */
#include "kernel/abi/errno.h"
#include "kernel/fs/userfs_impl.h"
#include "kernel/lib/string.h"

/* ---- inodes ------------------------------------------------------------- */

static struct userfs *userfs(const struct inode *inode)
{
    return userfs_of(inode->inode_fs);
}

static void set_bits(struct inode *inode, uint32_t bits)
{
    inode->inode_data = (void *)((uintptr_t)inode->inode_data | bits);
}

/* Records the server that the inode was read from. Writes to an earlier server
 * are lost unless they were synced. */
static void set_read(struct inode *inode, uint32_t generation)
{
    uint32_t bits =
        (uint32_t)(uintptr_t)inode->inode_data & (USERFS_WRITTEN | USERFS_LOST);

    if (bits != 0 && generation != userfs_generation(inode))
        bits = USERFS_LOST;
    inode->inode_data = (void *)(uintptr_t)(generation << USERFS_SHIFT | bits);
}

static void inode_changed(struct inode *inode)
{
    set_bits(inode, USERFS_CHANGED);
}

/* Called after a request to change an inode. If the client was killed, the
 * server may have made the change, or may make it later. */
static void note_killed(struct inode *inode, int32_t result)
{
    if (result == -EINTR)
        inode->inode_unsure = true;
}

/* Reads a file's attributes: 0, or -EIO if the reply is invalid. */
static int read_attr(const struct inode *inode, struct fs_attr *attr)
{
    struct userfs_request c = {
        .request_words = {FS_INODE, inode->inode_number},
        .request_buffer = {.ipc_receive = attr,
                           .ipc_receive_max = sizeof(*attr)},
    };
    int32_t result = userfs_call(userfs(inode), &c);

    if (result < 0)
        return result;
    if (result != 0 || c.request_buffer.ipc_received != sizeof(*attr) ||
        attr->attr_type < FILE_REGULAR || attr->attr_type > FILE_DEVICE)
        return -EIO;
    return 0;
}

/* Stores what may change, as the server of that generation replied. */
static void take_attr(struct inode *inode, const struct fs_attr *attr,
                      uint32_t generation)
{
    inode->inode_nlink = attr->attr_nlink;
    inode->inode_size = attr->attr_size;
    if (inode->inode_type != FILE_DEVICE)
        inode->inode_blocks = attr->attr_blocks;
    inode->inode_unsure = false;
    set_read(inode, generation);
}

static int userfs_read_inode(struct inode *inode)
{
    uint32_t generation = userfs(inode)->userfs_generation;
    struct fs_attr attr;
    int error = read_attr(inode, &attr);

    if (error != 0)
        return error;
    if (attr.attr_nlink == 0)
        return -EIO;
    if (inode->inode_number == inode->inode_fs->fs_root &&
        attr.attr_type != FILE_DIRECTORY)
        return -ENOTDIR;
    inode->inode_type = (uint8_t)attr.attr_type;
    if (inode->inode_type == FILE_DEVICE)
        inode->inode_device = attr.attr_device;
    take_attr(inode, &attr, generation);
    return 0;
}

/* Whether the file of a known inode can have this number of links. Only the
 * kernel requests to remove the last link, but it may have missed the reply. */
static bool links_good(const struct inode *inode, uint32_t links)
{
    if (links != 0)
        return inode->inode_nlink != 0;
    return inode->inode_nlink == 0 ||
           (inode->inode_unsure && inode->inode_mounted == NULL);
}

/* Reads a known inode again: 0 if it is still the same file. */
static int read_again(struct inode *inode)
{
    uint32_t generation = userfs(inode)->userfs_generation;
    struct fs_attr attr;
    int error = read_attr(inode, &attr);

    if (error != 0)
        return error == -ENOENT ? -EIO : error;
    if (attr.attr_type != inode->inode_type ||
        !links_good(inode, attr.attr_nlink))
        return -EIO;
    take_attr(inode, &attr, generation);
    return 0;
}

/* Ensures that the current server knows the file, before any request. */
static int usable(struct inode *inode)
{
    if (inode->inode_state == INODE_GONE || inode->inode_fs->fs_ended)
        return -EIO;
    if (likely(userfs_generation(inode) == userfs(inode)->userfs_generation &&
               !inode->inode_unsure))
        return 0;
    return read_again(inode);
}

/* Sends a request to the server that all inodes of it were read from. */
static int32_t request_about(struct inode *inode, struct userfs_request *c)
{
    struct inode *dir = c->request_new_in;
    uint32_t asked = dir != NULL ? userfs_generation(dir) : 0;
    int32_t result;

    do {
        result = usable(inode);
        c->request_generation = userfs_generation(inode);
        for (size_t i = 0; i < ARRAY_SIZE(c->request_others); i++)
            if (result == 0 && c->request_others[i] != NULL)
                result = usable(c->request_others[i]);
        if (dir != NULL && userfs_generation(dir) != asked)
            return -EIO; /* the new server may have the name */
        if (result == 0)
            result = userfs_call(userfs(inode), c);
    } while (result == USERFS_STALE);
    return result;
}

static int userfs_refresh(struct inode *inode, bool all)
{
    int error = usable(inode);

    if (error == 0 && all && userfs_has(inode, USERFS_CHANGED))
        error = read_again(inode);
    return error;
}

/* ---- requests with names ------------------------------------------------ */

/* Sends a request about `dir` with `n` bytes of names: 0, or an error. *reply
 * gets the reply's word 1. */
static int ask_names(struct inode *dir, struct userfs_request *c,
                     const char *names, size_t n, uint32_t *reply)
{
    int32_t result;

    if (dir->inode_nlink == 0)
        return -ENOENT;
    c->request_words[0] |= IPC_DATA;
    c->request_words[1] = dir->inode_number;
    c->request_buffer.ipc_send = names;
    c->request_buffer.ipc_send_size = (uint32_t)n;
    result = request_about(dir, c);
    *reply = c->request_words[2];
    return result > 0 ? -EIO : result;
}

static int ask_name(struct inode *dir, enum fs_request label, uint32_t word1,
                    uint32_t word2, const char *name, uint32_t *reply)
{
    struct userfs_request c = {
        .request_words = {label, 0, word1, word2},
        .request_new_in = label == FS_CREATE ? dir : NULL,
        .request_once = label != FS_LOOKUP,
    };

    return ask_names(dir, &c, name, strlen(name), reply);
}

/* The same about the entry `name`, which is `inode`. */
static int ask_entry(struct inode *dir, enum fs_request label, const char *name,
                     struct inode *inode, uint32_t *reply)
{
    struct userfs_request c = {
        .request_words = {label, 0, inode->inode_number},
        .request_others = {inode},
        .request_new_in = label == FS_LINK ? dir : NULL,
        .request_once = true,
    };
    int error = ask_names(dir, &c, name, strlen(name), reply);

    inode_changed(dir);
    note_killed(inode, error);
    return error;
}

/* Whether a number can be that of an entry of `dir`: it cannot be the root or
 * `dir` itself. */
static int check_number(const struct inode *dir, const char *name,
                        uint32_t number)
{
    bool up = strcmp(name, "..") == 0;

    if (number == 0 || number == dir->inode_number ||
        (number == dir->inode_fs->fs_root && !up))
        return -EIO;
    return 0;
}

static int userfs_lookup(struct inode *dir, const char *name, uint32_t *ino)
{
    int error = ask_name(dir, FS_LOOKUP, 0, 0, name, ino);

    return error != 0 ? error : check_number(dir, name, *ino);
}

static int userfs_create(struct inode *dir, const char *name,
                         enum file_type type, uint32_t device, uint32_t *ino)
{
    int error = ask_name(dir, FS_CREATE, type, device, name, ino);

    inode_changed(dir);
    if (error == 0)
        error = check_number(dir, name, *ino);
    if (error == 0)
        inode_forget(dir->inode_fs, *ino);
    return error;
}

static int userfs_link(struct inode *dir, const char *name, struct inode *inode)
{
    uint32_t unused;
    int error = ask_entry(dir, FS_LINK, name, inode, &unused);

    if (error == 0)
        inode->inode_nlink++;
    return error;
}

static int userfs_unlink(struct inode *dir, const char *name,
                         struct inode *inode)
{
    uint32_t links;
    int error = ask_entry(dir, FS_UNLINK, name, inode, &links);

    if (error != 0)
        return error;
    if (links >= inode->inode_nlink)
        return -EIO;
    inode->inode_nlink = links;
    return 0;
}

static int userfs_rmdir(struct inode *dir, const char *name,
                        struct inode *inode)
{
    uint32_t unused;
    int error = ask_entry(dir, FS_RMDIR, name, inode, &unused);

    if (error == 0)
        inode->inode_nlink = 0;
    return error;
}

/* Updates the inode that a rename has replaced. */
static void replaced(struct inode *target)
{
    if (target->inode_type == FILE_DIRECTORY)
        target->inode_nlink = 0;
    else if (target->inode_nlink > 0)
        target->inode_nlink--;
}

static int userfs_rename(struct inode *from_dir, const char *from,
                         struct inode *to_dir, const char *to,
                         struct inode *inode, struct inode *target)
{
    struct userfs_request c = {
        .request_words = {FS_RENAME, 0, to_dir->inode_number,
                          inode->inode_number},
        .request_others = {to_dir, target},
        .request_new_in = target == NULL ? to_dir : NULL,
        .request_once = true,
    };
    char names[2 * (NAME_MAX + 1)];
    size_t n = strlen(from);
    uint32_t unused;
    int error;

    memcpy(names, from, n + 1);
    memcpy(names + n + 1, to, strlen(to));
    error = ask_names(from_dir, &c, names, n + 1 + strlen(to), &unused);
    inode_changed(from_dir);
    inode_changed(to_dir);
    if (inode->inode_type == FILE_DIRECTORY)
        inode_changed(inode);
    if (target != NULL)
        note_killed(target, error);
    if (target != NULL && error == 0)
        replaced(target);
    return error;
}

/* Whether `n` bytes are a valid name of an entry. */
static bool name_good(const char *name, size_t n)
{
    if (n == 0 || n > NAME_MAX)
        return false;
    for (size_t i = 0; i < n; i++)
        if (name[i] == '\0' || name[i] == '/')
            return false;
    return true;
}

static int userfs_name(struct inode *dir, char *name)
{
    struct userfs_request c = {
        .request_words = {FS_NAME, dir->inode_number},
        .request_buffer = {.ipc_receive = name, .ipc_receive_max = NAME_MAX},
    };
    int32_t result = request_about(dir, &c);
    uint32_t n;

    if (result < 0)
        return result;
    n = c.request_buffer.ipc_received;
    if (result != 0 || !name_good(name, n))
        return -EIO;
    name[n] = '\0';
    return 0;
}

/* ---- contents ----------------------------------------------------------- */

/* One request for bytes into `buf`; returns how many came. */
static ssize_t fetch(struct inode *inode, struct userfs_request *c, void *buf,
                     size_t n)
{
    int32_t result;

    c->request_words[1] = inode->inode_number;
    c->request_words[3] = (uint32_t)n;
    c->request_buffer.ipc_receive = buf;
    c->request_buffer.ipc_receive_max = (uint32_t)n;
    result = request_about(inode, c);
    if (result >= 0 && (uint32_t)result != c->request_buffer.ipc_received)
        return -EIO;
    return result;
}

/* Moves `n` bytes, at most FS_DATA_MAX with a request, until one moves fewer
 * than it could. Returns how many, or the error of the first request. */
static ssize_t in_pieces(struct inode *inode, uint32_t offset, char *buf,
                         size_t n,
                         ssize_t (*move)(struct inode *inode, uint32_t offset,
                                         void *buf, size_t n))
{
    size_t done = 0;

    while (done < n) {
        size_t part = MIN(n - done, FS_DATA_MAX);
        ssize_t result = move(inode, offset + done, buf + done, part);

        if (result < 0)
            return done > 0 ? (ssize_t)done : result;
        done += (size_t)result;
        if ((size_t)result < part)
            break;
    }
    return (ssize_t)done;
}

static ssize_t userfs_load(struct inode *inode, uint32_t offset, void *buf,
                           size_t n)
{
    struct userfs_request c = {.request_words = {FS_READ, 0, offset}};

    return fetch(inode, &c, buf, n);
}

static ssize_t userfs_read(struct inode *inode, uint32_t offset, void *buf,
                           size_t n)
{
    return in_pieces(inode, offset, buf, MIN(n, UINT32_MAX - offset),
                     userfs_load);
}

/* One request with bytes; returns how many were written. */
static ssize_t store(struct inode *inode, uint32_t offset, void *buf, size_t n)
{
    struct userfs_request c = {
        .request_words = {FS_WRITE | IPC_DATA, inode->inode_number, offset},
        .request_buffer = {.ipc_send = buf, .ipc_send_size = (uint32_t)n},
    };
    int32_t result = request_about(inode, &c);
    uint32_t size = c.request_words[2];

    note_killed(inode, result);
    if (result < 0)
        return result;
    if (result == 0 || (size_t)result > n || size > INT32_MAX ||
        size < offset + (uint32_t)result)
        return -EIO;
    inode->inode_size = size;
    set_bits(inode, USERFS_CHANGED | USERFS_WRITTEN);
    return result;
}

static ssize_t userfs_write(struct inode *inode, uint32_t offset,
                            const void *buf, size_t n)
{
    return in_pieces(inode, offset, (char *)buf, n, store);
}

static int userfs_truncate(struct inode *inode, uint32_t size)
{
    struct userfs_request c = {
        .request_words = {FS_TRUNCATE, inode->inode_number, size},
    };
    int32_t result = request_about(inode, &c);

    note_killed(inode, result);
    if (result < 0)
        return result;
    set_bits(inode, USERFS_CHANGED | USERFS_WRITTEN);
    if (result > 0)
        return -EIO;
    inode->inode_size = size;
    return 0;
}

/* Whether `room` bytes begin with a valid entry. */
static bool dirent_good(const struct dirent *d, size_t room)
{
    if (room < sizeof(*d) || d->d_reclen > room || d->d_reclen % 4 != 0 ||
        d->d_reclen < sizeof(*d) + d->d_namlen + 1u)
        return false;
    return d->d_ino != 0 && d->d_type >= FILE_REGULAR &&
           d->d_type <= FILE_DEVICE && name_good(d->d_name, d->d_namlen) &&
           d->d_name[d->d_namlen] == '\0';
}

static ssize_t userfs_getdents(struct inode *dir, uint32_t *offset, void *buf,
                               size_t n)
{
    struct userfs_request c = {.request_words = {FS_GETDENTS, 0, *offset}};
    ssize_t result = dir->inode_nlink == 0 ? -ENOENT : fetch(dir, &c, buf, n);
    size_t at = 0;

    if (result < 0)
        return result;
    while (at < (size_t)result) {
        const struct dirent *d = (const void *)((const char *)buf + at);

        if (!dirent_good(d, (size_t)result - at))
            return -EIO;
        at += d->d_reclen;
    }
    *offset = c.request_words[2];
    return result;
}

/* ---- release, status, sync ---------------------------------------------- */

/* Nothing waits here: a task that closes a file, or dies, does not depend on
 * its server. */
static bool userfs_evict(struct inode *inode)
{
    return (inode->inode_nlink == 0 || inode->inode_unsure) &&
           userfs_release(userfs(inode), inode);
}

static int userfs_stat(struct fs *fs, struct fs_stat *out)
{
    struct userfs_request c = {
        .request_words = {FS_STAT},
        .request_buffer = {.ipc_receive = out, .ipc_receive_max = sizeof(*out)},
    };
    int32_t result = userfs_call(userfs_of(fs), &c);

    if (result < 0)
        return result;
    if (result != 0 || c.request_buffer.ipc_received != sizeof(*out) ||
        out->fs_root != fs->fs_root)
        return -EIO;
    return 0;
}

static int userfs_sync(struct fs *fs, struct inode *inode)
{
    struct userfs_request c = {
        .request_words = {FS_SYNC, inode == NULL ? 0 : inode->inode_number},
    };
    int32_t result = inode == NULL ? userfs_call(userfs_of(fs), &c)
                                   : request_about(inode, &c);

    if (result == 0 && inode != NULL) {
        result = userfs_has(inode, USERFS_LOST) ? -EIO : 0;
        inode->inode_data = (void *)((uintptr_t)inode->inode_data &
                                     ~(USERFS_WRITTEN | USERFS_LOST));
    }
    return result > 0 ? -EIO : result;
}

/* Refuses a server that waits for its own file: it would hold the file's lock
 * and never reply. Refuses kernel tasks: they cannot be killed. */
static int userfs_enter(struct fs *fs)
{
    const struct userfs *u = userfs_of(fs);
    bool serves;

    if (task_self()->task_space == NULL)
        return -EXDEV;
    if (fs->fs_ended)
        return -EIO;
    spin_lock(&sched_lock);
    serves = u->userfs_port->port_server == task_self()->task_pid;
    spin_unlock(&sched_lock);
    return serves ? -EDEADLK : 0;
}

const struct fs_ops userfs_ops = {
    .fs_read_inode = userfs_read_inode,
    .fs_lookup = userfs_lookup,
    .fs_name = userfs_name,
    .fs_create = userfs_create,
    .fs_link = userfs_link,
    .fs_unlink = userfs_unlink,
    .fs_rmdir = userfs_rmdir,
    .fs_rename = userfs_rename,
    .fs_read = userfs_read,
    .fs_write = userfs_write,
    .fs_truncate = userfs_truncate,
    .fs_getdents = userfs_getdents,
    .fs_evict = userfs_evict,
    .fs_refresh = userfs_refresh,
    .fs_stat = userfs_stat,
    .fs_sync = userfs_sync,
    .fs_enter = userfs_enter,
    .fs_free = userfs_free,
};
