/*
 * The order of all spin locks: one may be acquired only while all that are held
 * have a lower rank. docs/locking.md says what each guards.
 */
#pragma once

enum lock_rank {
    LOCK_RANK_MOUNTS = 4,      /* kernel/fs/fs.c */
    LOCK_RANK_INODES = 5,      /* kernel/fs/inode.c: their list */
    LOCK_RANK_PIPES = 5,       /* kernel/fs/pipe.c: their list */
    LOCK_RANK_RAMFS = 6,       /* kernel/fs/ramfs.c */
    LOCK_RANK_CACHE_LIST = 10, /* mm/kmem_cache.c: the list of all caches */
    LOCK_RANK_CACHES = 12,     /* mm/others/slabs.c: the list of caches */
    LOCK_RANK_SET = 15,        /* there: a cache; slmb.c: a processor's pages */
    LOCK_RANK_CACHE = 20,      /* of each cache; oversize; unmapped slabs */
    LOCK_RANK_SEGKMEM = 30,    /* mm/segkmem.c: page ownership counts */
    LOCK_RANK_WATCH = 34,      /* tools/workshop/stress/ */
    LOCK_RANK_LOG = 35,        /* mm/debug/audit.c: the transaction log */
    LOCK_RANK_COMMIT = 38,     /* kernel/vm/commit.c; frees under it to buddy */
    LOCK_RANK_BUDDY = 40,      /* mm/buddy.c: the free lists */
    LOCK_RANK_CONSOLE = 45,    /* drivers/console.c */
    LOCK_RANK_SCHED = 50,      /* kernel/task/sched.c */
    LOCK_RANK_PIT = 55,        /* drivers/pit.c */
    LOCK_RANK_DEBUGCON = 56,   /* drivers/debugcon.c */
    LOCK_RANK_LAST = 60,       /* above all others: tools/workshop/bugs/ */
};
