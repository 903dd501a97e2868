/*
 * What kernel/fs/userfs.c and userfs_ops.c share with one another alone.
 */
#pragma once

#include "kernel/fs/userfs.h"

struct userfs {
    struct fs userfs_fs; /* first */
    /* By sched_lock: */
    struct port *userfs_port;         /* with a reference */
    struct wait_queue userfs_waiting; /* for a successor */
    uint64_t userfs_lost_ms; /* when the port was found dead; 0: it lives */
    uint32_t userfs_servers; /* how many it had so far */
    uint32_t userfs_requests;
    bool userfs_changing; /* another port is just taking over */
    char userfs_kind[FS_NAME_MAX + 1];
};

static inline struct userfs *userfs_of(const struct fs *fs)
{
    return (struct userfs *)fs;
}

/* One request, and its answer. */
struct userfs_request {
    uint32_t request_words[4]; /* tag and words; afterwards the answer's */
    struct ipc_buffer request_buffer;
    bool request_once; /* must not be done a second time, should the server die
                       in the middle of it */
    uint32_t
        request_servers;    /* userfs_servers: it is meant for that one; 0: for
                              whichever there is */
    unsigned request_tries; /* servers that have died in the middle of it */
};

/* What userfs_call returns besides: now there is another server, which perhaps
 * does not know of what the request is about. The call is as it was. */
#define USERFS_ANOTHER INT32_MIN

/* Sends it and waits for the answer: the server's result, 0 or more, or an
 * error, its or the kernel's. While the server is dead it waits for the next
 * one; -EIO if none comes. */
int32_t userfs_call(struct userfs *u, struct userfs_request *c);

/* The same for what must reach the server although the task may be dying, and
 * does not matter if that server is no more. */
void userfs_call_patient(struct userfs *u, struct userfs_request *c);

/* What a server says of its file system, if that makes sense. */
int userfs_read_stat(struct port *port, struct fs_stat *out);

extern const struct fs_ops userfs_ops;
