/*
 * The RAM file system (kernel/fs/ramfs.h): nodes, directories, and its struct
 * fs_ops. File contents are in ramfs_file.c.
 *
 * Entries of all directories are in one hash table, so that a lookup does not
 * search a directory's entries one by one. They are also in
 * a list per directory in the order of their cookies. Cookies only grow, so a
 * getdents position stays valid whatever is removed. An operation on a
 * directory holds its inode's mutex; ramfs_lock guards the tables, which all
 * directories share.
 */
#include "kernel/fs/ramfs.h"
#include "kernel/abi/errno.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/vm/user.h"
#include "kernel/task/cache.h"
#include "kernel/object/session.h"
#include "mm/buddy.h"
#include "mm/kmem.h"
#include "mm/segkmem.h"

#define FIRST_COOKIE 2 /* "." is 0 and ".." is 1 */

struct spinlock ramfs_lock = SPINLOCK_INIT("ramfs", LOCK_RANK_RAMFS);
uint32_t ramfs_last_number;

static struct hash nodes;
static struct hash entries;
static struct kmem_cache *node_cache;
static struct kmem_cache *entry_cache;

/* ---- nodes -------------------------------------------------------------- */

/* The node of that number, or NULL. */
static struct ramfs_node *find_node(uint32_t number)
{
    struct hash_link *l = *hash_bucket(&nodes, hash_mix(hash_key, number));

    spin_assert_held(&ramfs_lock);
    for (; l != NULL; l = l->link_next) {
        struct ramfs_node *node =
            container_of(l, struct ramfs_node, node_hash_link);

        if (node->node_number == number)
            return node;
    }
    return NULL;
}

/* Gives a new node a number that is not 0 and no other's. */
static void number_node(struct ramfs_node *node)
{
    spin_lock(&ramfs_lock);
    do
        ramfs_last_number++;
    while (ramfs_last_number == 0 || find_node(ramfs_last_number) != NULL);
    node->node_number = ramfs_last_number;
    node->node_hash_link.link_hash = hash_mix(hash_key, node->node_number);
    hash_insert(&nodes, &node->node_hash_link);
    spin_unlock(&ramfs_lock);
}

static void node_free(struct ramfs_node *node)
{
    spin_lock(&ramfs_lock);
    hash_remove(&nodes, &node->node_hash_link);
    spin_unlock(&ramfs_lock);
    session_refund_number(node->node_session, SESSION_FILES, 1);
    kmem_cache_free(node_cache, node);
}

/* A node without links yet, charged to the running task's session. 0, -ENOSPC
 * (the session may have no more), -ENOMEM. */
static int node_create(enum file_type type, uint32_t device,
                       struct ramfs_node **out)
{
    struct ramfs_node *node;

    if (!session_charge(session_self(), SESSION_FILES, 1))
        return -ENOSPC;
    node = kmem_cache_alloc(node_cache, KM_NOSLEEP);
    if (node == NULL) {
        session_refund(session_self(), SESSION_FILES, 1);
        return -ENOMEM;
    }
    *node = (struct ramfs_node){.node_type = (uint8_t)type};
    node->node_session = session_number(session_self());
    if (type == FILE_DIRECTORY) {
        list_init(&node->dir_entries);
        node->dir_cookie = FIRST_COOKIE;
    } else if (type == FILE_DEVICE) {
        node->node_device = device;
    }
    number_node(node);
    *out = node;
    return 0;
}

static bool is_dir(const struct ramfs_node *node)
{
    return node->node_type == FILE_DIRECTORY;
}

/* ---- entries ------------------------------------------------------------ */

typedef uint32_t word_t __attribute__((may_alias, aligned(1)));

/* Of directory and name, a word at a time where possible. */
static uint32_t entry_hash(const struct ramfs_node *dir, const char *name,
                           size_t n)
{
    uint32_t hash = hash_mix(hash_key, dir->node_number);

    for (; n >= sizeof(word_t); n -= sizeof(word_t), name += sizeof(word_t))
        hash = hash_mix(hash, *(const word_t *)name);
    for (; n > 0; n--, name++)
        hash = hash_mix(hash, (uint8_t)*name);
    return hash;
}

static struct ramfs_entry *find_ramfs_entry(const struct ramfs_node *dir,
                                            const char *name, size_t n)
{
    uint32_t hash = entry_hash(dir, name, n);
    struct ramfs_entry *e = NULL;
    struct hash_link *l;

    spin_lock(&ramfs_lock);
    for (l = *hash_bucket(&entries, hash); l != NULL; l = l->link_next) {
        e = container_of(l, struct ramfs_entry, entry_hash_link);
        if (l->link_hash == hash && e->entry_dir == dir &&
            memcmp(e->entry_name, name, n) == 0 && e->entry_name[n] == '\0')
            break;
    }
    spin_unlock(&ramfs_lock);
    return l == NULL ? NULL : e;
}

