/*
 * The inode cache (kernel/fs/inode.h): lookup, reading, references, eviction.
 *
 * One spin lock guards the hash table, the LRU list and all reference counts;
 * nothing is allocated or freed under it, and nothing sleeps. An inode enters
 * the table before its file system has filled it in. Another task that needs it
 * then finds it and waits, so a file never has two inodes.
 *
 *     inode_get_with ─┬─ find_or_insert ── found ──> is_ready ──> done
 *                     └─ inserted ─> read_new ──> READY or FAILED, wakes
 *     inode_put ──> LRU list ──> inode_reclaim ─┐
 *          └── no links left ───────────────────┴─> evict
 */
#include "kernel/fs/inode.h"
#include "kernel/abi/errno.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/task/cache.h"
#include "mm/kmem.h"

static struct spinlock inode_list_lock =
    SPINLOCK_INIT("inode list", LOCK_RANK_INODES);
static struct hash inode_table;
static struct list inode_lru = LIST_INIT(inode_lru); /* oldest first */
static struct inode_totals totals;

static struct wait_queue reading = WAIT_QUEUE_INIT(reading, "inode-read");
static struct kmem_cache *inode_cache;

/* ---- the cache ---------------------------------------------------------- */

static void inode_ctor(void *obj, size_t size UNUSED)
{
    struct inode *inode = obj;

    *inode = (struct inode){.inode_state = INODE_NEW};
    list_init(&inode->inode_lru_link);
    mutex_init(&inode->inode_mutex, "inode", MUTEX_RANK_FILE);
}

void inode_init(void)
{
    hash_init();
    inode_cache =
        cache_create("inode", sizeof(struct inode), 0, inode_ctor, NULL);
    kmem_set_reclaim(inode_reclaim);
}

struct inode *inode_blank(void)
{
    return kmem_cache_alloc(inode_cache, KM_NOSLEEP);
}

void inode_free(struct inode *inode)
{
    inode->inode_state = INODE_NEW;
    inode->inode_type = 0;
    inode->inode_sealed = false;
    inode->inode_unsure = false;
    inode->inode_size = 0;
    inode->inode_nlink = 0;
    inode->inode_data = NULL;
    kmem_cache_free(inode_cache, inode);
}

/* Directories come before other files in the order of locks. */
static void set_rank(struct inode *inode UNUSED)
{
#ifdef CONFIG_DEBUG
    inode->inode_mutex.mutex_rank = inode->inode_type == FILE_DIRECTORY
                                        ? MUTEX_RANK_DIRECTORY
                                        : MUTEX_RANK_FILE;
#endif
}

/* ---- lookup ------------------------------------------------------------- */

static uint32_t inode_hash(const struct fs *fs, uint32_t number)
{
    return hash_mix(hash_mix(hash_key, fs->fs_id), number);
}

/* Adds a reference. */
static void add_reference(struct inode *inode)
{
    spin_assert_held(&inode_list_lock);
    if (inode->inode_refs++ == 0) {
        list_remove(&inode->inode_lru_link);
        list_init(&inode->inode_lru_link);
        totals.total_unused--;
    }
}

/* Removes an inode from the table. Its file system counts it until it is
 * freed. */
static void table_remove(struct inode *inode)
{
    spin_assert_held(&inode_list_lock);
    hash_remove(&inode_table, &inode->inode_hash_link);
}

/* The inode of that number with a reference: found, or `blank` (if not NULL)
 * inserted. NULL if neither. */
static struct inode *find_or_insert(struct fs *fs, uint32_t number,
                                    struct inode *blank)
{
    uint32_t hash = inode_hash(fs, number);
    struct inode *inode;
    struct hash_link *l;

    spin_lock(&inode_list_lock);
    for (l = *hash_bucket(&inode_table, hash); l != NULL; l = l->link_next) {
        inode = container_of(l, struct inode, inode_hash_link);
        if (inode->inode_number == number && inode->inode_fs == fs)
            break;
    }
    if (l != NULL) {
        add_reference(inode);
        totals.total_hits++;
    } else if ((inode = blank) != NULL) {
        inode->inode_fs = fs;
        inode->inode_number = number;
        inode->inode_refs = 1;
        inode->inode_hash_link.link_hash = hash;
        hash_insert(&inode_table, &inode->inode_hash_link);
        fs->fs_inodes++;
        totals.total_misses++;
    }
    spin_unlock(&inode_list_lock);
    return inode;
}

