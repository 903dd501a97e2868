/*
 * The account of memory (kernel/vm/commit.h). Every page is charged before it
 * is taken from buddy and refunded after it has returned there.
 */
#include "kernel/vm/commit.h"
#include "kernel/abi/errno.h"
#include "kernel/task/session.h"
#include "kernel/vm/frame.h"
#include "mm/buddy.h"

static struct {
    struct spinlock lock;
    struct list spaces;
    struct commit_stat stat;
} account = {
    .lock = SPINLOCK_INIT("commit", LOCK_RANK_COMMIT),
    .spaces = LIST_INIT(account.spaces),
};

void commit_init(void)
{
    account.stat.stat_total = account.stat.stat_available = buddy_free_pages();
}

/* ---- charging ----------------------------------------------------------- */

/* Charges `pages` to a part of the account, and to a space if there is one, if
 * that leaves `share` available, after the kernel has reclaimed what it can. */
static bool charge(size_t pages, size_t share, size_t *part, struct commit *c)
{
    bool more = true;
    bool fits;

again:
    spin_lock(&account.lock);
    fits = account.stat.stat_available >= pages + share;
    if (fits) {
        account.stat.stat_available -= pages;
        *part += pages;
        if (c != NULL)
            c->commit_pages += pages;
    }
    spin_unlock(&account.lock);
    if (fits || !more)
        return fits;
    more = buddy_pressure();
    goto again;
}

static void refund(size_t pages, size_t *part)
{
    spin_assert_held(&account.lock);
    *part -= pages;
    account.stat.stat_available += pages;
}

/* Pages that must stay available after a charge to that session. */
static size_t reserve(const struct session *s)
{
    return s == NULL ? 0 : session_reserve;
}

/* ---- the kernel's pages ------------------------------------------------- */

bool mm_charge(size_t pages)
{
    return pages <= MIN(BUDDY_MAX_PAGES, account.stat.stat_total) &&
           charge(pages, reserve(session_self()), &account.stat.stat_kernel,
                  NULL);
}

void mm_refund(size_t pages)
{
    spin_lock(&account.lock);
    refund(pages, &account.stat.stat_kernel);
    spin_unlock(&account.lock);
}

/* ---- promises ----------------------------------------------------------- */

void commit_enter(struct commit *c, struct session *session)
{
    c->commit_pages = 0;
    c->commit_session = session;
    spin_lock(&account.lock);
    list_insert_before(&account.spaces, &c->commit_link);
    spin_unlock(&account.lock);
}

void commit_leave(struct commit *c)
{
    commit_release(c, c->commit_pages);
    spin_lock(&account.lock);
    list_remove(&c->commit_link);
    spin_unlock(&account.lock);
}

int commit_promise(struct commit *c, size_t pages)
{
    if (pages == 0)
        return 0;
    if (pages > account.stat.stat_total)
        return -ENOMEM;
    if (!session_charge(c->commit_session, SESSION_PAGES, pages))
        return -ENOMEM;
    if (charge(pages, COMMIT_KERNEL_SHARE + reserve(c->commit_session),
               &account.stat.stat_promised, c))
        return 0;
    session_refund(c->commit_session, SESSION_PAGES, pages);
    return -ENOMEM;
}

void commit_release(struct commit *c, size_t pages)
{
    spin_lock(&account.lock);
    c->commit_pages -= pages;
    refund(pages, &account.stat.stat_promised);
    spin_unlock(&account.lock);
    session_refund(c->commit_session, SESSION_PAGES, pages);
    mm_wake_waiters();
}

/* ---- read-only frames --------------------------------------------------- */

/* The owner of such a frame is the session that was charged for it, or the
 * account. Other pages with an owner are the slab allocator's. */
bool commit_is_read_only(const struct page *p)
{
    return p->page_owner != NULL &&
           (p->page_state == PAGE_USER || p->page_state == PAGE_ALLOC);
}

void commit_make_read_only(struct commit *c, struct page *p)
{
    spin_lock(&account.lock);
    c->commit_pages--;
    account.stat.stat_promised--;
    account.stat.stat_read_only++;
    p->page_owner = c->commit_session;
    if (p->page_owner == NULL)
        p->page_owner = &account;
    spin_unlock(&account.lock);
}

void commit_free_read_only(struct page *p)
{
    struct session *s = p->page_owner == &account ? NULL : p->page_owner;

    spin_lock(&account.lock);
    p->page_owner = NULL;
    buddy_free(p, 0);
    refund(1, &account.stat.stat_read_only);
    spin_unlock(&account.lock);
    session_refund(s, SESSION_PAGES, 1);
    mm_wake_waiters();
}

/* ---- figures ------------------------------------------------------------ */

void commit_stat(struct commit_stat *out)
{
    spin_lock(&account.lock);
    *out = account.stat;
    spin_unlock(&account.lock);
}

size_t commit_committed(const struct commit_stat *st)
{
    return st->stat_promised + st->stat_read_only;
}

size_t commit_limit(const struct commit_stat *st)
{
    const struct session *s = session_self();
    size_t kept = COMMIT_KERNEL_SHARE + reserve(s);
    size_t room = MAX(st->stat_available, kept) - kept;

    if (s != NULL)
        room = MIN(room, session_limit[SESSION_PAGES] -
                             s->session_used[SESSION_PAGES]);
    return commit_committed(st) + room;
}

/* The sum of what the spaces were promised; more than there is if the list is
 * broken. */
static size_t sum_of_promises(void)
{
    size_t sum = 0;
    size_t spaces = 0;

    list_for_each (l, &account.spaces) {
        sum += list_entry(l, struct commit, commit_link)->commit_pages;
        if (spaces++ > account.stat.stat_total)
            return SIZE_MAX;
    }
    return sum;
}

static size_t count_read_only(void)
{
    size_t n = 0;

    for (size_t i = 0; i < page_count; i++)
        n += commit_is_read_only(&page_array[i]);
    return n;
}

static const char *account_check(void)
{
    const struct commit_stat *st = &account.stat;
    size_t committed = commit_committed(st);

    if (sum_of_promises() != st->stat_promised)
        return "the spaces were promised another number of pages";
    if (count_read_only() != st->stat_read_only)
        return "the number of read-only frames is wrong";
    if (st->stat_kernel + committed + st->stat_available != st->stat_total)
        return "the parts of the account do not add up";
    if (buddy_free_pages() + frame_count() < st->stat_available + committed)
        return "fewer pages are free than were promised";
    return NULL;
}

const char *commit_verify(const char **where)
{
    const char *wrong;

    *where = "the account";
    spin_lock(&account.lock);
    wrong = account_check();
    spin_unlock(&account.lock);
    return wrong;
}
