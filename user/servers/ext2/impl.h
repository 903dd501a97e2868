/*
 * What the files of the core know of each other.
 *
 *     struct ext2 ──> struct group        a descriptor, counts, what is going
 *                 ──> struct node         an inode in memory
 *                 ──> struct buffer       a block in memory
 *                 ──> struct edit         an entry that must not change yet
 */
#pragma once

#include "kernel/lib/list.h"
#include "user/servers/ext2/ext2.h"
#include "user/servers/ext2/format.h"

/* ---- blocks in memory (buffer.c) ---------------------------------------- */

/* What a block is decides when it may be written (commit.c). */
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
    uint16_t buf_refs;
    uint8_t buf_kind;
    bool buf_dirty;
    bool buf_fresh;    /* nothing on the disk refers to it yet */
    bool buf_checked;  /* a directory's entries have been */
    bool buf_mark;     /* chosen for the step of a commit under way */
    uint8_t *buf_data; /* fs_block_size bytes */
};

/* An entry of a directory whose number has changed in memory, but must stay on
 * the disk as it was until a certain step of the next commit. */
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
    bool node_unborn;   /* on the disk it has no links yet */
    bool node_grew;     /* a directory with a block that the disk's lacks */
    bool node_lost_dir; /* a directory in it was removed in this epoch */
    bool node_released; /* nobody wants it any more: ends with the epoch */
    bool node_orphan;   /* no links, and not released */
    uint32_t node_near; /* block behind which the next one would be good */
    uint32_t node_next_read; /* offset at which a sequential reader goes on */
    uint32_t node_found;     /* block of a directory: last entry found there */
    uint32_t node_room;      /* blocks of a directory before it have no room */
    struct ext2_inode node_inode;
};

#define NODES_MAX  512u
#define NODE_CHAIN 128u

/* ---- groups (alloc.c) --------------------------------------------------- */

struct group {
    struct ext2_group_desc group_desc;
    uint32_t group_free_blocks; /* by the bitmap */
    uint32_t group_free_inodes;
    uint32_t group_first;  /* block */
    uint32_t group_blocks; /* how many */
    uint32_t group_copy;   /* of them, in front, of superblock and so on */
    /* Bitmaps of what was freed in this epoch and cannot be had again before
     * its end; NULL: nothing. */
    uint8_t *group_gone_blocks;
    uint8_t *group_gone_inodes;
    bool group_dirty;
};

/* ---- the journal (journal.c) -------------------------------------------- */

/* Its own superblock, a transaction, and a block to see that this was all. */
#define JOURNAL_BLOCKS (1 + 1 + JOURNAL_TAGS + 1 + 1)

struct journal {
    bool jrn_usable;
    uint32_t jrn_block[JOURNAL_BLOCKS]; /* the disk's of the journal's first */
    struct journal_super jrn_super;     /* as on the disk */
};

/* ---- the whole ---------------------------------------------------------- */

struct ext2 {
    struct ext2_disk fs_disk;
    struct ext2_super fs_super;
    struct ext2_counts fs_counts;
    const char *fs_read_only; /* why, or NULL */
    bool fs_failed;           /* the disk: nothing is written any more */
    bool fs_suspect; /* it was not left clean, and has not been repaired */
    uint32_t fs_block_size;
    uint32_t fs_block_sectors;
    uint32_t fs_pointers; /* numbers in a block */
    uint32_t fs_inode_size;
    uint32_t fs_first_inode;
    uint32_t fs_desc_blocks;
    bool fs_filetype;
    uint32_t fs_time; /* when it was mounted, or so */
    uint32_t fs_time_zero;

    struct group *fs_group;
    uint32_t fs_groups;
    uint32_t fs_gone; /* blocks and inodes that the epoch's end frees */

