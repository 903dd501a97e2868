/*
 * The list of planted bugs, and running one of them.
 */
#include "tools/workshop/bugs/bugs.h"
#include "drivers/debugcon.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "tools/workshop/sanitize/sanitize.h"
#include "kernel/task/task.h"
#include "tools/workshop/bugs/bugs_impl.h"

/* ---- the list ----------------------------------------------------------- */

#define REPORTED(letters, when, error)                                         \
    {                                                                          \
        letters, when, KMERR_##error, BUGS_REPORT                              \
    }
#define FAULTS(letters, error)                                                 \
    {                                                                          \
        letters, BUGS_AT_ONCE, KMERR_##error, BUGS_FAULT                       \
    }
#define SCANNED(letters)                                                       \
    {                                                                          \
        letters, BUGS_BY_SCAN, KMERR_NONE, BUGS_NOTICED                        \
    }
#define OTHERWISE(letters, when, how)                                          \
    {                                                                          \
        letters, when, KMERR_NONE, how                                         \
    }

const struct planted_bug planted_bugs[] = {
    /* ---- written to after it was freed ---- */
    {"write-after-free",
     "a member is set after the free",
     bug_write_after_free,
     {FAULTS("SG", FAULT), REPORTED("P", BUGS_AT_ALLOC, MODIFIED)}},
    {"byte-after-free",
     "one byte changes after the free",
     bug_byte_after_free,
     {FAULTS("SG", FAULT), REPORTED("P", BUGS_AT_ALLOC, MODIFIED)}},
    {"link-after-free",
     "the last word: a freelist link",
     bug_link_after_free,
     {FAULTS("SG", FAULT), REPORTED("P", BUGS_AT_ALLOC, MODIFIED),
      SCANNED("-")}},
    {"stale-realloc",
     "an old pointer to a moved array",
     bug_stale_realloc,
     {FAULTS("SG", FAULT), REPORTED("P", BUGS_AT_ALLOC, MODIFIED)}},
    {"dangling-list",
     "freed, but still on a list",
     bug_dangling_list,
     {FAULTS("G", FAULT), REPORTED("P", BUGS_AT_ALLOC, MODIFIED)}},
    {"early-put",
     "two users, but one counted",
     bug_early_put,
     {FAULTS("SG", FAULT), REPORTED("P", BUGS_AT_ALLOC, MODIFIED)}},
    {"late-interrupt",
     "an interrupt outlives its data",
     bug_late_interrupt,
     {FAULTS("SG", FAULT), REPORTED("P", BUGS_AT_ALLOC, MODIFIED)}},
    /* ---- written past its bounds ---- */
    {"off-by-one",
     "`<=` for `<`: a byte past the end",
     bug_off_by_one,
     {FAULTS("G", FAULT), REPORTED("Z", BUGS_AT_FREE, REDZONE),
      REPORTED("P", BUGS_AT_ALLOC, MODIFIED)}},
    {"string-end",
     "no room for a string's NUL",
     bug_string_end,
     {REPORTED("Z", BUGS_AT_FREE, REDZONE)}},
    {"too-long",
     "48 bytes copied into 32",
     bug_too_long,
     {FAULTS("G", FAULT), REPORTED("Z", BUGS_AT_FREE, REDZONE),
      REPORTED("P", BUGS_AT_ALLOC, MODIFIED)}},
    {"underrun",
     "a byte before the start",
     bug_underrun,
     {REPORTED("Z", BUGS_AT_FREE, REDZONE)}},
    {"last-in-slab",
     "past the end, into slab data",
     bug_last_in_slab,
     {FAULTS("G", FAULT), REPORTED("Z", BUGS_AT_FREE, REDZONE),
      REPORTED("P", BUGS_AT_ALLOC, MODIFIED), SCANNED("-")}},
    {"overflow",
     "count * size exceeds 32 bits",
     bug_overflow,
     {FAULTS("G", FAULT), REPORTED("Z", BUGS_AT_FREE, REDZONE)}},
    /* ---- stray pointers into the allocator's data ---- */
    {"wild-freelist",
     "a stray store hits a free bufctl",
     bug_wild_freelist,
     {REPORTED("+", BUGS_AT_ALLOC, BADSLAB), SCANNED("-")}},
    {"wild-bufctl",
     "a stray store hits a used bufctl",
     bug_wild_bufctl,
     {REPORTED("+", BUGS_AT_FREE, BADBUFCTL)}},
    {"wild-slab",
     "a stray store hits slab data",
     bug_wild_slab,
     {REPORTED("+", BUGS_AT_ALLOC, BADSLAB), SCANNED("-")}},
    /* ---- freed wrongly ---- */
    {"double-free",
     "freed twice in a row",
     bug_double_free,
     {REPORTED("+", BUGS_AT_ONCE, DUPFREE), SCANNED("-")}},
    {"double-free-late",
     "freed again, after reallocation",
     bug_double_free_late,
     {REPORTED("+", BUGS_AT_FREE, DUPFREE), SCANNED("-")}},
    {"race",
     "two tasks test, then both free",
     bug_race,
     {REPORTED("+", BUGS_AT_ONCE, DUPFREE), SCANNED("-")}},
    {"free-never",
     "a buffer never allocated",
     bug_free_never,
     {REPORTED("+", BUGS_AT_ONCE, BADADDR), SCANNED("-")}},
    {"free-interior",
     "a member instead of the object",
     bug_free_interior,
     {REPORTED("+", BUGS_AT_ONCE, BADBASE), SCANNED("-")}},
    {"free-foreign",
     "to another cache than its own",
     bug_free_foreign,
     {REPORTED("+", BUGS_AT_ONCE, BADCACHE), SCANNED("-")}},
    {"free-stack",
     "a variable on the stack",
     bug_free_stack,
     {REPORTED("*", BUGS_AT_ONCE, BADADDR)}},
    {"free-static",
     "a static variable",
     bug_free_static,
     {REPORTED("*", BUGS_AT_ONCE, BADADDR)}},
    {"free-size",
     "another size than allocated",
     bug_free_size,
     {REPORTED("+", BUGS_AT_ONCE, BADSIZE)}},
    /* ---- used uninitialised, or after the free ---- */
    {"uninitialised",
     "follows a pointer never set",
     bug_uninitialised,
     {FAULTS("P", FAULT)}},
    {"free-loop",
     "reads `next` after each free",
     bug_free_loop,
     {FAULTS("G", FAULT), FAULTS("P", FAULT), FAULTS("S", FAULT)}},
    {"read-after-free",
     "only reads, after the free",
     bug_read_after_free,
     {FAULTS("SG", FAULT)}},
    {"constructed",
     "freed, but not as constructed",
     bug_constructed,
     {OTHERWISE("PSG", BUGS_AT_ONCE, BUGS_NOTICED),
      OTHERWISE("*", BUGS_AT_REAP, BUGS_NOTICED)}},
    {"zero-bytes",
     "writes to kmem_alloc(0): NULL",
     bug_zero_bytes,
     {FAULTS("*", NONE)}},
    /* ---- leaked; destroyed too early ---- */
    {"leak",
     "the only pointer is overwritten",
     bug_leak,
     {OTHERWISE("*", BUGS_BY_LEAKS, BUGS_NOTICED)}},
    {"leak-on-error",
     "an error path forgets a free",
     bug_leak_on_error,
     {OTHERWISE("*", BUGS_BY_LEAKS, BUGS_NOTICED)}},
    {"leak-cycle",
     "two that point only to each other",
     bug_leak_cycle,
     {OTHERWISE("*", BUGS_BY_LEAKS, BUGS_NOTICED)}},
    {"destroy-in-use",
     "a cache with an object allocated",
     bug_destroy_in_use,
     {OTHERWISE("*", BUGS_AT_ONCE, BUGS_REFUSED)}},
    {"destroy-twice",
     "a cache already destroyed",
     bug_destroy_twice,
     {OTHERWISE("*", BUGS_AT_ONCE, BUGS_REFUSED)}},
    {"destroyed-cache",
     "allocates from a destroyed cache",
     bug_destroyed_cache,
     {REPORTED("*", BUGS_AT_ONCE, NONE)}},
};

