/*
 * Which request is next: the elevator.
 *
 * The arm moves upwards through the sectors, serves requests ahead of it, and
 * after the last one returns to the first. (Sweeps in one direction treat all
 * sectors alike.) A request without a position, such as a flush, is served at
 * once. Requests that keep coming just ahead of the arm could delay others for
 * long, so at most ATA_PATIENCE requests overtake another: then the oldest is
 * next.
 *
 * The list has one entry per waiting client, so a linear search is fine.
 */
#include "drivers/servers/ata/channel.h"

void ata_queue_init(struct ata_queue *q)
{
    *q = (struct ata_queue){0};
    list_init(&q->queue_list);
}

void ata_queue_add(struct ata_queue *q, struct ata_request *r)
{
    r->req_arrival = q->queue_chosen;
    list_insert_before(&q->queue_list, &r->req_link);
}

/* The positions of both drives on one line, the master first. */
static uint32_t place(const struct ata_request *r)
{
    return r->req_drive * ATA_LBA_END + r->req_lba;
}

static bool has_place(const struct ata_request *r)
{
    return r->req_operation == ATA_OP_READ || r->req_operation == ATA_OP_WRITE;
}

/* The distance of the arm to a request; after the end it starts at the
 * beginning. */
static uint32_t distance(const struct ata_queue *q, const struct ata_request *r)
{
    return has_place(r) ? place(r) - q->queue_head : 0;
}

static struct ata_request *nearest(const struct ata_queue *q)
{
    struct ata_request *best = NULL;

    list_for_each (l, &q->queue_list) {
        struct ata_request *r = list_entry(l, struct ata_request, req_link);

        if (best == NULL || distance(q, r) < distance(q, best))
            best = r;
    }
    return best;
}

struct ata_request *ata_queue_take(struct ata_queue *q)
{
    struct ata_request *r;

    if (list_empty(&q->queue_list))
        return NULL;
    r = list_entry(q->queue_list.next, struct ata_request, req_link);
    if (q->queue_chosen - r->req_arrival < ATA_PATIENCE)
        r = nearest(q);
    q->queue_chosen++;
    if (has_place(r))
        q->queue_head = place(r) + r->req_sectors;
    list_remove(&r->req_link);
    return r;
}
