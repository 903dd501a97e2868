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
    while (done < n) {
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

/* Ensures that the vector has slot `i`. */
static bool make_slot(struct ramfs_node *node, uint32_t i)
{
    uint32_t slots = MAX(node->file_slots, SLOTS_FIRST);
    uint8_t **vector;

    if (i < node->file_slots)
        return true;
    while (slots <= i)
        slots *= 2;
    vector = kmem_zalloc(slots * sizeof(*vector), KM_NOSLEEP);
    if (vector == NULL)
        return false;
    memcpy(vector, node->file_page, node->file_slots * sizeof(*vector));
    replace_vector(node, vector, slots);
    return true;
}

/* A page with the contents at slot `i`, not yet in the vector. Left
 * uninitialized if a `whole` page will be overwritten. */
static uint8_t *new_page(struct ramfs_node *node, uint32_t i, bool whole)
{
    uint32_t start = i << PAGE_SHIFT;
    uint32_t archived = 0;
    uint8_t *page;

    if (!make_slot(node, i))
        return NULL;
    page = kmem_cache_alloc(page_cache, KM_NOSLEEP);
    if (page == NULL || whole)
        return page;
    if (start < node->file_data_size)
        archived = MIN(node->file_data_size - start, PAGE_SIZE);
    memcpy(page, node->file_data + start, archived);
    memset(page + archived, 0, PAGE_SIZE - archived);
    return page;
}

/* After a failed write to [pos, pos + n) of a page: clears what it left after
 * the end of the file. */
static void clean_up(const struct ramfs_node *node, uint8_t *page, uint32_t pos,
                     size_t n)
{
    uint32_t from = MAX(pos, node->node_size);

    if (from < pos + n)
        memset(page + (from & PAGE_MASK), 0, pos + n - from);
}

static void set_size(struct inode *inode, uint32_t size)
{
    ramfs_node_of(inode)->node_size = size;
    inode->inode_size = size;
}

/* Writes within one page; extends the file if the write ends after its end. */
static int write_part(struct inode *inode, uint32_t pos, const void *buf,
                      size_t n)
{
    struct ramfs_node *node = ramfs_node_of(inode);
    uint32_t i = pos >> PAGE_SHIFT;
    uint8_t *page = page_at(node, i);
    bool fresh = page == NULL;
    int r;

    if (fresh)
        page = new_page(node, i, n == PAGE_SIZE);
    if (page == NULL)
        return -ENOMEM;
    r = user_copy(page + (pos & PAGE_MASK), buf, n);
    if (r == 0 && pos + n > node->node_size)
        set_size(inode, pos + n);
    if (r == 0 && fresh)
        node->file_page[i] = page;
    else if (r < 0 && fresh)
        kmem_cache_free(page_cache, page);
    else if (r < 0)
        clean_up(node, page, pos, n);
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
    while (done < n) {
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
    for (uint32_t i = first; i < node->file_slots; i++) {
        if (node->file_page[i] != NULL)
            kmem_cache_free(page_cache, node->file_page[i]);
        node->file_page[i] = NULL;
    }
    if (first == 0)
        replace_vector(node, NULL, 0);
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

    if (node->node_size > RAMFS_FILE_MAX)
        return "ramfs: a file is larger than RAMFS_FILE_MAX";
    if (node->file_data_size > node->node_size)
        return "ramfs: more bytes in the archive than in the file";
    for (uint32_t i = pages; i < node->file_slots; i++)
        if (node->file_page[i] != NULL)
            return "ramfs: a page after the end of a file";
    return NULL;
}
