/*
 * Private to the core of the ext2 server.
 *
 *     struct ext2 ──> struct group        a descriptor, counts, freed blocks
 *                 ──> struct node         an inode in memory
 *                 ──> struct buffer       a block in memory
 *                 ──> struct edit         an entry that must not change yet
 */
#pragma once

#include "kernel/lib/list.h"
#include "user/servers/ext2/ext2.h"
#include "user/servers/ext2/format.h"

/* ---- blocks in memory (buffer.c) ---------------------------------------- */

/* The kind of a block determines when it may be written (commit.c). */
enum buffer_kind {
    BUFFER_DATA,  /* of a regular file: any time */
    BUFFER_MAP,   /* bitmaps, group descriptors */
    BUFFER_META,  /* numbers of blocks */
    BUFFER_DIR,   /* entries */
    BUFFER_TABLE, /* inodes */
};

struct buffer {
    struct buffer *buf_next; /* in its hash chain */
    struct list buf_lru;     /* fs_lru: oldest first */
    uint32_t buf_block;      /* 0: holds nothing */
    uint32_t buf_owner; /* the inode that it belongs to; 0: none, or many */
    uint16_t buf_refs;
    uint8_t buf_kind;
    bool buf_dirty;
    bool buf_fresh;    /* the disk does not refer to it yet */
    bool buf_checked;  /* a directory's entries were checked */
    bool buf_mark;     /* to be written in the current step */
    uint8_t *buf_data; /* fs_block_size bytes */
};

/* An entry whose inode number has changed in memory, but must stay unchanged on
 * disk until a certain step of the next commit. */
enum edit_step {
    EDIT_SWITCH,
    EDIT_REMOVE
};

struct edit {
    struct buffer *edit_buffer; /* held */
    uint32_t edit_dir;
    uint32_t edit_before, edit_after; /* inode numbers */
    uint16_t edit_offset;             /* of the entry in its block */
    uint8_t edit_type_before, edit_type_after;
    uint8_t edit_step;
};

#define EDITS_MAX 256u

/* ---- inodes in memory (node.c) ------------------------------------------ */

struct node {
    struct node *node_next; /* in its hash chain */
    struct list node_lru;   /* fs_nodes: oldest first */
    uint32_t node_number;
    uint32_t node_refs;
    bool node_dirty;
    bool node_unborn;   /* has no links on disk yet */
    bool node_alloc;    /* a bit in a bitmap for it is not on disk */
    bool node_grew;     /* a directory longer than its inode on disk says */
    bool node_lost_dir; /* a directory in it was removed in this epoch */
    bool node_released; /* no longer used: freed with the epoch */
    bool node_orphan;   /* no links, and not released */
    uint32_t node_dir;  /* directory with a name of it not on disk; 0: none */
    uint32_t node_near; /* block after which to allocate the next */
    uint32_t node_next_read; /* offset at which a sequential reader continues */
    uint32_t node_found;     /* block of a directory: last entry found */
    uint32_t node_room;      /* blocks of a directory before it have no room */
    struct ext2_inode node_inode;
};

#define NODE_DIRS_MANY UINT32_MAX /* in node_dir: more than one */

#define NODES_MAX  512u
#define NODE_CHAIN 128u

/* ---- groups (alloc.c) --------------------------------------------------- */

struct group {
    struct ext2_group_desc group_desc;
    uint32_t group_free_blocks; /* by the bitmap */
    uint32_t group_free_inodes;
    uint32_t group_first;  /* block */
    uint32_t group_blocks; /* how many */
    uint32_t group_copy;   /* first ones, with the copy of the superblock */
    /* Bitmaps of blocks and inodes freed in this epoch, which cannot be
     * reallocated before its end; NULL: none. */
    uint8_t *group_deferred_blocks;
    uint8_t *group_deferred_inodes;
    bool group_dirty;
};

/* ---- the journal (journal.c) -------------------------------------------- */

/* Its superblock, a transaction, and a block to verify that it ends there. */
#define JOURNAL_BLOCKS (1 + 1 + JOURNAL_TAGS + 1 + 1)

struct journal {
    bool jrn_usable;
    uint32_t jrn_block[JOURNAL_BLOCKS]; /* disk addresses of its first blocks */
    struct journal_super jrn_super;     /* as on the disk */
};

/* ---- the file system ---------------------------------------------------- */