bool inode_known(struct fs *fs, uint32_t number)
{
    struct inode *inode = find_or_insert(fs, number, NULL);

    inode_put(inode);
    return inode != NULL;
}

/* Waits until an inode has been read. 0; -EAGAIN if reading failed, another
 * error if the wait did. */
static int wait_until_read(struct inode *inode)
{
    int error = 0;

    if (likely(__atomic_load_n(&inode->inode_state, __ATOMIC_ACQUIRE) ==
               INODE_READY))
        return 0;
    spin_lock(&sched_lock);
    while (error == 0 && inode->inode_state == INODE_NEW)
        error = wait_queue_block_killable(&reading);
    spin_unlock(&sched_lock);
    return error == 0 && inode->inode_state != INODE_READY ? -EAGAIN : error;
}

/* Has the file system fill in an inode just inserted. */
static int read_new(struct inode *inode)
{
    int r;

    r = inode->inode_fs->fs_ops->fs_read_inode(inode);
    if (r < 0) {
        spin_lock(&inode_list_lock);
        table_remove(inode);
        spin_unlock(&inode_list_lock);
    }
    set_rank(inode);
    __atomic_store_n(&inode->inode_state, r < 0 ? INODE_FAILED : INODE_READY,
                     __ATOMIC_RELEASE);
    wait_queue_wake_all(&reading);
    if (r < 0)
        inode_put(inode);
    return r;
}

int inode_get_with(struct fs *fs, uint32_t number, struct inode *blank,
                   struct inode **out)
{
    int error = -EAGAIN;

    while (error == -EAGAIN) {
        *out = find_or_insert(fs, number, blank);
        if (*out == NULL) {
            blank = inode_blank();
            if (blank == NULL)
                return -ENOMEM;
        } else if (*out == blank) {
            return read_new(blank);
        } else {
            error = wait_until_read(*out);
            if (error != 0)
                inode_put(*out);
        }
    }
    if (blank != NULL)
        inode_free(blank);
    return error;
}

int inode_get(struct fs *fs, uint32_t number, struct inode **out)
{
    return inode_get_with(fs, number, NULL, out);
}

/* ---- references --------------------------------------------------------- */

struct inode *inode_ref(struct inode *inode)
{
    spin_lock(&inode_list_lock);
    inode->inode_refs++;
    spin_unlock(&inode_list_lock);
    return inode;
}

/* A file system has one inode less. The last inode of one that has been
 * unmounted frees it. */
static void uncount(struct fs *fs)
{
    bool last;

    spin_lock(&inode_list_lock);
    last = --fs->fs_inodes == 0 && fs->fs_ended;
    spin_unlock(&inode_list_lock);
    if (last && fs->fs_ops->fs_free != NULL)
        fs->fs_ops->fs_free(fs);
}

/* Evicts and frees an inode that is no longer in the table or the list. Its
 * file system lives until this is done. */
static void evict(struct inode *inode)
{
    struct fs *fs = inode->inode_fs;
    const struct fs_ops *ops = fs->fs_ops;
    bool kept = false;

    if (inode->inode_state == INODE_READY && ops->fs_evict != NULL)
        kept = ops->fs_evict(inode);
    if (!kept)
        inode_free(inode);
    uncount(fs);
}

void inode_put(struct inode *inode)
{
    bool gone = false;

    if (inode == NULL)
        return;
    spin_lock(&inode_list_lock);
    if (--inode->inode_refs == 0) {
        gone = inode->inode_state >= INODE_FAILED || inode->inode_nlink == 0 ||
               inode->inode_unsure || inode->inode_fs->fs_ended;
        if (!gone) {
            list_insert_before(&inode_lru, &inode->inode_lru_link);
            totals.total_unused++;
        }
        if (gone && inode->inode_state == INODE_READY)
            table_remove(inode);
    }
    spin_unlock(&inode_list_lock);
    if (gone)
        evict(inode);
}

/* ---- reclaiming --------------------------------------------------------- */

/* Removes the least recently used inode (of `fs`, if not NULL) from list and
 * table. NULL: none. */