struct ramfs_node *ramfs_find(const struct ramfs_node *dir, const char *name,
                              size_t n)
{
    const struct ramfs_entry *e = find_ramfs_entry(dir, name, n);

    return e == NULL ? NULL : e->entry_node;
}

/* Inserts an entry into a directory under a name and counts its link. A
 * directory has two links of its own and is one link of its parent. */
static void attach_entry(struct ramfs_entry *e, struct ramfs_node *dir,
                         const char *name, size_t n)
{
    struct ramfs_node *node = e->entry_node;

    spin_assert_held(&ramfs_lock);
    memcpy(e->entry_name, name, n);
    e->entry_name[n] = '\0';
    e->entry_dir = dir;
    e->entry_cookie = dir->dir_cookie++;
    e->entry_hash_link.link_hash = entry_hash(dir, name, n);
    hash_insert(&entries, &e->entry_hash_link);
    list_insert_before(&dir->dir_entries, &e->entry_link);
    node->node_nlink++;
    if (is_dir(node)) {
        node->node_nlink++;
        node->dir_parent = dir;
        node->dir_entry = e;
        dir->node_nlink++;
    }
}

/* Removes an entry. */
static void detach_entry(struct ramfs_entry *e)
{
    struct ramfs_node *node = e->entry_node;

    spin_assert_held(&ramfs_lock);
    hash_remove(&entries, &e->entry_hash_link);
    list_remove(&e->entry_link);
    node->node_nlink--;
    if (is_dir(node)) {
        node->node_nlink--;
        e->entry_dir->node_nlink--;
    }
}

/* 0, or why a directory can have no more entries. */
static int check_room(const struct ramfs_node *dir)
{
    if (dir->node_nlink == 0)
        return -ENOENT;
    return dir->dir_cookie == UINT32_MAX ? -ENOSPC : 0;
}

/* Creates an entry for a node. */
static int add_entry(struct ramfs_node *dir, const char *name, size_t n,
                     struct ramfs_node *node)
{
    struct ramfs_entry *e;
    int r = check_room(dir);

    if (r < 0)
        return r;
    e = kmem_cache_alloc(entry_cache, KM_NOSLEEP);
    if (e == NULL)
        return -ENOMEM;
    e->entry_node = node;
    spin_lock(&ramfs_lock);
    attach_entry(e, dir, name, n);
    spin_unlock(&ramfs_lock);
    return 0;
}

static void unlink_entry(struct ramfs_entry *e)
{
    spin_lock(&ramfs_lock);
    detach_entry(e);
    spin_unlock(&ramfs_lock);
    kmem_cache_free(entry_cache, e);
}

/* Creates a node with one entry. */
static int add_node(struct ramfs_node *dir, const char *name, size_t n,
                    enum file_type type, uint32_t device,
                    struct ramfs_node **out)
{
    int r = node_create(type, device, out);

    if (r < 0)
        return r;
    r = add_entry(dir, name, n, *out);
    if (r < 0)
        node_free(*out);
    return r;
}

int ramfs_obtain(struct ramfs_node *dir, const char *name, size_t n,
                 enum file_type type, struct ramfs_node **out)
{
    const struct ramfs_entry *e = find_ramfs_entry(dir, name, n);

    if (e == NULL)
        return add_node(dir, name, n, type, 0, out);
    *out = e->entry_node;
    return 0;
}

/* ---- operations --------------------------------------------------------- */

/* Copies a node's link count to its inode after a change. Under ramfs_lock,
 * because a rename of the file may be running. */
static void sync_links(struct inode *inode)
{
    spin_lock(&ramfs_lock);
    inode->inode_nlink = ramfs_node_of(inode)->node_nlink;
    spin_unlock(&ramfs_lock);
}

static int ramfs_read_inode(struct inode *inode)
{
    struct ramfs_node *node;

    spin_lock(&ramfs_lock);
    node = find_node(inode->inode_number);
    spin_unlock(&ramfs_lock);
    inode->inode_data = node;
    inode->inode_type = node->node_type;
    inode->inode_size = node->node_size;
    inode->inode_nlink = node->node_nlink;
    if (node->node_type == FILE_DEVICE)
        inode->inode_device = node->node_device;
    return 0;
}

static int ramfs_lookup(struct inode *dir, const char *name, uint32_t *ino)
{
    const struct ramfs_node *node = ramfs_node_of(dir);

    if (node->node_nlink == 0)
        return -ENOENT;
    node = strcmp(name, "..") == 0 ? node->dir_parent
                                   : ramfs_find(node, name, strlen(name));
    if (node == NULL)
        return -ENOENT;
    *ino = node->node_number;
    return 0;
}