const size_t bugs_count = ARRAY_SIZE(planted_bugs);

const struct planted_bug *bugs_find(const char *name)
{
    for (size_t i = 0; i < bugs_count; i++)
        if (strcmp(planted_bugs[i].bug_name, name) == 0)
            return &planted_bugs[i];
    return NULL;
}

const char *bugs_when_text(enum bugs_when when)
{
    static const char *const text[] = {
        [BUGS_AT_ONCE] = "at once",
        [BUGS_AT_FREE] = "at free",
        [BUGS_AT_ALLOC] = "at the next allocation",
        [BUGS_AT_REAP] = "when its slab is destroyed",
        [BUGS_BY_SCAN] = "by a scan",
        [BUGS_BY_LEAKS] = "by a scan for leaks",
        [BUGS_NEVER] = "never",
    };

    return text[when];
}

/* Whether a rule is about caches in these modes. */
static bool applies(const struct bugs_rule *rule, unsigned modes)
{
    unsigned of;
    char bad;

    switch (rule->rule_letters[0]) {
    case '*':
        return true;
    case '+':
        return (modes & KMF_MODES) != 0;
    case '-':
        return (modes & KMF_MODES) == 0;
    default:
        return kmem_debug_letters(rule->rule_letters, NULL, &of, &bad) &&
               (modes & of) != 0;
    }
}

