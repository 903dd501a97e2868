/*
 * The ext2 format on disk, after Dave Poirier's "The Second Extended File
 * System" and the Linux kernel's Documentation/filesystems/ext2.rst; the
 * journal after Documentation/filesystems/ext4/journal.rst. All numbers are
 * little-endian, except in the journal.
 *
 *     byte 0      boot block
 *     byte 1024   superblock
 *     next block  group descriptors
 *     then, in each group of 8 * block size blocks or less:
 *         (copy of superblock and descriptors) block bitmap, inode bitmap,
 *         inode table, blocks of files
 */
#pragma once

#include "kernel/lib/types.h"

#define EXT2_SUPER_SECTOR  2u /* the superblock's two sectors */
#define EXT2_SUPER_SECTORS 2u
#define EXT2_MAGIC         0xef53
#define EXT2_ROOT          2u
#define EXT2_FIRST_OLD     11u /* first inode for files, in revision 0 */
#define EXT2_INODE_OLD     128u

enum {
    STATE_VALID = 1,
    STATE_ERRORS = 2
};

enum {
    COMPAT_HAS_JOURNAL = 4,
    COMPAT_DIR_INDEX = 0x20,
    COMPAT_SPARSE_SUPER2 = 0x200
};
enum {
    INCOMPAT_FILETYPE = 2,
    INCOMPAT_RECOVER = 4 /* the journal may have something to replay */
};
enum {
    RO_COMPAT_SPARSE_SUPER = 1,
    RO_COMPAT_LARGE_FILE = 2
};

struct ext2_super {
    uint32_t s_inodes_count;
    uint32_t s_blocks_count;
    uint32_t s_r_blocks_count;
    uint32_t s_free_blocks_count;
    uint32_t s_free_inodes_count;
    uint32_t s_first_data_block; /* 1 with blocks of 1 KiB, else 0 */
    uint32_t s_log_block_size;   /* 1024 << this */
    uint32_t s_log_frag_size;
    uint32_t s_blocks_per_group;
    uint32_t s_frags_per_group;
    uint32_t s_inodes_per_group;
    uint32_t s_mtime, s_wtime; /* mounted, written: seconds since 1970 */
    uint16_t s_mnt_count, s_max_mnt_count;
    uint16_t s_magic;
    uint16_t s_state;
    uint16_t s_errors;
    uint16_t s_minor_rev;
    uint32_t s_lastcheck, s_checkinterval;
    uint32_t s_creator_os;
    uint32_t s_rev_level; /* 0: the following fields do not exist */
    uint16_t s_def_resuid, s_def_resgid;
    uint32_t s_first_ino;
    uint16_t s_inode_size;
    uint16_t s_block_group_nr;
    uint32_t s_feature_compat;
    uint32_t s_feature_incompat;  /* an unsupported one: do not mount */
    uint32_t s_feature_ro_compat; /* an unsupported one: read-only */
    uint8_t s_uuid[16], s_volume_name[16], s_last_mounted[64];
    uint32_t s_algo_bitmap;
    uint8_t s_prealloc_blocks, s_prealloc_dir_blocks;
    uint16_t s_reserved_gdt_blocks; /* after the descriptors */
    uint8_t s_journal_uuid[16];     /* of a journal on another disk */
    uint32_t s_journal_inum;        /* else: its inode */
    uint8_t s_not_used[360];
    uint32_t s_backup_bgs[2]; /* COMPAT_SPARSE_SUPER2: groups with copies */
    uint8_t s_not_used_either[44];
    uint32_t s_orphan_file_inum; /* an inode without a name; 0: none */
    uint8_t s_rest[380];
};
_Static_assert(sizeof(struct ext2_super) == 1024, "the superblock's size");

struct ext2_group_desc {
    uint32_t bg_block_bitmap;
    uint32_t bg_inode_bitmap;
    uint32_t bg_inode_table;
    uint16_t bg_free_blocks_count;
    uint16_t bg_free_inodes_count;
    uint16_t bg_used_dirs_count;
    uint16_t bg_pad;
    uint32_t bg_reserved[3];
};
_Static_assert(sizeof(struct ext2_group_desc) == 32, "a descriptor's size");

/* i_block: 12 block numbers, then one indirect, one doubly and one triply
 * indirect block. */
#define EXT2_DIRECT   12u
#define EXT2_POINTERS 15u

