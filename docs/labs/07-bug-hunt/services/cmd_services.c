/*
 * services: a day of work for the services of lab 7.
 */
#include "drivers/console.h"
#include "docs/labs/07-bug-hunt/services/services.h"
#include "kernel/lib/string.h"
#include "kernel/shell/cmd_task.h"
#include "kernel/shell/shell.h"

static int list(void)
{
    kprintf("%-10s%s\n", "SERVICE", "WHAT");
    for (size_t i = 0; i < services_count; i++)
        kprintf("%-10s%s\n", services[i].service_name,
                services[i].service_what);
    return 0;
}

/* 1 if a result was wrong. */
static int work(const struct service *s)
{
    bool good = workday(s);

    kprintf("%s: %s\n", s->service_name,
            good ? "the day's work is done" : "a result was wrong");
    return good ? 0 : 1;
}

static int cmd_services(char **argv)
{
    bool found = false;
    int result = 0;

    if (!argv[1])
        return list();
    if (!taskcmd_alive())
        return 1;
    for (size_t i = 0; i < services_count; i++)
        if (strcmp(argv[1], "all") == 0 ||
            strcmp(argv[1], services[i].service_name) == 0) {
            found = true;
            result |= work(&services[i]);
        }
    return found ? result
                 : shell_error("'%s' is no service; `services` lists them",
                               argv[1]);
}

static void offer_services(const struct shell_offer *o)
{
    for (size_t i = 0; i < services_count; i++)
        shell_offer(o, services[i].service_name);
}

SHELL_COMMAND(services, {"[SERVICE|all]", cmd_services, SHELL_ACTION});
SHELL_WORDS(SERVICE, offer_services);
