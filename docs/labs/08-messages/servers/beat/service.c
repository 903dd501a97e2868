/*
 * Requests, and the numbers of beats.
 */
#include "docs/labs/08-messages/servers/beat/beat.h"

static uint32_t last_beat;

void service_begin(void)
{
    last_beat = keep_load();
}

/* Whether *m is a valid request: a known label, no bytes, no handle; a wait
 * with a valid period, after a beat that is not in the future. */
static bool is_valid(const struct message *m)
{
    uint32_t period = m->msg_word[0];

    if (m->msg_tag == BEAT_COUNT)
        return true;
    return m->msg_tag == BEAT_WAIT && period >= 1 &&
           period <= BEAT_PERIOD_MAX &&
           (int32_t)(last_beat - m->msg_word[1]) >= 0;
}

/* The first multiple of `period` after `last`. */
static uint32_t due_beat(uint32_t period, uint32_t last)
{
    return last - last % period + period;
}

static bool set_reply(struct message *m, int error, uint32_t number)
{
    *m = (struct message){.msg_word = {(uint32_t)-error, number}};
    return true;
}

/* For a beat that is already past, the reply is sent at once: its client was
 * slow. */
bool service_request(struct message *m)
{
    uint32_t due;
    int error;

    if (!is_valid(m))
        return set_reply(m, EINVAL, 0);
    if (m->msg_tag == BEAT_COUNT)
        return set_reply(m, 0, last_beat);
    due = due_beat(m->msg_word[0], m->msg_word[1]);
    if ((int32_t)(last_beat - due) >= 0)
        return set_reply(m, 0, due);
    error = clients_add(m->msg_client, due);
    return error != 0 ? set_reply(m, error, 0) : false;
}

/* A successor must know every number that a client has received. */
void service_beat(void)
{
    last_beat++;
    keep_save(last_beat);
    clients_reply(last_beat);
}
