/*
 * Sessions: creation, quotas, and their tasks.
 *
 *     sessions ──> session 1 ──> session 2
 *                       ^             ^ task_session, commit_session
 *                       └── task      └── task, space
 */
#include "kernel/object/session.h"
#include "drivers/pit.h"
#include "kernel/abi/errno.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/task/cache.h"
#include "mm/platform.h"

/* A process takes about 10 pages and, after its end, 4; a region 24 bytes, a
 * port 80. */
#define TASKS_SHARE   8u /* a task for so many pages of memory */
#define TASKS_LEAST   64u
#define REGIONS_SHARE 2u /* regions for each page of memory */
#define PORTS_SHARE   16u

#define MOUNTS_MOST 16u

#define RESERVE_SHARE 32u /* a page of the reserve for so many of memory */

#define END_MS 1000 /* the patience of session_end */

uint32_t session_limit[SESSION_RESOURCES];
uint32_t session_reserve;
struct session *session_console;

static struct kmem_cache *session_cache;

/* Guarded by sched_lock. */
static struct list sessions = LIST_INIT(sessions);
static uint32_t last_number;

/* ---- beginning and end -------------------------------------------------- */

struct session *session_create(void)
{
    struct session *s = kmem_cache_alloc(session_cache, KM_NOSLEEP);

    if (s == NULL)
        return NULL;
    memset(s, 0, sizeof(*s));
    s->session_used[SESSION_TASKS] = 1;
    spin_lock(&sched_lock);
    s->session_number = ++last_number;
    list_insert_before(&sessions, &s->session_link);
    spin_unlock(&sched_lock);
    return s;
}

void session_init(size_t pages)
{
    uint32_t n = (uint32_t)pages;

    session_cache =
        cache_create("session", sizeof(struct session), 0, NULL, NULL);
    task_set_discard_hook(session_leave);
    session_reserve = n / RESERVE_SHARE;
    mm_keep_most = session_reserve;
    session_limit[SESSION_TASKS] = MAX(n / TASKS_SHARE, TASKS_LEAST);
    session_limit[SESSION_PAGES] = n - n / 16;
    session_limit[SESSION_REGIONS] = n * REGIONS_SHARE;
    session_limit[SESSION_FILES] = n / 2;
    session_limit[SESSION_PORTS] = MAX(n / PORTS_SHARE, TASKS_LEAST);
    session_limit[SESSION_MOUNTS] = MOUNTS_MOST;
    session_console = session_create();
    if (session_console == NULL)
        panic("not enough memory for the first session");
    session_refund(session_console, SESSION_TASKS, 1);
}

static bool is_used(const struct session *s)
{
    for (unsigned i = 0; i < SESSION_RESOURCES; i++)
        if (i != SESSION_FILES && s->session_used[i] != 0)
            return true;
    return false;
}

/* Removes a session that has ended from the list; NULL: there is none. */
static struct session *take_ended(void)
{
    struct session *ended = NULL;

    spin_lock(&sched_lock);
    list_for_each (l, &sessions) {
        struct session *s = list_entry(l, struct session, session_link);

        if (s != session_console && !is_used(s))
            ended = s;
    }
    if (ended != NULL)
        list_remove(&ended->session_link);
    spin_unlock(&sched_lock);
    return ended;
}

void session_refund_number(uint32_t number, enum session_resource what,
                           uint32_t n)
{
    spin_lock(&sched_lock);
    list_for_each (l, &sessions) {
        struct session *s = list_entry(l, struct session, session_link);

        if (s->session_number == number)
            session_refund(s, what, n);
    }
    spin_unlock(&sched_lock);
}

/* After its last charge `s` may have been freed. */
void session_leave(struct session *s)
{
    struct session *ended;

    if (s == NULL || __atomic_sub_fetch(&s->session_used[SESSION_TASKS], 1,
                                        __ATOMIC_RELAXED) != 0)
        return;
    while ((ended = take_ended()) != NULL)
        kmem_cache_free(session_cache, ended);
}

int session_end(uint32_t number)
{
    uint64_t until = timer_ms() + END_MS;
    struct session_stat st;

    if (number == 0 || !session_stat(number - 1, &st) ||
        st.stat_number != number)
        return -ESRCH;
    for (;;) {
        struct task_stat t = {.stat_pid = -1};
        unsigned alive = 0;

        while (task_stats(t.stat_pid, &t, 1) == 1)
            if (session_of(t.stat_pid) == number &&
                t.stat_state != TASK_ZOMBIE) {
                task_kill(NULL, t.stat_pid, SIGKILL);
                alive++;
            }
        if (alive == 0)
            return 0;
        if (timer_ms() >= until)
            return -EBUSY;
        sched_sleep_ms(10); /* one that was being created is then started */
    }
}

/* ---- snapshots ---------------------------------------------------------- */

uint32_t session_of(pid_t pid)
{
    const struct task *t;
    uint32_t number;

    spin_lock(&sched_lock);
    t = task_find(pid);
    number = t == NULL ? 0 : session_number(t->task_session);
    spin_unlock(&sched_lock);
    return number;
}

bool session_stat(uint32_t after, struct session_stat *out)
{
    bool found = false;

    spin_lock(&sched_lock);
    list_for_each (l, &sessions) {
        const struct session *s = list_entry(l, struct session, session_link);

        found = s->session_number > after;
        if (found) {
            out->stat_number = s->session_number;
            memcpy(out->stat_used, s->session_used, sizeof(out->stat_used));
            break;
        }
    }
    spin_unlock(&sched_lock);
    return found;
}

static bool count_task(struct task *t, void *arg)
{
    struct session_stat *st = arg;

    if (session_number(t->task_session) == st->stat_number)
        st->stat_used[SESSION_TASKS]--;
    return true;
}

const char *session_verify(const char **where)
{
    static char text[24];
    struct session_stat st = {.stat_number = 0};
    const char *wrong = NULL;

    while (wrong == NULL && session_stat(st.stat_number, &st)) {
        for (unsigned i = 0; i < SESSION_RESOURCES; i++)
            if (st.stat_used[i] > session_limit[i])
                wrong = "a session uses more than its limit";
        task_each(count_task, &st);
        if (st.stat_used[SESSION_TASKS] > session_limit[SESSION_TASKS])
            wrong = "a session has more tasks than were charged to it";
    }
    snprintf(text, sizeof(text), "session %u", (unsigned)st.stat_number);
    *where = text;
    return wrong;
}