struct ext2 {
    struct ext2_disk fs_disk;
    struct ext2_super fs_super;
    struct ext2_counts fs_counts;
    const char *fs_read_only; /* why, or NULL */
    bool fs_failed;           /* the disk failed: nothing is written any more */
    bool fs_suspect;          /* not unmounted cleanly, and not repaired */
    uint32_t fs_block_size;
    uint32_t fs_block_sectors;
    uint32_t fs_pointers; /* numbers in a block */
    uint32_t fs_inode_size;
    uint32_t fs_first_inode;
    uint32_t fs_desc_blocks;
    bool fs_filetype;
    uint32_t fs_time; /* about when it was mounted */
    uint32_t fs_time_zero;

    struct group *fs_group;
    uint32_t fs_groups;
    uint32_t fs_deferred; /* blocks and inodes that the epoch's end frees */

    struct buffer *fs_buffer; /* fs_buffers of them */
    uint32_t fs_buffers;
    struct buffer **fs_hash; /* fs_buffers chains */
    struct list fs_lru;
    struct buffer **fs_sorted; /* fs_buffers, for writing */
    uint8_t *fs_run;           /* RUN_BYTES: data of one write */
    uint8_t *fs_ahead;         /* data of one read */
    uint32_t fs_dirty_meta;    /* buffers that only a commit writes */
    bool fs_unflushed;         /* something was written after the last flush */

    struct node *fs_node_hash[NODE_CHAIN];
    struct list fs_nodes;
    uint32_t fs_node_count;
    uint32_t fs_node_dirty;
    uint32_t fs_orphans;

    struct edit fs_edit[EDITS_MAX];
    uint32_t fs_edits;

    struct journal fs_journal;
};

#define RUN_BYTES 65536u

/* ---- super.c ------------------------------------------------------------ */

/* The disk's contents are invalid: reports it once and marks the file system as
 * damaged and read-only. Returns -EIO. */
int ext2_damage(struct ext2 *fs, const char *what, uint32_t number);

/* Writes the superblock. 0 or -EIO. */
int super_write(struct ext2 *fs);

uint32_t ext2_now(struct ext2 *fs);

/* ---- feature.c ---------------------------------------------------------- */

/* The unsupported features that forbid any use, and those that forbid
 * writing. */
uint32_t features_incompatible(const struct ext2_super *s);
uint32_t features_read_only(const struct ext2_super *s);
/* Names all of them, and says how to create a disk without. Valid until the
 * next call. */
const char *features_describe(const struct ext2_super *s);

/* ---- buffer.c ----------------------------------------------------------- */

int buffers_create(struct ext2 *fs, uint32_t bytes);
void buffers_destroy(struct ext2 *fs);

/* A block with its contents, held until buffer_put. */
int buffer_get(struct ext2 *fs, uint32_t block, enum buffer_kind kind,
               struct buffer **out);
/* The same to be overwritten entirely: not read, not cleared. */
int buffer_take(struct ext2 *fs, uint32_t block, enum buffer_kind kind,
                struct buffer **out);
/* A newly allocated block: zeroes, dirty, fresh. */
int buffer_new(struct ext2 *fs, uint32_t block, enum buffer_kind kind,
               struct buffer **out);
void buffer_put(struct buffer *b);
void buffer_dirty(struct ext2 *fs, struct buffer *b);
/* Drops its contents. */
void buffer_forget(struct ext2 *fs, uint32_t block);
/* The block if it is in memory: not held. */
struct buffer *buffer_find(const struct ext2 *fs, uint32_t block);
/* Reads n blocks, at most 64 KiB, in one request, and keeps those that are not
 * in memory. Errors appear when the blocks are used. */
void buffer_ahead(struct ext2 *fs, uint32_t block, uint32_t n);

/* Writes the dirty buffers with buf_mark, in order, in few requests. */
int buffer_write_marked(struct ext2 *fs);
/* Writes one that is dirty. */
int buffer_write(struct ext2 *fs, struct buffer *b);
/* Writes all that is dirty of a kind. */
int buffer_write_kind(struct ext2 *fs, enum buffer_kind kind);
int disk_read(struct ext2 *fs, uint32_t sector, uint32_t n, void *buf);
int disk_write(struct ext2 *fs, uint32_t sector, uint32_t n, const void *buf);
int disk_flush(struct ext2 *fs);
/* After a failed write the disk is not written to again: all writes so far were
 * in order. -EIO. */
int disk_failed(struct ext2 *fs);

/* ---- alloc.c ------------------------------------------------------------ */

