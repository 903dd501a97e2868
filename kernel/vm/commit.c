/*
 * The account of memory (kernel/vm/commit.h). What is promised is reserved in
 * buddy first, without the lock, since that may reclaim memory.
 */
#include "kernel/vm/commit.h"
#include "kernel/abi/errno.h"
#include "kernel/object/session.h"
#include "mm/buddy.h"

static struct {
    struct spinlock lock;
    struct list spaces;
    size_t promised; /* the sum of commit_pages */
    size_t read_only;
    size_t asked_for; /* being reserved, or not yet promised; atomic */
} account = {
    .lock = SPINLOCK_INIT("commit", LOCK_RANK_COMMIT),
    .spaces = LIST_INIT(account.spaces),
};

/* Pages that must stay available when that session gets some. */
static size_t kept_from(const struct session *s)
{
    return s == NULL ? 0 : session_reserve;
}

size_t mm_keep_most; /* session_init sets it */

size_t mm_keep(void)
{
    return kept_from(session_self());
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
    if (!session_charge(c->commit_session, SESSION_PAGES, pages))
        goto failed;
    __atomic_add_fetch(&account.asked_for, pages, __ATOMIC_RELAXED);
    if (!buddy_reserve(pages,
                       COMMIT_KERNEL_SHARE + kept_from(c->commit_session)))
        goto refund;
    spin_lock(&account.lock);
    account.promised += pages;
    c->commit_pages += pages;
    __atomic_sub_fetch(&account.asked_for, pages, __ATOMIC_RELAXED);
    spin_unlock(&account.lock);
    return 0;

refund:
    __atomic_sub_fetch(&account.asked_for, pages, __ATOMIC_RELAXED);
    session_refund(c->commit_session, SESSION_PAGES, pages);
failed:
    return -ENOMEM;
}

void commit_release(struct commit *c, size_t pages)
{
    spin_lock(&account.lock);
    account.promised -= pages;
    c->commit_pages -= pages;
    buddy_unreserve(pages);
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
    account.promised--;
    account.read_only++;
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
    account.read_only--;
    buddy_free_reserved(p, 1);
    buddy_unreserve(1);
    spin_unlock(&account.lock);
    session_refund(s, SESSION_PAGES, 1);
    mm_wake_waiters();
}

/* ---- figures ------------------------------------------------------------ */

void commit_stat(struct commit_stat *out)
{
    struct buddy_pages b;

    spin_lock(&account.lock);
    buddy_pages(&b);
    out->stat_promised = account.promised;
    out->stat_read_only = account.read_only;
    spin_unlock(&account.lock);
    out->stat_total = b.pages_total;
    out->stat_kernel = b.pages_total - b.pages_free - b.pages_taken;
    out->stat_available = buddy_available(&b);
}

size_t commit_committed(const struct commit_stat *st)
{
    return st->stat_promised + st->stat_read_only;
}

size_t commit_limit(const struct commit_stat *st)
{
    const struct session *s = session_self();
    size_t kept = COMMIT_KERNEL_SHARE + kept_from(s);
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
        if (spaces++ > page_count)
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

const char *commit_verify(const char **where)
{
    const char *wrong = NULL;
    struct buddy_pages b;
    size_t committed;

    *where = "the account";
    spin_lock(&account.lock);
    committed = account.promised + account.read_only;
    buddy_pages(&b); /* before asked_for is read */
    if (sum_of_promises() != account.promised)
        wrong = "the spaces were promised another number of pages";
    else if (count_read_only() != account.read_only)
        wrong = "the number of read-only frames is wrong";
    else if (b.pages_reserved < committed)
        wrong = "fewer pages are reserved than were promised";
    else if (b.pages_reserved - committed >
             __atomic_load_n(&account.asked_for, __ATOMIC_RELAXED))
        wrong = "more pages are reserved than were promised";
    spin_unlock(&account.lock);
    return wrong;
}
