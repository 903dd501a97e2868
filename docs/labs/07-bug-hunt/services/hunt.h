/*
 * Six small services, as examples of clients of the slab allocator, and as the
 * ground of lab 7:
 *
 *     meter.c    the last readings of a gauge
 *     bell.c     bells that call somebody
 *     parcel.c   boxes that parcels wait in
 *     words.c    texts by name
 *     channel.c  lanes with credit
 *     seats.c    a hall that is sold out
 *
 * hunt.c has a day of work for each, for the command `hunt`. Every service has
 * a cache of its name while it is open. _open returns false if there is no
 * memory for that; _close, if objects are still out: then the cache stays, for
 * looking at it, and the next _open goes on with it.
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

/* Of the readings that are kept; how many these are. */
uint32_t meter_sum(const struct meter *m);
uint32_t meter_kept(const struct meter *m);

/* ---- bell: bells that call somebody ------------------------------------- */

#define BELL_HOURS 12

struct bell;
typedef void bell_call_t(struct bell *b);

bool bells_open(void);
bool bells_close(void);

/* A bell that rings every so many hours. `call` may stop it: bell_stop itself
 * makes one that rings once. */
struct bell *bell_new(uint32_t every, bell_call_t *call);
void bell_stop(struct bell *b);

/* It is `hour`, below BELL_HOURS: rings all bells that are due. */
void bells_ring(uint32_t hour);

/* How often a bell has rung at that hour; how many bells there are. */
uint32_t bell_rung(const struct bell *b, uint32_t hour);
uint32_t bells_count(void);

/* ---- parcel: boxes that parcels wait in --------------------------------- */

#define PARCEL_TEXT 24

struct parcel;

struct box {
    struct list box_parcels; /* the oldest first */
    uint32_t box_count;
    uint32_t box_room; /* for so many */
};

bool parcels_open(void);
bool parcels_close(void);
void box_init(struct box *b, uint32_t room);

/* Puts a new parcel with this text into the box; false if that is full. */
bool parcel_send(struct box *b, const char *text);

/* Puts a parcel into the box, or throws it away if that is full: then the
 * result is false. It is not the caller's any more in either case. */
bool box_put(struct box *b, struct parcel *p);

/* Takes the oldest parcel out and copies its text; false if there is none. */
bool box_take(struct box *b, char text[PARCEL_TEXT]);

/* ---- words: texts by name ----------------------------------------------- */

#define WORDS_MAX 16 /* names */
#define WORD_TEXT 28

bool words_open(void);
bool words_close(void); /* forgets all names first */

/* Gives a name (kept by the caller) a text, instead of any that it has; false
 * if there are too many names. */
bool words_set(const char *name, const char *text);

/* The text of a name, or NULL. */
const char *words_get(const char *name);

/* Forgets a name. */
void words_remove(const char *name);

/* ---- channel: lanes with credit ----------------------------------------- */

#define CHANNEL_LANES  12
#define CHANNEL_CREDIT 8 /* of a lane that nobody uses */

struct channel;

bool channels_open(void);
bool channels_close(void);
struct channel *channel_open(void);
void channel_close(struct channel *c); /* credit that is taken comes back */

/* Takes a lane's credit, if there is any left, and gives it back. */
bool channel_take(struct channel *c, uint32_t lane);
void channel_give(struct channel *c, uint32_t lane);

/* The credit of all lanes together. */
uint32_t channel_credit(const struct channel *c);

/* ---- seats: a hall that is sold out ------------------------------------- */

#define SEATS 16

bool seats_open(void);
bool seats_close(void);

/* Sells the first free seat, or -1. From any task; may wait. */
int seat_book(const char *who);

/* Whose a seat is; NULL: nobody's. */
const char *seat_owner(int seat);

/* The ticket of this seat is given back. */
void seat_return(int seat);

/* ---- the services together ---------------------------------------------- */

/* A day of a service: false after a line that says what went wrong. */
struct hunt_service {
    const char *service_name; /* of its cache, too */
    const char *service_what;
    bool (*service_day)(void);
};

extern const struct hunt_service hunt_services[];
extern const size_t hunt_count;

/* Called between two requests of a day: a good place for a breakpoint. */
void hunt_step(void);