int groups_read(struct ext2 *fs, const char **why);
void groups_destroy(struct ext2 *fs);
/* Copies changed descriptors to their buffers. */
int groups_store(struct ext2 *fs);

/* Bit i of a bitmap. */
static inline bool bit(const uint8_t *map, uint32_t i)
{
    return map[i / 8] & 1u << i % 8;
}

/* Whether a block may belong to a file. */
bool block_valid(const struct ext2 *fs, uint32_t block);
/* Whether it is its group's own: descriptors, bitmaps, inodes. */
bool block_own(const struct ext2 *fs, uint32_t block);
/* Whether it holds inodes. */
bool block_of_inodes(const struct ext2 *fs, uint32_t block);
/* 1: in use by the bitmap; 0: free. */
int block_used(struct ext2 *fs, uint32_t block);
/* Allocates a block, at or after `goal` if possible. */
int block_alloc(struct ext2 *fs, uint32_t goal, uint32_t *out);
int block_free(struct ext2 *fs, uint32_t block);
int inode_alloc(struct ext2 *fs, uint32_t parent, bool directory,
                uint32_t *out);
int inode_free(struct ext2 *fs, uint32_t number, bool directory);
/* Makes freed blocks and inodes available again. */
int deferred_apply(struct ext2 *fs);
/* Or leaves them marked, for e2fsck to find. */
void deferred_drop(struct ext2 *fs);
uint32_t blocks_free(const struct ext2 *fs);
uint32_t inodes_free(const struct ext2 *fs);
static inline uint32_t inode_group(const struct ext2 *fs, uint32_t number)
{
    return (number - 1) / fs->fs_super.s_inodes_per_group;
}

/* ---- node.c ------------------------------------------------------------- */

/* An inode, held until node_put. -ENOENT: it is free. */
int node_get(struct ext2 *fs, uint32_t number, struct node **out);
/* The same, or -ENOTDIR; or -EISDIR if it is a directory, -EINVAL if it is
 * neither. */
int node_get_dir(struct ext2 *fs, uint32_t number, struct node **out);
int node_get_file(struct ext2 *fs, uint32_t number, struct node **out);
/* The block of the table with an inode, held, and its offset. */
int inode_block(struct ext2 *fs, uint32_t number, struct buffer **out,
                uint32_t *offset);
/* Reads the inode from disk, in use or not. */
int inode_load(struct ext2 *fs, uint32_t number, struct ext2_inode *out);
/* A new node, unborn and dirty. */
int node_new(struct ext2 *fs, uint32_t number, struct node **out);
void node_put(struct node *n);
void node_dirty(struct ext2 *fs, struct node *n);
/* Likewise; and its time of change is now. */
void node_changed(struct ext2 *fs, struct node *n);
/* Notes that `dir` has a new name of the inode. */
void node_name(struct node *n, const struct node *dir);
/* Clears the dirty flag: 0. */
int node_clean(struct ext2 *fs, struct node *n);
/* Copies it to its buffer; no longer dirty. */
int node_store(struct ext2 *fs, struct node *n);
void node_free(struct ext2 *fs, struct node *n);
void nodes_destroy(struct ext2 *fs);

static inline uint16_t node_type(const struct node *n)
{
    return n->node_inode.i_mode & MODE_TYPE;
}

static inline bool node_is_dir(const struct node *n)
{
    return node_type(n) == MODE_DIRECTORY;
}

/* ---- map.c -------------------------------------------------------------- */

/* Largest size of a file, in bytes. */
uint32_t map_size_max(const struct ext2 *fs);
/* The block number of a file's block; 0: a hole. */
int map_get(struct ext2 *fs, struct node *n, uint32_t index, uint32_t *block);
/* The same; allocates a block for a hole: *made. */
int map_make(struct ext2 *fs, struct node *n, uint32_t index, uint32_t *block,
             bool *made);
/* Frees the blocks from `index` on. */
int map_cut(struct ext2 *fs, struct node *n, uint32_t index);
/* Whether i_block holds block numbers. */
bool map_has_blocks(const struct ext2 *fs, const struct ext2_inode *inode);

/* ---- dir.c, dir_room.c -------------------------------------------------- */

/* An entry, in a held buffer. */
struct place {
    struct buffer *place_buffer;
    uint32_t place_offset; /* in the block */
    uint32_t place_block;  /* of the directory */
};

struct ext2_dirent *place_entry(const struct place *p);