static struct inode *take_oldest(const struct fs *fs)
{
    struct inode *oldest = NULL;

    spin_lock(&inode_list_lock);
    list_for_each (l, &inode_lru) {
        oldest = list_entry(l, struct inode, inode_lru_link);
        if (fs == NULL || oldest->inode_fs == fs)
            break;
        oldest = NULL;
    }
    if (oldest != NULL) {
        list_remove(&oldest->inode_lru_link);
        list_init(&oldest->inode_lru_link);
        table_remove(oldest);
        totals.total_unused--;
        totals.total_reclaimed++;
    }
    spin_unlock(&inode_list_lock);
    return oldest;
}

size_t inode_reclaim(size_t most)
{
    struct inode *inode;
    size_t n = 0;

    while (n < most && (inode = take_oldest(NULL)) != NULL) {
        evict(inode);
        n++;
    }
    return n;
}

bool inode_make_oldest(const void *at)
{
    bool found = false;

    spin_lock(&inode_list_lock);
    list_for_each (l, &inode_lru) {
        found = list_entry(l, struct inode, inode_lru_link) == at;
        if (found) {
            list_remove(l);
            list_insert_after(&inode_lru, l);
            break;
        }
    }
    spin_unlock(&inode_list_lock);
    return found;
}

bool inode_flush(struct fs *fs)
{
    struct inode *inode;

    while ((inode = take_oldest(fs)) != NULL)
        evict(inode);
    return fs->fs_inodes == 0;
}

bool inode_only_root(struct inode *root, uint32_t refs)
{
    bool alone;

    spin_lock(&inode_list_lock);
    alone = root->inode_fs->fs_inodes == 1 && root->inode_refs == refs;
    spin_unlock(&inode_list_lock);
    return alone;
}

void inode_end(struct fs *fs)
{
    spin_lock(&inode_list_lock);
    fs->fs_ended = true;
    fs->fs_inodes++; /* it lives until here */
    spin_unlock(&inode_list_lock);
    inode_flush(fs);
    uncount(fs);
}

/* A task that has a reference gets -EIO from now on. */
static void make_gone(struct inode *inode)
{
    table_remove(inode);
    inode->inode_state = INODE_GONE;
}

void inode_drop_unlinked(struct fs *fs)
{
    struct hash_link *l, *next;

    spin_lock(&inode_list_lock);
    for (uint32_t i = 0; i < HASH_BUCKETS; i++)
        for (l = inode_table.hash_chain[i]; l != NULL; l = next) {
            struct inode *inode =
                container_of(l, struct inode, inode_hash_link);

            next = l->link_next;
            if (inode->inode_fs == fs && inode->inode_nlink == 0 &&
                inode->inode_state == INODE_READY)
                make_gone(inode);
        }
    spin_unlock(&inode_list_lock);
}

void inode_forget(struct fs *fs, uint32_t number)
{
    struct inode *inode = find_or_insert(fs, number, NULL);

    if (inode == NULL)
        return;
    spin_lock(&inode_list_lock);
    if (inode->inode_state == INODE_READY && inode->inode_mounted == NULL)
        make_gone(inode);
    spin_unlock(&inode_list_lock);
    inode_put(inode);
}

/* ---- reading ------------------------------------------------------------ */

ssize_t inode_read(struct inode *inode, uint32_t offset, void *buf, size_t n)
{
    const struct fs_ops *ops = inode->inode_fs->fs_ops;
    ssize_t r;

    if (inode->inode_type == FILE_DIRECTORY)
        return -EISDIR;
    if (ops->fs_read == NULL)
        return -EINVAL;
    r = inode_enter(inode);
    if (r < 0)
        return r;
    r = inode_lock(inode);
    if (r < 0)
        return r;
    r = ops->fs_read(inode, offset, buf, n);
    inode_unlock(inode);
    return r;
}

/* ---- snapshots and checks ----------------------------------------------- */

void inode_totals(struct inode_totals *out)
{
    spin_lock(&inode_list_lock);
    *out = totals;
    out->total_cached = inode_table.hash_count;
    spin_unlock(&inode_list_lock);
}

