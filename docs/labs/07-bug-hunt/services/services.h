/*
 * Six small services, clients of the slab allocator, for lab 7:
 *
 *     meter.c    the last readings of a gauge
 *     bell.c     bells that call a function at their hour
 *     parcel.c   boxes in which parcels wait
 *     words.c    texts by name
 *     channel.c  lanes with credit
 *     seats.c    a hall whose seats are sold
 *
 * workday.c has a day of work for each, for the command `services`. A service
 * has a cache of its name while it is open. _open returns false if there is no
 * memory for the cache. _close returns false if objects are still allocated:
 * then the cache remains, so that it can be examined, and the next _open uses
 * it again.
 */
#pragma once

#include "kernel/lib/list.h"

/* ---- meter: the last readings of a gauge -------------------------------- */

struct meter;

/* Meters keep `slots` readings each, 1 to METER_SLOTS_MAX. */
#define METER_SLOTS_MAX 200
bool meters_open(uint32_t slots);
bool meters_close(void);

struct meter *meter_new(void);
void meter_free(struct meter *m);
void meter_add(struct meter *m, uint32_t reading);

/* The sum of the readings that are kept; their number. */
uint32_t meter_sum(const struct meter *m);
uint32_t meter_kept(const struct meter *m);

/* ---- bell: bells that call a function at their hour --------------------- */

#define BELL_HOURS 12

struct bell;
typedef void bell_call_t(struct bell *b);

bool bells_open(void);
bool bells_close(void);

/* A bell that rings every so many hours. `call` may stop it: bell_stop itself
 * makes one that rings once. */
struct bell *bell_new(uint32_t every, bell_call_t *call);
void bell_stop(struct bell *b);

/* Rings all bells that are due at `hour`, which is below BELL_HOURS. */
void bells_ring(uint32_t hour);

/* How often a bell has rung at that hour; the number of bells. */
uint32_t bell_rung(const struct bell *b, uint32_t hour);
uint32_t bells_count(void);

/* ---- parcel: boxes in which parcels wait -------------------------------- */

#define PARCEL_TEXT 24

struct parcel;

struct box {
    struct list box_parcels; /* the oldest first */
    uint32_t box_count;
    uint32_t box_room; /* the most parcels that it takes */
};

bool parcels_open(void);
bool parcels_close(void);
void box_init(struct box *b, uint32_t room);

/* Puts a new parcel with this text into the box; false if the box is full. */
bool parcel_send(struct box *b, const char *text);

/* Puts a parcel into the box, or frees it and returns false if the box is full.
 * The caller no longer owns the parcel in either case. */
bool box_put(struct box *b, struct parcel *p);

/* Takes the oldest parcel out and copies its text; false if there is none. */
bool box_take(struct box *b, char text[PARCEL_TEXT]);

/* ---- words: texts by name ----------------------------------------------- */

#define WORDS_MAX 16 /* names */
#define WORD_TEXT 28

bool words_open(void);
bool words_close(void); /* removes all names first */

/* Gives a name (kept by the caller) a text, in the place of its old one; false
 * if there are too many names. */
bool words_set(const char *name, const char *text);

/* The text of a name, or NULL. */
const char *words_get(const char *name);

/* Removes a name. */
void words_remove(const char *name);

/* ---- channel: lanes with credit ----------------------------------------- */

#define CHANNEL_LANES  12
#define CHANNEL_CREDIT 8 /* of a lane that is not used */

struct channel;

bool channels_open(void);
bool channels_close(void);
struct channel *channel_open(void);
void channel_close(struct channel *c); /* credit that is taken is returned */

/* Takes one unit of a lane's credit, false if none is left; gives one back. */
bool channel_take(struct channel *c, uint32_t lane);
void channel_give(struct channel *c, uint32_t lane);

/* The sum of the credit of all lanes. */
uint32_t channel_credit(const struct channel *c);

/* ---- seats: a hall whose seats are sold --------------------------------- */

#define SEATS 16

bool seats_open(void);
bool seats_close(void);

/* Sells the first free seat; -1 if there is none. From any task; may wait. */
int seat_book(const char *who);

/* The owner of a seat; NULL if it is free. */
const char *seat_owner(int seat);

/* Frees the ticket of this seat, which is free again. */
void seat_return(int seat);

/* ---- the services together ---------------------------------------------- */

/* A service and its day of work, for workday(). */
struct service {
    const char *service_name; /* and of its cache */
    const char *service_what;
    bool (*service_day)(void);
};

extern const struct service services[];
extern const size_t services_count;

/* Gives a service its day of work: prints each wrong result, and returns false
 * if there was one. */
bool workday(const struct service *s);

/* The number of the latest request of the day; the first is 1. */
extern uint32_t workday_request;

/* Called between two requests, for breakpoints. */
void workday_step(void);
