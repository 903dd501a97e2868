/*
 * The zoo's list of bugs, and a visit to one of them.
 */
#include "tools/workshop/bugs/zoo.h"
#include "drivers/debugcon.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "tools/workshop/sanitize/sanitize.h"
#include "kernel/task/task.h"
#include "tools/workshop/bugs/zoo_impl.h"

/* ---- what there is ------------------------------------------------------ */

#define REPORTED(letters, when, error)                                         \
    {                                                                          \
        letters, when, KMEM_ERROR_##error, ZOO_REPORT                          \
    }
#define FAULTS(letters, error)                                                 \
    {                                                                          \
        letters, ZOO_AT_ONCE, KMEM_ERROR_##error, ZOO_FAULT                    \
    }
#define SCANNED(letters)                                                       \
    {                                                                          \
        letters, ZOO_BY_SCAN, KMEM_ERROR_VERIFY, ZOO_NOTICED                   \
    }
#define OTHERWISE(letters, when, how)                                          \
    {                                                                          \
        letters, when, KMEM_ERROR_NONE, how                                    \
    }

const struct zoo_bug zoo_bugs[] = {
    /* ---- written to after it was freed ---- */
    {"write-after-free",
     "a member is set after the free",
     bug_write_after_free,
     {FAULTS("SG", UNMAPPED), REPORTED("P", ZOO_AT_ALLOC, MODIFIED)}},
    {"byte-after-free",
     "one byte changes after the free",
     bug_byte_after_free,
     {FAULTS("SG", UNMAPPED), REPORTED("P", ZOO_AT_ALLOC, MODIFIED)}},
    {"link-after-free",
     "the last word: a freelist link",
     bug_link_after_free,
     {FAULTS("SG", UNMAPPED), REPORTED("P", ZOO_AT_ALLOC, MODIFIED),
      SCANNED("-")}},
    {"stale-realloc",
     "an array moved; an old pointer",
     bug_stale_realloc,
     {FAULTS("SG", UNMAPPED), REPORTED("P", ZOO_AT_ALLOC, MODIFIED)}},
    {"dangling-list",
     "freed, but still on a list",
     bug_dangling_list,
     {FAULTS("G", UNMAPPED), REPORTED("P", ZOO_AT_ALLOC, MODIFIED)}},
    {"early-put",
     "two users, but one counted",
     bug_early_put,
     {FAULTS("SG", UNMAPPED), REPORTED("P", ZOO_AT_ALLOC, MODIFIED)}},
    {"late-interrupt",
     "an interrupt outlives its data",
     bug_late_interrupt,
     {FAULTS("SG", UNMAPPED), REPORTED("P", ZOO_AT_ALLOC, MODIFIED)}},
    /* ---- written past its bounds ---- */
    {"off-by-one",
     "`<=` for `<`: a byte past the end",
     bug_off_by_one,
     {FAULTS("G", UNMAPPED), REPORTED("Z", ZOO_AT_FREE, END),
      REPORTED("P", ZOO_AT_ALLOC, MODIFIED)}},
    {"string-end",
     "no room for a string's NUL",
     bug_string_end,
     {REPORTED("Z", ZOO_AT_FREE, END)}},
    {"too-long",
     "48 bytes copied into 32",
     bug_too_long,
     {FAULTS("G", UNMAPPED), REPORTED("Z", ZOO_AT_FREE, END),
      REPORTED("P", ZOO_AT_ALLOC, MODIFIED)}},
    {"underrun",
     "a byte before the start",
     bug_underrun,
     {REPORTED("Z", ZOO_AT_FREE, START)}},
    {"last-in-slab",
     "past the end, into slab data",
     bug_last_in_slab,
     {FAULTS("G", UNMAPPED), REPORTED("Z", ZOO_AT_FREE, END),
      REPORTED("P", ZOO_AT_ALLOC, MODIFIED), SCANNED("-")}},
    {"overflow",
     "count * size exceeds 32 bits",
     bug_overflow,
     {FAULTS("G", UNMAPPED), REPORTED("Z", ZOO_AT_FREE, END)}},
    /* ---- stray pointers into the allocator's own ---- */
    {"wild-freelist",
     "a stray store hits a free bufctl",
     bug_wild_freelist,
     {REPORTED("+", ZOO_AT_ALLOC, FREELIST), SCANNED("-")}},
    {"wild-bufctl",
     "the same, its buffer being out",
     bug_wild_bufctl,
     {REPORTED("+", ZOO_AT_FREE, BUFCTL)}},
    {"wild-slab",
     "a stray store hits slab data",
     bug_wild_slab,
     {REPORTED("+", ZOO_AT_ALLOC, SLAB), SCANNED("-")}},
    /* ---- freed wrongly ---- */
    {"double-free",
     "freed twice in a row",
     bug_double_free,
     {REPORTED("+", ZOO_AT_ONCE, DOUBLE), SCANNED("-")}},
    {"double-free-late",
     "freed again: now somebody else's",
     bug_double_free_late,
     {REPORTED("+", ZOO_AT_FREE, DOUBLE), SCANNED("-")}},
    {"race",
     "two tasks look, then both free",
     bug_race,
     {REPORTED("+", ZOO_AT_ONCE, DOUBLE), SCANNED("-")}},
    {"free-never",
     "a buffer that nobody was given",
     bug_free_never,
     {REPORTED("+", ZOO_AT_ONCE, NOT_ALLOCATED), SCANNED("-")}},
    {"free-interior",
     "a member instead of the object",
     bug_free_interior,
     {REPORTED("+", ZOO_AT_ONCE, INTERIOR), SCANNED("-")}},
    {"free-foreign",
     "to another cache than its own",
     bug_free_foreign,
     {REPORTED("+", ZOO_AT_ONCE, FOREIGN), SCANNED("-")}},
    {"free-stack",
     "a variable on the stack",
     bug_free_stack,
     {REPORTED("*", ZOO_AT_ONCE, STACK)}},
    {"free-static",
     "a static variable",
     bug_free_static,
     {REPORTED("*", ZOO_AT_ONCE, NOT_ALLOCATED)}},
    {"free-size",
     "another size than allocated",
     bug_free_size,
     {REPORTED("+", ZOO_AT_ONCE, SIZE)}},
    /* ---- used before or after its time ---- */
    {"uninitialised",
     "follows a pointer never set",
     bug_uninitialised,
     {FAULTS("P", UNINIT)}},
    {"free-loop",
     "reads `next` after each free",
     bug_free_loop,
     {FAULTS("G", UNMAPPED), FAULTS("P", STALE), FAULTS("S", UNMAPPED)}},
    {"read-after-free",
     "only reads, after the free",
     bug_read_after_free,
     {FAULTS("SG", UNMAPPED)}},
    {"constructed",
     "given back, not as constructed",
     bug_constructed,
     {OTHERWISE("PSG", ZOO_AT_ONCE, ZOO_NOTICED),
      OTHERWISE("*", ZOO_AT_REAP, ZOO_NOTICED)}},
    {"zero-bytes",
     "writes to kmem_alloc(0): NULL",
     bug_zero_bytes,
     {FAULTS("*", NONE)}},
    /* ---- never given back; ended too early ---- */
    {"leak",
     "the only pointer is overwritten",
     bug_leak,
     {OTHERWISE("*", ZOO_BY_LEAKS, ZOO_NOTICED)}},
    {"leak-on-error",
     "an error path forgets a free",
     bug_leak_on_error,
     {OTHERWISE("*", ZOO_BY_LEAKS, ZOO_NOTICED)}},
    {"leak-cycle",
     "two that know only each other",
     bug_leak_cycle,
     {OTHERWISE("*", ZOO_BY_LEAKS, ZOO_NOTICED)}},
    {"destroy-in-use",
     "a cache with an object out",
     bug_destroy_in_use,
     {OTHERWISE("*", ZOO_AT_ONCE, ZOO_REFUSED)}},
    {"destroy-twice",
     "a cache that is gone already",
     bug_destroy_twice,
     {OTHERWISE("*", ZOO_AT_ONCE, ZOO_REFUSED)}},
    {"destroyed-cache",
     "allocates from a cache gone",
     bug_destroyed_cache,
     {{"*", ZOO_AT_ONCE, KMEM_ERROR_DESTROYED, ZOO_STOP}}},
};