static int ramfs_name(struct inode *inode, char *name)
{
    strlcpy(name, ramfs_node_of(inode)->dir_entry->entry_name, NAME_MAX + 1);
    return 0;
}

static int ramfs_create(struct inode *dir, const char *name,
                        enum file_type type, uint32_t device, uint32_t *ino)
{
    struct ramfs_node *to = ramfs_node_of(dir);
    struct ramfs_node *node;
    int r = add_node(to, name, strlen(name), type, device, &node);

    if (r < 0)
        return r;
    sync_links(dir);
    *ino = node->node_number;
    return 0;
}

static int ramfs_link(struct inode *dir, const char *name, struct inode *inode)
{
    int r = -EMLINK;

    if (inode->inode_nlink < RAMFS_LINK_MAX)
        r = add_entry(ramfs_node_of(dir), name, strlen(name),
                      ramfs_node_of(inode));
    sync_links(inode);
    return r;
}

static int ramfs_unlink(struct inode *dir, const char *name,
                        struct inode *inode)
{
    unlink_entry(find_ramfs_entry(ramfs_node_of(dir), name, strlen(name)));
    sync_links(inode);
    return 0;
}

static int ramfs_rmdir(struct inode *dir, const char *name, struct inode *inode)
{
    if (!list_empty(&ramfs_node_of(inode)->dir_entries))
        return -ENOTEMPTY;
    unlink_entry(find_ramfs_entry(ramfs_node_of(dir), name, strlen(name)));
    sync_links(inode);
    sync_links(dir);
    return 0;
}

/* Allocates nothing: the entry itself moves. */
static int ramfs_rename(struct inode *from_dir, const char *from,
                        struct inode *to_dir, const char *to,
                        struct inode *inode UNUSED, struct inode *target)
{
    struct ramfs_node *dir = ramfs_node_of(to_dir);
    struct ramfs_entry *e =
        find_ramfs_entry(ramfs_node_of(from_dir), from, strlen(from));
    size_t n = strlen(to);
    int r = check_room(dir);

    if (r < 0)
        return r;
    if (target != NULL && target->inode_type == FILE_DIRECTORY &&
        !list_empty(&ramfs_node_of(target)->dir_entries))
        return -ENOTEMPTY;
    /* Point of no return. */
    if (target != NULL) {
        unlink_entry(find_ramfs_entry(dir, to, n));
        sync_links(target);
    }
    spin_lock(&ramfs_lock);
    detach_entry(e);
    attach_entry(e, dir, to, n);
    spin_unlock(&ramfs_lock);
    sync_links(from_dir);
    sync_links(to_dir);
    return 0;
}

/* Also called under memory pressure; nodes with a link stay. */
static bool ramfs_evict(struct inode *inode)
{
    struct ramfs_node *node = ramfs_node_of(inode);

    if (inode->inode_nlink != 0)
        return false;
    if (node->node_type == FILE_REGULAR)
        ramfs_file_free(node);
    node_free(node);
    return false;
}

/* ---- getdents ----------------------------------------------------------- */

static ssize_t ramfs_getdents(struct inode *dir, uint32_t *offset, void *buf,
                              size_t n)
{
    const struct ramfs_node *node = ramfs_node_of(dir);
    const struct list *l = &node->dir_entries;
    const struct ramfs_entry *e;
    size_t done = 0;

    if (node->node_nlink == 0)
        return 0;
    for (;;) {
        const struct ramfs_node *to = *offset == 0 ? node : node->dir_parent;
        const char *name = *offset == 0 ? "." : "..";
        uint32_t next = *offset + 1;
        size_t size;

        if (*offset >= FIRST_COOKIE) {
            do {
                l = l->next;
                e = list_entry(l, struct ramfs_entry, entry_link);
            } while (l != &node->dir_entries && e->entry_cookie < *offset);
            if (l == &node->dir_entries)
                return (ssize_t)done;
            to = e->entry_node;
            name = e->entry_name;
            next = e->entry_cookie + 1;
        }
        size = dirent_store((char *)buf + done, n - done, to->node_number,
                            to->node_type, name, strlen(name));
        if (size == 0)
            return done > 0 ? (ssize_t)done : -EINVAL;
        done += size;
        *offset = next;
    }
}

/* ---- the file system ---------------------------------------------------- */

/* The file system can use all free memory. */
static int ramfs_stat(struct fs *fs UNUSED, struct fs_stat *out)
{
    out->fs_block_size = PAGE_SIZE;
    out->fs_blocks = (uint32_t)page_usable;
    out->fs_blocks_free = (uint32_t)buddy_free_pages();
    return 0;
}