/* A block of a directory, whose entries have been checked. */
int dir_block(struct ext2 *fs, struct node *dir, uint32_t index,
              struct buffer **out);
/* 1: found, call place_put; 0: not found. */
int dir_find(struct ext2 *fs, struct node *dir, const char *name, uint32_t len,
             struct place *place);
/* Finds the entry of a number; likewise. */
int dir_find_number(struct ext2 *fs, struct node *dir, uint32_t number,
                    struct place *place);
/* Whether an entry is "." or "..". */
bool dir_dots(const struct ext2_dirent *d);
/* 1: only "." and ".."; 0: more. */
int dir_empty(struct ext2 *fs, struct node *dir);
static inline void place_put(struct place *p)
{
    buffer_put(p->place_buffer);
}
uint8_t dir_type(const struct ext2 *fs, const struct node *n);

/* Removes the directory's index, on disk too: changes of entries do not update
 * it, and a new entry may overwrite it. */
int dir_no_index(struct ext2 *fs, struct node *dir);
/* Ensures that a name has room. May commit, may extend the directory. *place is
 * held. */
int dir_room(struct ext2 *fs, struct node *dir, const char *name, uint32_t len,
             struct place *place);
/* Moves *place, an entry, to room for a name in the same sector. */
bool dir_room_beside(struct ext2 *fs, struct place *place, uint32_t len);
/* Whether the entry could get a name of that length with a change of one
 * sector. */
bool dir_fits(const struct place *place, uint32_t len);
/* Stores the entry where dir_room said. */
void dir_put(struct ext2 *fs, struct place *place, const char *name,
             uint32_t len, uint32_t number, uint8_t type);
/* The first block of a new directory. */
int dir_begin(struct ext2 *fs, struct node *dir, uint32_t parent);

/* ---- name.c ------------------------------------------------------------- */

/* Removes a link; without any the file is an orphan. */
void node_drop_link(struct ext2 *fs, struct node *n);
/* Removes an entry. `at_once` is for an inode that has no links on disk, and is
 * written in this epoch only if it has another name, after step "names". (An
 * fsync of another file may have written the entry.) */
void dir_take(struct ext2 *fs, struct node *dir, struct place *place,
              bool at_once);
/* Call when the inode has no name any more; it exists while it is open. */
void node_orphan(struct ext2 *fs, struct node *n);
/* Whether it is a directory that can be removed: 0, -ENOTDIR, -ENOTEMPTY. */
int dir_removable(struct ext2 *fs, struct node *n);
/* This directory has lost a subdirectory. */
void dir_lost(struct node *dir);

/* ---- rename.c ----------------------------------------------------------- */

/* Temporary names used only by rename; reserved. */
#define SHELTER ".replaced-"
bool name_reserved(const char *name);
/* The temporary name of an inode; returns its length. */
uint32_t temporary_name(uint32_t number, char *out, uint32_t size);
/* Whether that is the entry of such a name. */
bool entry_is_temporary(const struct ext2_dirent *d);

/* ---- journal.c ---------------------------------------------------------- */

/* Looks for a usable journal and replays what a power failure left in it. 0;
 * -ENOSYS: a journal of another system must be replayed; -EIO. *why describes
 * the error. */
int journal_open(struct ext2 *fs, const char **why);
/* Writes n held dirty buffers, at most JOURNAL_TAGS, to disk, all or none.
 * Everything else has been written before. */
int journal_write(struct ext2 *fs, struct buffer **b, uint32_t n);

/* ---- recover.c ---------------------------------------------------------- */

/* Repairs a file system after a crash and clears fs_suspect, or mounts it
 * read-only. */
void ext2_recover(struct ext2 *fs);

/* ---- commit.c ----------------------------------------------------------- */

/* Call before each change: -EROFS; commits if there are many changes. */
int epoch_begin(struct ext2 *fs);
/* Writes everything to disk and begins a new epoch. 0 or -EIO. */
int epoch_commit(struct ext2 *fs);
bool epoch_clean(const struct ext2 *fs);

/* The entry refers to `after` in memory now, and on disk from `step` of the
 * next commit on. epoch_begin has ensured room. */
void edit_add(struct ext2 *fs, struct node *dir, struct place *place,
              uint32_t after, uint8_t type, enum edit_step step);
bool edit_at(const struct ext2 *fs, const struct buffer *b, uint32_t offset);
/* Whether that name is being removed from the directory in this epoch. */
bool edit_of_name(const struct ext2 *fs, uint32_t dir, const char *name,
                  uint32_t len);
