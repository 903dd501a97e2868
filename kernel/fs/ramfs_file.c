/*
 * Contents of files in the RAM file system.
 *
 * A file is a vector of separate pages. Where a page is missing, the bytes are
 * those of the archive, which stays in memory, or zeroes. A page is allocated
 * at its first write and filled with those bytes, so a program that is only
 * read and run needs no page.
 */
#include "kernel/abi/errno.h"
#include "kernel/fs/ramfs.h"
#include "kernel/lib/string.h"
#include "kernel/object/session.h"
#include "kernel/vm/user.h"
#include "kernel/task/cache.h"
#include "mm/kmem.h"

#define SLOTS_FIRST 4u /* in the first vector */

static struct kmem_cache *page_cache;

void ramfs_file_init(void)
{
    page_cache = cache_create("ramfs_page", PAGE_SIZE, 0, NULL, NULL);
}

static uint8_t *page_at(const struct ramfs_node *node, uint32_t i)
{
    return i < node->file_slots ? node->file_page[i] : NULL;
}

/* ---- reading ------------------------------------------------------------ */

/* Where the bytes from `pos` on are, at most *n; fewer where the next ones are
 * elsewhere. NULL: zeroes. */
static const uint8_t *bytes_at(const struct ramfs_node *node, uint32_t pos,
                               size_t *n)
{
    const uint8_t *page = page_at(node, pos >> PAGE_SHIFT);
    bool archived = page == NULL && pos < node->file_data_size;

    if (archived)
        *n = MIN(*n, node->file_data_size - pos);
    if (node->file_slots != 0 || !archived)
        *n = MIN(*n, PAGE_SIZE - (pos & PAGE_MASK));
    if (archived)
        return node->file_data + pos;
    return page == NULL ? NULL : page + (pos & PAGE_MASK);
}

ssize_t ramfs_read(struct inode *inode, uint32_t offset, void *buf, size_t n)
{
    const struct ramfs_node *node = ramfs_node_of(inode);
    size_t done = 0;

    if (node->node_type != FILE_REGULAR)
        return -EINVAL;
    if (offset >= node->node_size)
        return 0;
    n = MIN(n, node->node_size - offset);
    while (done < n && !task_killed()) {
        size_t part = n - done;
        char *to = (char *)buf + done;
        const uint8_t *from = bytes_at(node, offset + done, &part);
        int r = from != NULL ? user_copy(to, from, part) : user_zero(to, part);

        if (r < 0)
            return done != 0 ? (ssize_t)done : r;
        done += part;
    }
    return (ssize_t)done;
}

/* ---- writing ------------------------------------------------------------ */

/* Frees the old vector last: the verifier may run at any moment. */
static void replace_vector(struct ramfs_node *node, uint8_t **vector,
                           uint32_t slots)
{
    uint8_t **old = node->file_page;
    uint32_t old_slots = node->file_slots;

    spin_lock(&ramfs_lock);
    node->file_page = vector;
    node->file_slots = slots;
    spin_unlock(&ramfs_lock);
    kmem_free(old, old_slots * sizeof(*old));
}

/* Of memory, for a vector of so many slots. */
static uint32_t vector_pages(uint32_t slots)
{
    return slots / (PAGE_SIZE / sizeof(uint8_t *));
}

/* Charges the session of the running task for `n` more pages and, if it was not
 * the last to add one, for all pages of the file. */
static int charge_pages(struct ramfs_node *node, uint32_t n)
{
    uint32_t own = session_number(session_self());
    uint32_t moved = own == node->file_session
                         ? 0
                         : node->node_pages + vector_pages(node->file_slots);

    if (!session_charge(session_self(), SESSION_FILES, moved + n))
        return -ENOSPC;
    if (moved != 0)
        session_refund_number(node->file_session, SESSION_FILES, moved);
    node->file_session = own;
    return 0;
}

static void refund_pages(const struct ramfs_node *node, uint32_t n)
{
    session_refund_number(node->file_session, SESSION_FILES, n);
}

/* Ensures that the vector has slot `i`. */
static int make_slot(struct ramfs_node *node, uint32_t i)
{
    uint32_t slots = MAX(node->file_slots, SLOTS_FIRST);
    uint8_t **vector;
    uint32_t more;
    int r;

    if (i < node->file_slots)
        return 0;
    while (slots <= i)
        slots *= 2;
    more = vector_pages(slots) - vector_pages(node->file_slots);
    r = charge_pages(node, more);
    if (r < 0)
        return r;
    vector = kmem_zalloc(slots * sizeof(*vector), KM_NOSLEEP);
    if (vector == NULL) {
        refund_pages(node, more);
        return -ENOMEM;
    }
    memcpy(vector, node->file_page, node->file_slots * sizeof(*vector));
    replace_vector(node, vector, slots);
    return 0;
}

/* Puts a page or NULL into the vector, and returns what was there. */
static uint8_t *set_page(struct ramfs_node *node, uint32_t i, uint8_t *page)
{
    uint8_t *before;

    spin_lock(&ramfs_lock);
    before = node->file_page[i];
    node->file_page[i] = page;
    node->node_pages += (page != NULL) - (before != NULL);
    spin_unlock(&ramfs_lock);
    return before;
}