const struct bugs_rule *bugs_rule(const struct planted_bug *bug, unsigned modes)
{
    for (size_t i = 0; i < BUGS_RULES; i++) {
        const struct bugs_rule *rule = &bug->bug_rules[i];

        if (rule->rule_letters == NULL)
            break;
        if (applies(rule, modes))
            return rule;
    }
    return NULL;
}

/* ---- running one -------------------------------------------------------- */

static struct {
    const struct planted_bug *bug;
    enum bugs_when step;
    struct bugs_result result;
} visit;

void bugs_step(enum bugs_when when)
{
    visit.step = when;
    debugcon_event("{\"event\":\"bug-step\",\"name\":\"%s\",\"when\":\"%s\"}",
                   visit.bug->bug_name, bugs_when_text(when));
}

void bugs_note(const char *text)
{
    struct bugs_result *r = &visit.result;

    if (r->result_when != BUGS_NEVER || visit.step == BUGS_NEVER)
        return;
    r->result_when = visit.step;
    r->result_text = text;
}

void bugs_tell_write(const void *base, const void *at, size_t size,
                     uint32_t found)
{
    debugcon_event("{\"event\":\"bug-write\",\"name\":\"%s\",\"buf\":%lu,"
                   "\"offset\":%ld,\"size\":%zu,\"value\":%lu}",
                   visit.bug->bug_name, (unsigned long)(uintptr_t)base,
                   (long)((const char *)at - (const char *)base), size,
                   (unsigned long)found);
}

/* A sanitizer's report. Only the first counts: others may follow from it. */
static void note_report(const char *kind, const char *what, const char *by)
{
    struct bugs_result *r = &visit.result;

    if (r->result_san_kind != NULL)
        return;
    r->result_san_when = visit.step;
    r->result_san_kind = kind;
    snprintf(r->result_san_text, sizeof(r->result_san_text), "%s by %s", what,
             by);
    debugcon_event("{\"event\":\"bug-sanitizer\",\"name\":\"%s\","
                   "\"when\":\"%s\",\"kind\":\"%s\",\"by\":\"%s\"}",
                   visit.bug->bug_name, bugs_when_text(visit.step), kind, by);
}

void bugs_look(void)
{
    const char *why;

    bugs_step(BUGS_BY_SCAN);
    why = bugs_sandboxes_verify();
    if (why != NULL)
        bugs_note(why);
    bugs_sandboxes_repair();
    bugs_step(BUGS_NEVER);
}

static void bugs_main(void *arg)
{
    const struct planted_bug *bug = arg;

    bugs_sandboxes_found(); /* here: the stack that this leaves is not read */
    bugs_step(BUGS_AT_ONCE);
    bug->bug_run();
    bugs_look();
}

/* The stack of the task is freed: an object that nothing else points to is
 * leaked. */
static void look_for_leaks(void)
{
    static char text[32];
    size_t n = bugs_sandboxes_leaks();

    bugs_step(BUGS_BY_LEAKS);
    if (n != 0) {
        snprintf(text, sizeof(text), "%zu lost", n);
        bugs_note(text);
    }
    bugs_step(BUGS_NEVER);
}

void bugs_visit(const struct planted_bug *bug, bool keep, bool go_on,
                struct bugs_result *out)
{
    struct task *t;
    int status;

    memset(&visit, 0, sizeof(visit));
    visit.bug = bug;
    visit.result.result_when = visit.step = BUGS_NEVER;
    bugs_sandboxes_clean();
    sanitize_watch(go_on ? note_report : NULL);
    t = task_create("bugs", bugs_main, (void *)bug, PRIORITY_KERNEL);
    if (t != NULL) {
        task_wait(t->task_pid, &status, 0);
        look_for_leaks();
    }
    if (!keep)
        bugs_sandboxes_found();
    sanitize_watch(NULL);
    visit.result.result_lost = t == NULL;
    *out = visit.result;
}
