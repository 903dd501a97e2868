/*
 * The RAM file system: shared by its two files, the archive reader and tests.
 *
 *     ramfs_node (directory) ──list by cookie──> ramfs_entry ──> ramfs_node
 *                                                ramfs_entry ──> ramfs_node
 *     hash table (directory, name) ────────────────^               │ (file)
 *                                                                  v
 *                                  vector of ramfs_page, 4 KiB each, and
 *                                  for missing ones the archive's bytes
 *
 * Nodes are numbered in the order of their creation, and a second hash table
 * finds them by number. Programs see numbers, so these are not addresses.
 */
#pragma once

#include "kernel/fs/inode.h"

#define RAMFS_FILE_MAX MIB(64) /* bytes in one file */

/* Names of one file: with so many it uses less than the page that its session
 * is charged for it. */
#define RAMFS_LINK_MAX 32u

struct ramfs_entry {
    struct hash_link entry_hash_link; /* this and the next: by ramfs_lock */
    struct list entry_link;           /* in the directory's list */
    struct ramfs_node *entry_dir;
    struct ramfs_node *entry_node;
    uint32_t entry_cookie; /* its getdents position; ascends in the list */
    char entry_name[NAME_MAX + 1];
};

/* Guarded by the mutex of its inode. */
struct ramfs_node {
    struct hash_link node_hash_link; /* by ramfs_lock */
    uint32_t node_number;            /* never changes */
    uint32_t node_nlink;             /* 0: freed with its inode */
    uint32_t node_size;
    uint32_t node_session; /* number of the one that created it: charged with
                              one of SESSION_FILES for node and names */
    uint8_t node_type;     /* enum file_type */
    uint16_t node_pages;   /* of its own, if it is a file */
    union {
        struct {
            struct list dir_entries;
            struct ramfs_node *dir_parent; /* the root's is itself */
            struct ramfs_entry *dir_entry; /* its own; NULL for the root */
            uint32_t dir_cookie;           /* for the next entry */
        };
        struct {
            const uint8_t *file_data; /* bytes where no page is; then zeroes */
            uint32_t file_data_size;  /* at most node_size */
            uint32_t file_slots;
            uint8_t **file_page;   /* NULL: see above. Zero after node_size */
            uint32_t file_session; /* number of the session charged for its
                                      pages: the one that added the last */
        };
        uint32_t node_device;
    };
};

extern struct fs ramfs;

/* The number given last. After UINT32_MAX comes the least that is free. */
extern uint32_t ramfs_last_number;

/* Guards the tables, links, directory lists and the page vector of each file.
 * Links, lists and vectors change only while the inode's mutex is held too,
 * except that a rename lowers a file's link count by one until it releases the
 * lock. */
extern struct spinlock ramfs_lock;

/* Creates caches, tables and an empty root directory. Boot only. */
void ramfs_init(void);

static inline struct ramfs_node *ramfs_node_of(const struct inode *inode)
{
    return inode->inode_data;
}

/* The root's node. */
struct ramfs_node *ramfs_root(void);

/* The node that `n` bytes name in a directory, or NULL. */
struct ramfs_node *ramfs_find(const struct ramfs_node *dir, const char *name,
                              size_t n);

/* The same, created as `type` if missing; the name has 1 to NAME_MAX bytes. 0,
 * -ENOMEM; -ENOSPC: the directory has used up its cookies. For nodes without
 * inodes. */
int ramfs_obtain(struct ramfs_node *dir, const char *name, size_t n,
                 enum file_type type, struct ramfs_node **out);

/* NULL, or the first broken invariant. */
const char *ramfs_verify(const char **where);

/* ---- the archive (ustar.c) ---------------------------------------------- */

/*
 * Creates the files of a ustar archive below `dir`; their contents stay in the
 * archive. No inodes of these may exist. Entries that are broken, neither file
 * nor directory, or do not fit are reported on the console; returns their
 * number.
 */
unsigned ustar_unpack(const void *start, size_t size, struct ramfs_node *dir);

/* ---- contents (ramfs_file.c) -------------------------------------------- */

void ramfs_file_init(void);
ssize_t ramfs_read(struct inode *inode, uint32_t offset, void *buf, size_t n);
ssize_t ramfs_write(struct inode *inode, uint32_t offset, const void *buf,
                    size_t n);
int ramfs_truncate(struct inode *inode, uint32_t size);

/* Sets the contents of an empty file to at most RAMFS_FILE_MAX bytes, which
 * stay where they are. No inode of the file may exist. */
void ramfs_file_archived(struct ramfs_node *node, const void *data, size_t n);

/* Frees the contents of a file. */
void ramfs_file_free(struct ramfs_node *node);

/* The broken invariant of a file's pages, or NULL. */
const char *ramfs_file_verify(const struct ramfs_node *node);
