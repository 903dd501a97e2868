/*
 * A zoo of bugs: the classic mistakes with a heap, each in a cage of its own.
 *
 *     zoo.c          the list of bugs, what finds each, and a visit to one
 *     cage.c         caches that nobody else uses, put in order afterwards
 *     bugs_write.c   stores where none should be
 *     bugs_free.c    frees of what may not be freed
 *     bugs_use.c     memory used before or after its time
 *     bugs_keep.c    leaks, and caches ended at the wrong time
 *     bugs_task.c    two tasks, and an interrupt
 *
 * The line that is to blame ends in the comment "culprit:" and the bug's name.
 * What happens between that line and the one that notices it is divided into
 * steps, so that not only whether a bug is found can be told, but when.
 */
#pragma once

#include "mm/debug/debug.h"

/* When a bug is found, from soonest to never. */
enum zoo_when {
    ZOO_AT_ONCE,  /* by the guilty line itself */
    ZOO_AT_FREE,  /* when the victim is freed, by its rightful owner */
    ZOO_AT_ALLOC, /* when the memory is allocated again */
    ZOO_AT_REAP,  /* when the slab ends */
    ZOO_BY_SCAN,  /* by kmem_verify: `verify` */
    ZOO_BY_LEAKS, /* by kmem_leak_scan: `leaks` */
    ZOO_NEVER,
};

/* How it makes itself known. */
enum zoo_how {
    ZOO_REPORT, /* kmem_error(): the rule says which */
    ZOO_FAULT,  /* the processor's; with an error if the heap knows the place */
    ZOO_STOP,   /* kmem_error(), and no going on with any kmem.panic= */
    ZOO_REFUSED, /* the call says no and nothing happens */
    ZOO_NOTICED, /* the cache's own destructor sees it */
};

/* In modes that have one of these letters a bug is found so. "*": in all;
 * "-": in the plain layout only; "+": in the debug layout only. */
struct zoo_rule {
    const char *rule_letters;
    enum zoo_when rule_when;
    enum kmem_error rule_error; /* KMEM_ERROR_NONE: none */
    enum zoo_how rule_how;
};

#define ZOO_RULES 4

struct zoo_bug {
    const char *bug_name;
    const char *bug_what;                 /* 33 characters at most */
    void (*bug_run)(void);                /* in a task of its own */
    struct zoo_rule bug_rules[ZOO_RULES]; /* the first that fits counts; at
                                             NULL they end */
};

extern const struct zoo_bug zoo_bugs[];
extern const size_t zoo_count;

/* The rule that says how a bug is found by a cache in `modes`; NULL: it is
 * not. */
const struct zoo_rule *zoo_rule(const struct zoo_bug *bug, unsigned modes);

const struct zoo_bug *zoo_find(const char *name);
const char *zoo_when_text(enum zoo_when when);

/* What became of a visit. */
struct zoo_result {
    enum zoo_when result_when; /* found; ZOO_NEVER: not */
    const char *result_text;   /* found without a report: by what; or NULL */
    uint32_t result_errors;    /* reported */
    struct kmem_error_record result_error; /* the first of them */
    enum zoo_when result_san_when;         /* a sanitizer's first report */
    const char *result_san_kind;           /* NULL: none */
    char result_san_text[128];             /* what was done, and by whom */
    bool result_lost; /* no task, or no memory, to begin with */
};

#define ZOO_AS_IT_IS UINT32_MAX

/* Makes the cages if there are none, and puts them and the size classes that
 * bugs use into `modes`; ZOO_AS_IT_IS leaves them as they are. 0, or an error
 * of kmem_debug_set. */
int zoo_open(unsigned modes);

/* Runs a bug in the cages as they are, and puts them in order again; `keep`
 * leaves lost what was lost, until the next visit. Returns only if the machine
 * survives. */
void zoo_visit(const struct zoo_bug *bug, bool keep, struct zoo_result *out);

/* Puts the cages back into the modes that they had before zoo_open. */
void zoo_close(void);

/* The modes that the cages are in. */
unsigned zoo_modes(void);