/* A page with the contents at slot `i`, charged but not yet in the vector. Left
 * uninitialized if a `whole` page will be overwritten. 0, -ENOSPC, -ENOMEM. */
static int new_page(struct ramfs_node *node, uint32_t i, bool whole,
                    uint8_t **out)
{
    uint32_t start = i << PAGE_SHIFT;
    uint32_t archived = 0;
    int r = make_slot(node, i);

    if (r == 0)
        r = charge_pages(node, 1);
    if (r < 0)
        return r;
    *out = kmem_cache_alloc(page_cache, KM_NOSLEEP);
    if (*out == NULL) {
        refund_pages(node, 1);
        return -ENOMEM;
    }
    if (whole)
        return 0;
    if (start < node->file_data_size)
        archived = MIN(node->file_data_size - start, PAGE_SIZE);
    memcpy(*out, node->file_data + start, archived);
    memset(*out + archived, 0, PAGE_SIZE - archived);
    return 0;
}

static void set_size(struct inode *inode, uint32_t size)
{
    ramfs_node_of(inode)->node_size = size;
    inode->inode_size = size;
}

/* Writes within one page; extends the file if the write ends after its end. A
 * write that fails leaves zeroes there. */
static int write_part(struct inode *inode, uint32_t pos, const void *buf,
                      size_t n)
{
    struct ramfs_node *node = ramfs_node_of(inode);
    uint32_t i = pos >> PAGE_SHIFT;
    uint32_t after = MAX(pos, node->node_size);
    uint8_t *page = page_at(node, i);
    bool fresh = page == NULL;
    int r = 0;

    if (fresh)
        r = new_page(node, i, n == PAGE_SIZE, &page);
    if (r < 0)
        return r;
    r = user_copy(page + (pos & PAGE_MASK), buf, n);
    if (r == 0 && pos + n > node->node_size)
        set_size(inode, pos + n);
    if (r == 0 && fresh) {
        set_page(node, i, page);
    } else if (r < 0 && fresh) {
        kmem_cache_free(page_cache, page);
        refund_pages(node, 1);
    } else if (r < 0 && after < pos + n) {
        memset(page + (after & PAGE_MASK), 0, pos + n - after);
    }
    return r;
}

ssize_t ramfs_write(struct inode *inode, uint32_t offset, const void *buf,
                    size_t n)
{
    size_t done = 0;

    if (inode->inode_type != FILE_REGULAR)
        return -EINVAL;
    if (n != 0 && offset >= RAMFS_FILE_MAX)
        return -EFBIG;
    n = MIN(n, RAMFS_FILE_MAX - offset);
    while (done < n && !task_killed()) {
        uint32_t pos = offset + done;
        size_t part = MIN(n - done, PAGE_SIZE - (pos & PAGE_MASK));
        int r = write_part(inode, pos, (const char *)buf + done, part);

        if (r < 0)
            return done != 0 ? (ssize_t)done : r;
        done += part;
    }
    return (ssize_t)done;
}

/* ---- shortening --------------------------------------------------------- */

/* Frees the pages from slot `first` on, and the vector if none is left. */
static void free_pages(struct ramfs_node *node, uint32_t first)
{
    uint32_t freed = 0;

    for (uint32_t i = first; i < node->file_slots; i++) {
        uint8_t *page = set_page(node, i, NULL);

        if (page == NULL)
            continue;
        kmem_cache_free(page_cache, page);
        freed++;
    }
    if (first == 0) {
        freed += vector_pages(node->file_slots);
        replace_vector(node, NULL, 0);
    }
    refund_pages(node, freed);
}

int ramfs_truncate(struct inode *inode, uint32_t size)
{
    struct ramfs_node *node = ramfs_node_of(inode);
    uint8_t *page;

    if (node->node_type != FILE_REGULAR)
        return -EINVAL;
    if (size > RAMFS_FILE_MAX)
        return -EFBIG;
    if (size < node->node_size) {
        free_pages(node, (size + PAGE_MASK) >> PAGE_SHIFT);
        page = page_at(node, size >> PAGE_SHIFT);
        if (page != NULL)
            memset(page + (size & PAGE_MASK), 0,
                   PAGE_SIZE - (size & PAGE_MASK));
        node->file_data_size = MIN(node->file_data_size, size);
    }
    set_size(inode, size);
    return 0;
}

void ramfs_file_archived(struct ramfs_node *node, const void *data, size_t n)
{
    node->file_data = data;
    node->file_data_size = n;
    node->node_size = n;
}

void ramfs_file_free(struct ramfs_node *node)
{
    free_pages(node, 0);
}

const char *ramfs_file_verify(const struct ramfs_node *node)
{
    uint32_t pages = (node->node_size + PAGE_MASK) >> PAGE_SHIFT;
    uint32_t charged = 0;

    if (node->node_size > RAMFS_FILE_MAX)
        return "ramfs: a file is larger than RAMFS_FILE_MAX";
    if (node->file_data_size > node->node_size)
        return "ramfs: more bytes in the archive than in the file";
    for (uint32_t i = pages; i < node->file_slots; i++)
        if (node->file_page[i] != NULL)
            return "ramfs: a page after the end of a file";
    for (uint32_t i = 0; i < node->file_slots; i++)
        charged += node->file_page[i] != NULL;
    return charged == node->node_pages
               ? NULL
               : "ramfs: a file has another number of pages than was charged";
}
