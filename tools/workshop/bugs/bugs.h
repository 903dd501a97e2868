/*
 * Planted bugs: the classic mistakes with a heap, each in caches of its own.
 *
 *     bugs.c         the list of bugs, what finds each, and running one
 *     sandbox.c      caches that only planted bugs use, repaired afterwards
 *     bugs_write.c   wrong stores
 *     bugs_free.c    wrong frees
 *     bugs_use.c     memory used uninitialised or after it was freed
 *     bugs_keep.c    leaks, and caches destroyed too early
 *     bugs_task.c    two tasks, and an interrupt
 *
 * The wrong line ends in the comment "culprit:" and the bug's name. The time
 * between that line and the check that notices it is divided into steps, so a
 * result says when a bug was found.
 */
#pragma once

#include "mm/debug/debug.h"

/* When a bug is found, from soonest to never. */
enum bugs_when {
    BUGS_AT_ONCE,  /* at the wrong line */
    BUGS_AT_FREE,  /* when the buffer is freed, by its owner */
    BUGS_AT_ALLOC, /* when the memory is allocated again */
    BUGS_AT_REAP,  /* when the slab is destroyed */
    BUGS_BY_SCAN,  /* by kmem_verify: `verify` */
    BUGS_BY_LEAKS, /* by kmem_leak_scan: `leaks` */
    BUGS_NEVER,
};

/* How it makes itself known. */
enum bugs_how {
    BUGS_REPORT, /* kmem_error(): the rule says which; the machine stops */
    BUGS_FAULT, /* the processor's; with an error if the heap knows the place */
    BUGS_REFUSED, /* the call returns an error and does nothing */
    BUGS_NOTICED, /* the cache's own destructor sees it */
};

/* How a bug is found in modes with one of these letters. "*": in all modes;
 * "-": in the plain layout only; "+": in the debug layout only. */
struct bugs_rule {
    const char *rule_letters;
    enum bugs_when rule_when;
    enum kmem_error rule_error; /* KMERR_NONE: none */
    enum bugs_how rule_how;
};

#define BUGS_RULES 4

struct planted_bug {
    const char *bug_name;
    const char *bug_what;                   /* 33 characters at most */
    void (*bug_run)(void);                  /* in a task of its own */
    struct bugs_rule bug_rules[BUGS_RULES]; /* the first that fits counts; at
                                             NULL they end */
};

extern const struct planted_bug planted_bugs[];
extern const size_t bugs_count;

/* The rule that says how a bug is found by a cache in `modes`; NULL: it is
 * not. */
const struct bugs_rule *bugs_rule(const struct planted_bug *bug,
                                  unsigned modes);

const struct planted_bug *bugs_find(const char *name);
const char *bugs_when_text(enum bugs_when when);

/* The result of running a bug. */
struct bugs_result {
    enum bugs_when result_when;     /* found; BUGS_NEVER: not */
    const char *result_text;        /* by what */
    enum bugs_when result_san_when; /* a sanitizer's first report */
    const char *result_san_kind;    /* NULL: none */
    char result_san_text[128];      /* what was done, and by whom */
    bool result_lost;               /* no task, or no memory, to begin with */
};

#define BUGS_AS_IT_IS UINT32_MAX

/* Creates the sandboxes if there are none, and sets the modes of them and of
 * the size classes that bugs use; BUGS_AS_IT_IS leaves them. 0, or an error of
 * kmem_debug_set: then all have the modes that they had. */
int bugs_open(unsigned modes);

/* Runs a bug in the sandboxes and repairs them; with `keep` leaked buffers stay
 * leaked until the next run, with `go_on` a sanitizer's report is noted and
 * does not stop the machine. Returns only if the machine survives. */
void bugs_visit(const struct planted_bug *bug, bool keep, bool go_on,
                struct bugs_result *out);

/* Puts them back into the modes that they had before bugs_open. */
void bugs_close(void);

/* The modes that the sandboxes are in. */
unsigned bugs_modes(void);
