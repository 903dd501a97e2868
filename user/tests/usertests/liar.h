/*
 * The liar: a file server for tests, which answers truthfully but for the one
 * lie that the notification bits of its port name. It keeps a small tree that
 * never changes (f is "hello"):
 *
 *     1 ──> f 2
 *      └──> d 3 ──> s 4              x0 … x99: 100 … 199, files
 *
 * t_liar.c has the tables of lies.
 */
#pragma once

#include "user/lib/fs_server.h"

#define KEEP 0x7eeeeeee /* the truth */

enum trick {
    PLAIN,
    DIE,    /* ends instead of answering */
    HANG,   /* never answers this one */
    LABEL,  /* the answer has a label */
    HANDLE, /* a handle comes along */
    OWN,    /* uses its own file system */
    WRONG,  /* answers others first */
    DOWN,   /* d is in s, too */
    CYCLE,  /* and s is above d */
};

/* A false answer to a request. */
struct lie {
    uint32_t lie_label;
    int32_t lie_result; /* word 0, or KEEP */
    int32_t lie_word;   /* word 1, or KEEP */
    int32_t lie_bytes;  /* how many, or KEEP */
    int32_t lie_at;     /* where among them is … */
    uint32_t lie_value; /* … this word; lie_at KEEP: nowhere */
    int (*lie_try)(unsigned i);
    int lie_error; /* that lie_try comes to */
    enum trick lie_trick;
};

extern int liar_port; /* to call the liar by */
extern char liar_bytes[FS_DATA_MAX];

/* Lists of lies; label 0 ends each. The second is for mounting. */
extern const struct lie liar_tells[];
extern const struct lie liar_tells_mount[];

/* The servers themselves, for spawn_server: of either list. */
void liar_run(int port);
void liar_run_mount(int port);

/* Starts one, mounted on m; ends it; ends it and unmounts. */
pid_t liar_begin(void);
void liar_stop(pid_t pid);
void liar_end(pid_t pid);

/* Selects lie number `i`; -1: the truth. */
void liar_order(int i);

/* Where a lie is in its list. */
int liar_find(const struct lie *list, uint32_t label, enum trick how);

/* Reads m/f: -1 with errno, or the result. */
int liar_try_read(unsigned i);