const char *inode_type_name(const struct inode *inode)
{
    static const char *const types[] = {
        [FILE_REGULAR] = "file",
        [FILE_DIRECTORY] = "dir",
        [FILE_DEVICE] = "device",
    };
    uint8_t type = inode->inode_type;

    return type < ARRAY_SIZE(types) && types[type] ? types[type] : "new";
}

static struct inode_stat inode_stat_of(const struct inode *inode)
{
    struct inode_stat st = {
        .stat_fs_id = inode->inode_fs->fs_id,
        .stat_number = inode->inode_number,
        .stat_refs = inode->inode_refs,
        .stat_size = inode->inode_size,
        .stat_nlink = inode->inode_nlink,
        .stat_type = inode_type_name(inode),
    };

    strlcpy(st.stat_fs, inode->inode_fs->fs_name, sizeof(st.stat_fs));
    return st;
}

/* Snapshots are in the order of these numbers. */
static uint64_t inode_place(uint32_t fs_id, uint32_t number)
{
    return (uint64_t)fs_id << 32 | number;
}

/* The inode with the lowest such number above `after`, or NULL. */
static const struct inode *inode_after(uint64_t after)
{
    const struct inode *next = NULL;
    uint64_t lowest = UINT64_MAX;

    spin_assert_held(&inode_list_lock);
    for (uint32_t i = 0; i < HASH_BUCKETS; i++)
        for (struct hash_link *l = inode_table.hash_chain[i]; l != NULL;
             l = l->link_next) {
            const struct inode *inode =
                container_of(l, struct inode, inode_hash_link);
            uint64_t at =
                inode_place(inode->inode_fs->fs_id, inode->inode_number);

            if (at > after && at < lowest) {
                next = inode;
                lowest = at;
            }
        }
    return next;
}

bool inode_next(struct inode_stat *st)
{
    const struct inode *inode;

    spin_lock(&inode_list_lock);
    inode = inode_after(inode_place(st->stat_fs_id, st->stat_number));
    if (inode != NULL)
        *st = inode_stat_of(inode);
    spin_unlock(&inode_list_lock);
    return inode != NULL;
}

/* The broken invariant of one inode of the table, or NULL. */
static const char *verify_inode(const struct inode *inode, size_t *unused)
{
    bool listed = !list_empty(&inode->inode_lru_link);

    *unused += listed;
    if (inode->inode_hash_link.link_hash !=
        inode_hash(inode->inode_fs, inode->inode_number))
        return "inode: hash does not match the number";
    if (inode->inode_state >= INODE_FAILED)
        return "inode: a failed or dropped inode is in the table";
    if (listed != (inode->inode_refs == 0))
        return "inode: the LRU list does not match the references";
    if (listed && inode->inode_nlink == 0)
        return "inode: kept although its file has no link";
    if (inode->inode_mounted != NULL &&
        inode->inode_mounted->fs_covers != inode)
        return "inode: covered by a file system that covers another";
    if (inode->inode_mounted != NULL && inode->inode_nlink == 0)
        return "inode: a file system is mounted on a removed directory";
    return NULL;
}

static const char *verify_lru(size_t unused)
{
    size_t n = 0;

    list_for_each (l, &inode_lru) {
        if (l->next->prev != l || ++n > unused)
            break;
    }
    if (n != unused || n != totals.total_unused)
        return "inode: the LRU list does not hold all unused inodes";
    return NULL;
}

const char *inode_verify(const char **where)
{
    static char text[64];
    const struct inode *at = NULL;
    const char *wrong;
    size_t unused = 0;

    spin_lock(&inode_list_lock);
    wrong = hash_verify(&inode_table);
    for (uint32_t i = 0; wrong == NULL && i < HASH_BUCKETS; i++) {
        struct hash_link *l = inode_table.hash_chain[i];

        for (; wrong == NULL && l != NULL; l = l->link_next) {
            at = container_of(l, struct inode, inode_hash_link);
            wrong = verify_inode(at, &unused);
        }
    }
    if (wrong == NULL) {
        at = NULL;
        wrong = verify_lru(unused);
    }
    if (wrong != NULL && at != NULL)
        snprintf(text, sizeof(text), "inode %u of %s at %p", at->inode_number,
                 at->inode_fs->fs_name, (const void *)at);
    else
        text[0] = '\0';
    spin_unlock(&inode_list_lock);
    *where = text;
    return wrong;
}
