/*
 * beat: the driver. beat.h describes its parts.
 */
#include "docs/labs/08-messages/servers/beat/beat.h"
#include "user/lib/err.h"
#include "user/lib/stdlib.h"

static bool beating;
static unsigned idle; /* beats in a row without a waiting client */

static bool request(struct message *m)
{
    bool has_reply = service_request(m);

    if (clients_waiting() == 0)
        return has_reply;
    idle = 0;
    if (!beating)
        chip_start();
    beating = true;
    return has_reply;
}

/* The beat continues for a second after the last client: a client that waits
 * repeatedly is back by then. */
static void notified(uint32_t bits)
{
    (void)bits; /* any task with the port can notify */
    if (!chip_beat())
        return;
    service_beat();
    idle = clients_waiting() > 0 ? 0 : idle + 1;
    if (idle < BEAT_HZ)
        return;
    chip_stop();
    beating = false;
}

int main(void)
{
    int port = port_create();

    if (port < 0 || chip_open(port) < 0)
        err(errno == ENODEV ? EXIT_ABSENT : 1,
            "interrupt %d (`run -s beat` grants it)", CHIP_IRQ);
    service_begin();
    if (name_register("beat", port) < 0)
        err(1, "the name beat");
    loop(port, request, notified);
}