static const struct fs_ops ramfs_ops = {
    .fs_read_inode = ramfs_read_inode,
    .fs_lookup = ramfs_lookup,
    .fs_name = ramfs_name,
    .fs_create = ramfs_create,
    .fs_link = ramfs_link,
    .fs_unlink = ramfs_unlink,
    .fs_rmdir = ramfs_rmdir,
    .fs_rename = ramfs_rename,
    .fs_read = ramfs_read,
    .fs_write = ramfs_write,
    .fs_truncate = ramfs_truncate,
    .fs_getdents = ramfs_getdents,
    .fs_evict = ramfs_evict,
    .fs_stat = ramfs_stat,
};

struct fs ramfs = {
    .fs_ops = &ramfs_ops,
    .fs_name = "ram",
    .fs_rename = FS_RENAME_INIT(ramfs),
};

struct ramfs_node *ramfs_root(void)
{
    return ramfs.fs_data;
}

void ramfs_init(void)
{
    struct ramfs_node *root;

    node_cache =
        cache_create("ramfs_node", sizeof(struct ramfs_node), 0, NULL, NULL);
    entry_cache =
        cache_create("ramfs_entry", sizeof(struct ramfs_entry), 0, NULL, NULL);
    ramfs_file_init();
    root = kmem_cache_alloc(node_cache, KM_SLEEP);
    *root = (struct ramfs_node){
        .node_type = FILE_DIRECTORY,
        .node_nlink = 2,
        .dir_cookie = FIRST_COOKIE,
        .dir_parent = root,
    };
    list_init(&root->dir_entries);
    number_node(root);
    ramfs.fs_root = root->node_number;
    ramfs.fs_data = root;
}

/* ---- invariants --------------------------------------------------------- */

/* A directory's list: cookies ascend, entries are its own, and it has two links
 * more than it has subdirectories. */
static const char *verify_dir(const struct ramfs_node *dir)
{
    uint32_t links = 2;
    uint32_t n = 0;
    uint32_t cookie = FIRST_COOKIE;

    list_for_each (l, &dir->dir_entries) {
        const struct ramfs_entry *e =
            list_entry(l, struct ramfs_entry, entry_link);

        if (l->next->prev != l || ++n > entries.hash_count)
            return "ramfs: a list of entries is broken";
        if (e->entry_dir != dir)
            return "ramfs: a directory lists an entry of another";
        if (e->entry_cookie < cookie || e->entry_cookie >= dir->dir_cookie)
            return "ramfs: cookies do not ascend";
        cookie = e->entry_cookie + 1;
        links += is_dir(e->entry_node);
    }
    return links == dir->node_nlink
               ? NULL
               : "ramfs: a directory's count of links is wrong";
}

static const char *verify_ramfs_entry(const struct ramfs_entry *e)
{
    const struct ramfs_node *node = e->entry_node;

    if (entry_hash(e->entry_dir, e->entry_name,
                   strnlen(e->entry_name, NAME_MAX)) !=
        e->entry_hash_link.link_hash)
        return "ramfs: hash does not match the name";
    if (node->node_nlink == 0)
        return "ramfs: an entry's file has no links";
    if (find_node(node->node_number) != node)
        return "ramfs: a file is not found by its number";
    if (node->node_type == FILE_REGULAR)
        return ramfs_file_verify(node);
    if (!is_dir(node))
        return NULL;
    if (node->dir_entry != e || node->dir_parent != e->entry_dir)
        return "ramfs: a directory has another parent or entry";
    return verify_dir(node);
}

const char *ramfs_verify(const char **where)
{
    static char text[NAME_MAX + 16];
    const char *wrong;

    snprintf(text, sizeof(text), "the root");
    spin_lock(&ramfs_lock);
    wrong = hash_verify(&nodes);
    if (wrong == NULL)
        wrong = hash_verify(&entries);
    if (wrong == NULL && nodes.hash_count != 0) /* else ramfs is not up yet */
        wrong = verify_dir(ramfs_root());
    for (uint32_t i = 0; wrong == NULL && i < HASH_BUCKETS; i++) {
        struct hash_link *l = entries.hash_chain[i];

        for (; wrong == NULL && l != NULL; l = l->link_next) {
            const struct ramfs_entry *e =
                container_of(l, struct ramfs_entry, entry_hash_link);

            wrong = verify_ramfs_entry(e);
            if (wrong != NULL)
                snprintf(text, sizeof(text), "entry \"%.*s\"", NAME_MAX,
                         e->entry_name);
        }
    }
    spin_unlock(&ramfs_lock);
    *where = text;
    return wrong;
}
