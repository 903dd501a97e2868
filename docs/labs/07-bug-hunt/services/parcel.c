/*
 * Parcels: the sender hands a parcel over to a box, which owns it from then on.
 * A parcel has one owner at any time.
 */
#include "docs/labs/07-bug-hunt/services/services.h"
#include "kernel/lib/string.h"
#include "mm/kmem.h"

struct parcel {
    struct list parcel_link; /* in its box */
    char parcel_text[PARCEL_TEXT];
};

static struct kmem_cache *cache;

bool parcels_open(void)
{
    if (cache == NULL)
        cache =
            kmem_cache_create("parcel", sizeof(struct parcel), 0, NULL, NULL);
    return cache != NULL;
}

bool parcels_close(void)
{
    if (kmem_cache_destroy(cache) != 0)
        return false;
    cache = NULL;
    return true;
}

void box_init(struct box *b, uint32_t room)
{
    list_init(&b->box_parcels);
    b->box_count = 0;
    b->box_room = room;
}

bool box_put(struct box *b, struct parcel *p)
{
    if (b->box_count == b->box_room) {
        kmem_cache_free(cache, p);
        return false;
    }
    list_insert_before(&b->box_parcels, &p->parcel_link);
    b->box_count++;
    return true;
}

bool parcel_send(struct box *b, const char *text)
{
    struct parcel *p = kmem_cache_alloc(cache, KM_SLEEP);

    strlcpy(p->parcel_text, text, sizeof(p->parcel_text));
    return box_put(b, p);
}

bool box_take(struct box *b, char text[PARCEL_TEXT])
{
    struct parcel *p;

    if (list_empty(&b->box_parcels))
        return false;
    p = list_entry(b->box_parcels.next, struct parcel, parcel_link);
    list_remove(&p->parcel_link);
    b->box_count--;
    strlcpy(text, p->parcel_text, PARCEL_TEXT);
    kmem_cache_free(cache, p);
    return true;
}