const size_t zoo_count = ARRAY_SIZE(zoo_bugs);

const struct zoo_bug *zoo_find(const char *name)
{
    for (size_t i = 0; i < zoo_count; i++)
        if (strcmp(zoo_bugs[i].bug_name, name) == 0)
            return &zoo_bugs[i];
    return NULL;
}

const char *zoo_when_text(enum zoo_when when)
{
    static const char *const text[] = {
        [ZOO_AT_ONCE] = "at once",
        [ZOO_AT_FREE] = "at free",
        [ZOO_AT_ALLOC] = "at the next allocation",
        [ZOO_AT_REAP] = "when its slab ends",
        [ZOO_BY_SCAN] = "by a scan",
        [ZOO_BY_LEAKS] = "by a scan for leaks",
        [ZOO_NEVER] = "never",
    };

    return text[when];
}

/* Whether a rule is about caches in these modes. */
static bool applies(const struct zoo_rule *rule, unsigned modes)
{
    unsigned of;
    char bad;

    switch (rule->rule_letters[0]) {
    case '*':
        return true;
    case '+':
        return (modes & KMF_LAYOUT) != 0;
    case '-':
        return (modes & KMF_LAYOUT) == 0;
    default:
        return kmem_debug_letters(rule->rule_letters, NULL, &of, &bad) &&
               (modes & of) != 0;
    }
}

