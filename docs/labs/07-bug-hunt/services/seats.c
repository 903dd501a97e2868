/*
 * Seats of a hall. Many tasks book at once; a seat has one ticket.
 */
#include "docs/labs/07-bug-hunt/services/services.h"
#include "kernel/lib/string.h"
#include "kernel/task/sync.h"
#include "mm/kmem.h"

struct ticket {
    int32_t ticket_seat;
    char ticket_name[20];
};

static struct kmem_cache *cache;
static struct ticket *hall[SEATS]; /* guarded by hall_mutex; NULL: free */
/* Acquired last: its owner acquires no other mutex. */
static struct mutex hall_mutex =
    MUTEX_INIT(hall_mutex, "a seat", MUTEX_RANK_CONSOLE + 1);

bool seats_open(void)
{
    if (cache == NULL)
        cache =
            kmem_cache_create("seats", sizeof(struct ticket), 0, NULL, NULL);
    return cache != NULL;
}

bool seats_close(void)
{
    if (kmem_cache_destroy(cache) != 0)
        return false;
    cache = NULL;
    return true;
}

/* The first free seat, or -1. */
static int find_seat(void)
{
    for (int seat = 0; seat < SEATS; seat++)
        if (hall[seat] == NULL)
            return seat;
    return -1;
}

/* The printer is slow: other tasks run meanwhile. */
static struct ticket *print_ticket(int seat, const char *who)
{
    struct ticket *t = kmem_cache_alloc(cache, KM_SLEEP);

    t->ticket_seat = seat;
    strlcpy(t->ticket_name, who, sizeof(t->ticket_name));
    sched_yield();
    return t;
}

int seat_book(const char *who)
{
    struct ticket *t;
    int seat;

    mutex_lock(&hall_mutex);
    seat = find_seat();
    if (seat >= 0) {
        t = print_ticket(seat, who);
        hall[seat] = t;
    }
    mutex_unlock(&hall_mutex);
    return seat;
}

const char *seat_owner(int seat)
{
    return hall[seat] == NULL ? NULL : hall[seat]->ticket_name;
}

void seat_return(int seat)
{
    mutex_lock(&hall_mutex);
    kmem_cache_free(cache, hall[seat]);
    hall[seat] = NULL;
    mutex_unlock(&hall_mutex);
}
