/*
 * The liar: a file server for tests, whose replies are right except for one
 * lie, which the notification bits of its port select. It has a small tree that
 * never changes (f contains "hello"):
 *
 *     1 ──> f 2
 *      ├──> e 5
 *      └──> d 3 ──> s 4              x0 … x99: 100 … 199, files
 *
 * t_liar.c has the tables of lies.
 */
#pragma once

#include "user/lib/fs_server.h"

#define KEEP 0x7eeeeeee /* the right value */

enum trick {
    PLAIN,
    DIE,    /* exits instead of replying */
    LEAVE,  /* exits after replying */
    HANG,   /* never replies to this request */
    LABEL,  /* the reply has a label */
    HANDLE, /* the reply has a handle */
    LOST,   /* the reply's bytes are at an unmapped address */
    KERNEL, /* the reply's bytes are in the kernel's memory */
    OWN,    /* uses its own file system */
    SYNC,   /* syncs all file systems, its own too */
    WRONG,  /* first tries to reply to tasks that did not call */
    DOWN,   /* d is also in s */
    CYCLE,  /* and s is the parent of d */
};

/* A false reply to a request. */
struct lie {
    uint32_t lie_label;
    int32_t lie_result; /* word 0, or KEEP */
    int32_t lie_word;   /* word 1, or KEEP */
    int32_t lie_bytes;  /* number of bytes, or KEEP */
    int32_t lie_at;     /* their offset at which … */
    uint32_t lie_value; /* … this word is stored; lie_at KEEP: not at all */
    int (*lie_try)(unsigned i);
    int lie_error; /* expected result of lie_try */
    enum trick lie_trick;
};

extern int liar_port; /* a handle to call the liar */

/* Lists of lies, ended by label 0. The second is for mounting. */
extern const struct lie liar_tells[];
extern const struct lie liar_tells_mount[];

/* Serves for ever, with the lies of a list. */
void liar_serve(int port, const struct lie *list);

/* The servers, for spawn_server: one for each list. */
void liar_run(int port);
void liar_run_mount(int port);

/* Starts a liar, mounted on m; ends it; ends it and unmounts. */
pid_t liar_begin(void);
void liar_stop(pid_t pid);
void liar_end(pid_t pid);

/* Selects lie number `i`; -1: none. */
void liar_order(int i);

/* The liar replies to no request of this kind from now on. */
void liar_silence(uint32_t label);

/* Waits until it has not replied to a request for the first time since it was
 * told to. */
void liar_until_silent(void);

/* The number of a lie in its list. */
int liar_find(const struct lie *list, uint32_t label, enum trick how);

/* Reads m/f: -1 with errno, or the number of bytes. */
int liar_try_read(unsigned i);
