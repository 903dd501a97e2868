/*
 * What kernel/fs/userfs.c and userfs_ops.c share with one another alone.
 */
#pragma once

#include "kernel/fs/userfs.h"

struct remote {
    struct fs remote_fs; /* first */
    /* By sched_lock: */
    struct port *remote_port;         /* with a reference */
    struct wait_queue remote_waiting; /* for a successor */
    uint64_t remote_lost_ms; /* when the port was found dead; 0: it lives */
    uint32_t remote_servers; /* how many it had so far */
    uint32_t remote_requests;
    bool remote_changing; /* another port is just taking over */
    char remote_kind[FS_NAME_MAX + 1];
};

static inline struct remote *remote_of(const struct fs *fs)
{
    return (struct remote *)fs;
}

/* One request, and its answer. */
struct remote_call {
    uint32_t call_words[4]; /* tag and words; afterwards the answer's */
    struct ipc_buffer call_buffer;
    bool call_once; /* must not be done a second time, should the server die
                       in the middle of it */
    uint32_t call_servers; /* remote_servers: it is meant for that one; 0: for
                              whichever there is */
    unsigned call_tries;   /* servers that have died in the middle of it */
};

/* What remote_ask returns besides: now there is another server, which perhaps
 * does not know of what the request is about. The call is as it was. */
#define REMOTE_ANOTHER INT32_MIN

/* Sends it and waits for the answer: the server's result, 0 or more, or an
 * error, its or the kernel's. While the server is dead it waits for the next
 * one; -EIO if none comes. */
int32_t remote_ask(struct remote *r, struct remote_call *c);

/* The same for what must reach the server although the task may be dying, and
 * does not matter if that server is no more. */
void remote_tell(struct remote *r, struct remote_call *c);

/* What a server says of its file system, if that makes sense. */
int remote_read_stat(struct port *port, struct fs_stat *out);

extern const struct fs_ops remote_ops;