enum {
    MODE_TYPE = 0xf000,
    MODE_FIFO = 0x1000,
    MODE_CHAR = 0x2000,
    MODE_DIRECTORY = 0x4000,
    MODE_BLOCK = 0x6000,
    MODE_REGULAR = 0x8000,
    MODE_LINK = 0xa000,
    MODE_SOCKET = 0xc000,
};

#define EXT2_INDEX_FL 0x1000u /* a directory with an index of hashes */
#define EXT2_LINK_MAX 32000u

struct ext2_inode {
    uint16_t i_mode;
    uint16_t i_uid;
    uint32_t i_size;
    uint32_t i_atime, i_ctime, i_mtime, i_dtime; /* dtime: deleted */
    uint16_t i_gid;
    uint16_t i_links_count; /* 0: the inode is free, or nearly */
    uint32_t i_blocks;      /* units of 512 bytes, with indirect blocks */
    uint32_t i_flags;
    uint32_t i_osd1;
    uint32_t i_block[EXT2_POINTERS];
    uint32_t i_generation;
    uint32_t i_file_acl;  /* a block of extended attributes */
    uint32_t i_size_high; /* of regular files */
    uint32_t i_faddr;
    uint8_t i_osd2[12];
};
_Static_assert(sizeof(struct ext2_inode) == EXT2_INODE_OLD, "an inode's size");

/* A directory is a file of these entries, which fill each block exactly. Inode
 * 0: the entry is free. Without INCOMPAT_FILETYPE the type is 0. */
struct ext2_dirent {
    uint32_t d_inode;
    uint16_t d_rec_len; /* to the next entry; a multiple of 4 */
    uint8_t d_name_len;
    uint8_t d_file_type;
    char d_name[];
};

#define EXT2_NAME_MAX     255u
#define DIRENT_HEAD       8u
#define DIRENT_MIN        12u
#define DIRENT_SIZE(name) ROUND_UP(DIRENT_HEAD + (uint32_t)(name), 4u)

enum {
    TYPE_UNKNOWN,
    TYPE_REGULAR,
    TYPE_DIRECTORY,
    TYPE_CHAR,
    TYPE_BLOCK,
    TYPE_FIFO,
    TYPE_SOCKET,
    TYPE_LINK,
};

/* A block of extended attributes; inodes may share it. */
#define EXT2_ATTR_MAGIC 0xea020000u
struct ext2_attr_block {
    uint32_t h_magic;
    uint32_t h_refcount;
    uint32_t h_blocks;
};

/*
 * The journal is a file with an inode of its own, and all numbers in it are
 * big-endian. Its first block begins with a struct journal_super, of which one
 * sector is in use. A transaction is
 *
 *     descriptor, which says where the blocks belong
 *     the blocks: one that begins like a header, with the magic number, has
 *         zeroes there, and JOURNAL_ESCAPED in its tag
 *     commit, which is a header
 *
 * with the same sequence number in both; the next one's is one higher.
 */
#define JOURNAL_INODE 8u
#define JOURNAL_MAGIC 0xc03b3998u

enum {
    JOURNAL_DESCRIPTOR = 1,
    JOURNAL_COMMIT = 2,
    JOURNAL_SUPER = 4,
};

struct journal_header {
    uint32_t h_magic;
    uint32_t h_type;
    uint32_t h_sequence;
};

enum {
    JOURNAL_REVOKES = 1 /* incompatible; set by Linux, not used here */
};

struct journal_super {
    struct journal_header j_header;
    uint32_t j_blocksize;
    uint32_t j_blocks;
    uint32_t j_first; /* first block of the journal for transactions */
    uint32_t j_sequence;
    uint32_t j_start; /* of the first transaction; 0: none */
    uint32_t j_errno;
    uint32_t j_compat, j_incompat, j_ro_compat;
    uint8_t j_uuid[16];
    uint8_t j_rest[448];
};
_Static_assert(sizeof(struct journal_super) == 512, "one sector");

enum {
    JOURNAL_ESCAPED = 1,
    JOURNAL_SAME = 2, /* no UUID after this tag: as in the one before */
    JOURNAL_LAST = 8,
};

struct journal_tag {
    uint32_t t_block;
    uint16_t t_checksum; /* 0: without that feature */
    uint16_t t_flags;
};

#define JOURNAL_TAGS 4u /* in a transaction written here */

struct journal_descriptor {
    struct journal_header d_header;
    struct journal_tag d_first;
    uint8_t d_uuid[16];
    struct journal_tag d_more[JOURNAL_TAGS - 1];
};