const struct zoo_rule *zoo_rule(const struct zoo_bug *bug, unsigned modes)
{
    for (size_t i = 0; i < ZOO_RULES; i++) {
        const struct zoo_rule *rule = &bug->bug_rules[i];

        if (rule->rule_letters == NULL)
            break;
        if (applies(rule, modes))
            return rule;
    }
    return NULL;
}

/* ---- a visit ------------------------------------------------------------ */

static struct {
    const struct zoo_bug *bug;
    enum zoo_when step;
    uint32_t errors; /* seen so far */
    struct zoo_result result;
} visit;

/* What was reported in the step that ends. */
static void settle(void)
{
    struct zoo_result *r = &visit.result;

    if (kmem_error_count != visit.errors && r->result_when == ZOO_NEVER &&
        visit.step != ZOO_NEVER) {
        r->result_when = visit.step;
        r->result_error = kmem_last_error;
    }
    r->result_errors += kmem_error_count - visit.errors;
    visit.errors = kmem_error_count;
}

void zoo_step(enum zoo_when when)
{
    settle();
    visit.step = when;
    debugcon_event("{\"event\":\"bug-step\",\"name\":\"%s\",\"when\":\"%s\"}",
                   visit.bug->bug_name, zoo_when_text(when));
}

void zoo_noticed(const char *text)
{
    struct zoo_result *r = &visit.result;

    settle();
    if (r->result_when != ZOO_NEVER || visit.step == ZOO_NEVER)
        return;
    r->result_when = visit.step;
    r->result_text = text;
}

void zoo_tell_write(const void *base, const void *at, size_t size,
                    uint32_t found)
{
    debugcon_event("{\"event\":\"bug-write\",\"name\":\"%s\",\"buf\":%lu,"
                   "\"offset\":%ld,\"size\":%zu,\"value\":%lu}",
                   visit.bug->bug_name, (unsigned long)(uintptr_t)base,
                   (long)((const char *)at - (const char *)base), size,
                   (unsigned long)found);
}

/* A sanitizer has seen something: of what follows from it, nothing is new. */
static void told(const char *kind, const char *what, const char *by)
{
    struct zoo_result *r = &visit.result;

    if (r->result_san_kind != NULL)
        return;
    r->result_san_when = visit.step;
    r->result_san_kind = kind;
    snprintf(r->result_san_text, sizeof(r->result_san_text), "%s by %s", what,
             by);
    debugcon_event("{\"event\":\"bug-sanitizer\",\"name\":\"%s\","
                   "\"when\":\"%s\",\"kind\":\"%s\",\"by\":\"%s\"}",
                   visit.bug->bug_name, zoo_when_text(visit.step), kind, by);
}

void zoo_look(void)
{
    const char *why;

    zoo_step(ZOO_BY_SCAN);
    why = zoo_cages_verify();
    if (why != NULL)
        zoo_noticed(why);
    zoo_cages_mend();
    zoo_step(ZOO_NEVER);
}

static void zoo_main(void *arg)
{
    const struct zoo_bug *bug = arg;

    zoo_cages_found(); /* here: the stack that this leaves is not read */
    zoo_step(ZOO_AT_ONCE);
    bug->bug_run();
    zoo_look();
}

/* The stack of the task is gone: what it pointed to is lost if nobody else
 * points to it. */
static void look_for_leaks(void)
{
    static char text[32];
    size_t n = zoo_cages_leaks();

    zoo_step(ZOO_BY_LEAKS);
    if (n != 0) {
        snprintf(text, sizeof(text), "%zu lost", n);
        zoo_noticed(text);
    }
    zoo_step(ZOO_NEVER);
}

void zoo_visit(const struct zoo_bug *bug, bool keep, struct zoo_result *out)
{
    struct task *t;
    int status;

    memset(&visit, 0, sizeof(visit));
    visit.bug = bug;
    visit.errors = kmem_error_count;
    visit.result.result_when = visit.step = ZOO_NEVER;
    zoo_cages_clean();
    kmem_verify_every(kmem_verify_interval()); /* said once, until now */
    sanitize_watch(kmem_error_panics ? NULL : told);
    t = task_create("zoo", zoo_main, (void *)bug, PRIORITY_KERNEL);
    if (t != NULL) {
        task_wait(t->task_pid, &status, 0);
        look_for_leaks();
    }
    if (!keep)
        zoo_cages_found();
    sanitize_watch(NULL);
    visit.result.result_lost = t == NULL;
    *out = visit.result;
}

int zoo_open(unsigned modes)
{
    return zoo_cages_open(modes);
}

void zoo_close(void)
{
    zoo_cages_close();
}