    struct buffer *fs_buffer; /* fs_buffers of them */
    uint32_t fs_buffers;
    struct buffer **fs_hash; /* fs_buffers chains */
    struct list fs_lru;
    struct buffer **fs_sorted; /* fs_buffers, for writing */
    uint8_t *fs_run;           /* RUN_BYTES: what is written in one request */
    uint8_t *fs_ahead;         /* and what is read */
    uint32_t fs_dirty_meta;    /* buffers that only a commit writes */

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

/* What is on the disk makes no sense: says so once, marks the file system as
 * damaged, and nothing changes any more. Returns -EIO. */
int ext2_damage(struct ext2 *fs, const char *what, uint32_t number);

/* The superblock, as it is in memory. 0 or -EIO. */
int super_write(struct ext2 *fs);

uint32_t ext2_now(struct ext2 *fs);

/* ---- buffer.c ----------------------------------------------------------- */

int buffers_create(struct ext2 *fs, uint32_t bytes);
void buffers_destroy(struct ext2 *fs);

/* A block with its contents, held until buffer_put. */
int buffer_get(struct ext2 *fs, uint32_t block, enum buffer_kind kind,
               struct buffer **out);
/* The same, for who will overwrite all of it: not read, not cleared. */
int buffer_take(struct ext2 *fs, uint32_t block, enum buffer_kind kind,
                struct buffer **out);
/* A block that was just allocated: zeroes, dirty, fresh. */
int buffer_new(struct ext2 *fs, uint32_t block, enum buffer_kind kind,
               struct buffer **out);
void buffer_put(struct buffer *b);
void buffer_dirty(struct ext2 *fs, struct buffer *b);
/* Its contents mean nothing any more. */
void buffer_forget(struct ext2 *fs, uint32_t block);
/* The block if it is in memory: not held. */
struct buffer *buffer_find(const struct ext2 *fs, uint32_t block);
/* Brings n blocks, 64 KiB at most, of which none is in memory, with one
 * request. What goes wrong shows when they are asked for. */
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
/* A disk that does not take what it should is not written to again: what is
 * there has been written in order so far. -EIO. */
int disk_failed(struct ext2 *fs);

/* ---- alloc.c ------------------------------------------------------------ */

int groups_read(struct ext2 *fs, const char **why);
void groups_destroy(struct ext2 *fs);
/* Descriptors that have changed go into their buffers. */
int groups_store(struct ext2 *fs);

/* True if a block may belong to a file. */
bool block_valid(const struct ext2 *fs, uint32_t block);
/* True if it is its group's own: descriptors, bitmaps, inodes. */
bool block_own(const struct ext2 *fs, uint32_t block);
/* True if it is one of inodes. */
bool block_of_inodes(const struct ext2 *fs, uint32_t block);
/* 1: the bitmap says that it is in use; 0: it does not. */
int block_used(struct ext2 *fs, uint32_t block);
/* A block, at or behind `goal` if possible. */
int block_alloc(struct ext2 *fs, uint32_t goal, uint32_t *out);
int block_free(struct ext2 *fs, uint32_t block);
int inode_alloc(struct ext2 *fs, uint32_t parent, bool directory,
                uint32_t *out);
int inode_free(struct ext2 *fs, uint32_t number, bool directory);
/* What was freed can be had again. */
int gone_apply(struct ext2 *fs);
/* Or it stays as it is, for e2fsck to find. */
void gone_drop(struct ext2 *fs);
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
/* The block of the table that has an inode, held, and where in it. */
int inode_block(struct ext2 *fs, uint32_t number, struct buffer **out,
                uint32_t *offset);
/* What the disk has, in use or not. */
int inode_load(struct ext2 *fs, uint32_t number, struct ext2_inode *out);
/* A new one, unborn and dirty. */
int node_new(struct ext2 *fs, uint32_t number, struct node **out);
void node_put(struct node *n);
void node_dirty(struct ext2 *fs, struct node *n);
/* Only no longer dirty: 0. */
int node_clean(struct ext2 *fs, struct node *n);
/* Into its buffer; no longer dirty. */
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
/* The disk's block of a file's; 0: a hole. */
int map_get(struct ext2 *fs, struct node *n, uint32_t index, uint32_t *block);
/* The same, with a new block in place of a hole: *made. */
int map_make(struct ext2 *fs, struct node *n, uint32_t index, uint32_t *block,
             bool *made);
/* Frees the blocks from `index` on. */
int map_cut(struct ext2 *fs, struct node *n, uint32_t index);
/* Whether i_block holds numbers of blocks at all. */
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
/* 1: found, and *place to be put; 0: there is none. */
int dir_find(struct ext2 *fs, struct node *dir, const char *name, uint32_t len,
             struct place *place);
/* The entry of a number; the same. */
int dir_find_number(struct ext2 *fs, struct node *dir, uint32_t number,
                    struct place *place);
/* Whether an entry is "." or "..". */
bool dir_dots(const struct ext2_dirent *d);
/* 1: nothing but "." and ".."; 0: there is more. */
int dir_empty(struct ext2 *fs, struct node *dir);
static inline void place_put(struct place *p)
{
    buffer_put(p->place_buffer);
}
uint8_t dir_type(const struct ext2 *fs, const struct node *n);

/* Sees to it that a name has room. May commit, may make the directory longer.
 * *place is held. */
int dir_room(struct ext2 *fs, struct node *dir, const char *name, uint32_t len,
             struct place *place);
/* Moves *place, an entry, to where a name has room in the same sector. */
bool dir_room_beside(struct ext2 *fs, struct place *place, uint32_t len);
/* Whether the entry could have a name of that length instead of its own, with
 * one sector changed. */
bool dir_fits(const struct place *place, uint32_t len);
/* Puts the entry where dir_room said. */
void dir_put(struct ext2 *fs, struct place *place, const char *name,
             uint32_t len, uint32_t number, uint8_t type);
/* The first block of a new directory. */
int dir_begin(struct ext2 *fs, struct node *dir, uint32_t parent);

/* ---- name.c -------------------------------------------------------------- */

/* One name less; without any the file is an orphan. */
void node_drop_link(struct ext2 *fs, struct node *n);
/* Takes an entry away. At once: if the disk has neither it nor its inode, and
 * will have the inode in this epoch only with another name from the step
 * "names" on. */
void dir_take(struct ext2 *fs, struct node *dir, struct place *place,
              bool at_once);
/* No name leads to it any more; whoever has it open keeps it alive. */
void node_orphan(struct ext2 *fs, struct node *n);
/* Whether it is a directory that may go: 0, -ENOTDIR, -ENOTEMPTY. */
int dir_removable(struct ext2 *fs, struct node *n);
/* A directory less is in this one. */
void dir_lost(struct node *dir);

/* ---- rename.c ------------------------------------------------------------ */

/* Names that only rename makes, for a moment: nobody else may. */
#define SHELTER ".replaced-"
bool name_reserved(const char *name);
/* That of an inode; how long it is. */
uint32_t shelter_name(uint32_t number, char *out, uint32_t size);
/* Whether that is the entry of such a name. */
bool entry_shelters(const struct ext2_dirent *d);

/* ---- journal.c ----------------------------------------------------------- */

/* Looks whether there is a journal that can be used, and brings to its end what
 * a power cut has left in it. 0; -ENOSYS: what has to be replayed was not made
 * here; -EIO. *why says it in words. */
int journal_open(struct ext2 *fs, const char **why);
/* Brings n held dirty buffers, JOURNAL_TAGS at most, to the disk: all of them
 * whatever happens, or none. Everything else is there already. */
int journal_write(struct ext2 *fs, struct buffer **b, uint32_t n);

/* ---- recover.c ----------------------------------------------------------- */

/* After a crash: fs_suspect goes if all could be put right. */
int ext2_recover(struct ext2 *fs);

/* ---- commit.c ----------------------------------------------------------- */

/* Before each change: -EROFS; commits if too much has come together. */
int epoch_begin(struct ext2 *fs);
/* Everything to the disk, and a new epoch. 0 or -EIO. */
int epoch_commit(struct ext2 *fs);
bool epoch_clean(const struct ext2 *fs);

/* In memory the entry refers to `after` from now on, on the disk from `step`
 * of the next commit on. epoch_begin has made room. */
void edit_add(struct ext2 *fs, struct node *dir, struct place *place,
              uint32_t after, uint8_t type, enum edit_step step);
bool edit_at(const struct ext2 *fs, const struct buffer *b, uint32_t offset);
/* True if that name is being removed from the directory in this epoch. */
bool edit_of_name(const struct ext2 *fs, uint32_t dir, const char *name,
                  uint32_t len);
