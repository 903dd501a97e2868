/*
 * The reference trace R1 as a trace.
 */
#include "mm/others/tests/r1.h"

static uint32_t write_event(struct r1 *r, const struct trace_event *e)
{
    return trace_put(r->r1_own, e);
}

const struct r1 *r1_write(struct trace_writer *w)
{
    static struct r1 r;

    r.r1_sink = write_event;
    r.r1_own = w;
    trace_begin(w, TRACE_TIMED | TRACE_SYNTHETIC, 1, r1_cache, R1_CACHES);
    r1_run(&r, R1_SEED, 1);
    return &r;
}
