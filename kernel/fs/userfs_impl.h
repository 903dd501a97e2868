/*
 * Private to kernel/fs/userfs.c and userfs_ops.c.
 */
#pragma once

#include "kernel/fs/userfs.h"

struct userfs {
    struct fs userfs_fs; /* first */
    /* Guarded by sched_lock: */
    struct port *userfs_port;         /* with a reference */
    struct wait_queue userfs_waiting; /* tasks waiting for a new server */
    uint64_t userfs_lost_ms; /* when the port was found dead; 0: it lives */
    uint32_t userfs_servers; /* servers so far */
    uint32_t userfs_requests;
    bool userfs_changing; /* another port is taking over */
    char userfs_kind[FS_NAME_MAX + 1];
};

static inline struct userfs *userfs_of(const struct fs *fs)
{
    return (struct userfs *)fs;
}

/* A request and its reply. */
struct userfs_request {
    uint32_t request_words[4]; /* tag and words; then the reply's */
    struct ipc_buffer request_buffer;
    bool request_once; /* must not be repeated if the server dies during it */
    uint32_t request_servers; /* the only userfs_servers it is for; 0: any */
    unsigned request_tries;   /* servers that died during it */
};

/* Another result of userfs_call: there is a new server, which may not know the
 * file of the request. The request is unchanged. */
#define USERFS_ANOTHER INT32_MIN

/* Sends a request and waits for the reply. Returns the server's result, 0 or
 * more, or an error of the server or the kernel. While the server is dead,
 * waits for the next one; -EIO if none comes. */
int32_t userfs_call(struct userfs *u, struct userfs_request *c);

/* The same for a request that must reach the server even if the task is dying,
 * and that is void if that server has died. */
void userfs_call_patient(struct userfs *u, struct userfs_request *c);

/* Asks a server about its file system and checks the reply. */
int userfs_read_stat(struct port *port, struct fs_stat *out);

extern const struct fs_ops userfs_ops;
