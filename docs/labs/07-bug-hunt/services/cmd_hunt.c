/*
 * hunt: a day of work for the services of lab 7.
 */
#include "drivers/console.h"
#include "docs/labs/07-bug-hunt/services/hunt.h"
#include "kernel/lib/string.h"
#include "kernel/shell/cmd_task.h"
#include "kernel/shell/shell.h"

static int list(void)
{
    kprintf("%-10s%s\n", "SERVICE", "WHAT");
    for (size_t i = 0; i < hunt_count; i++)
        kprintf("%-10s%s\n", hunt_services[i].service_name,
                hunt_services[i].service_what);
    return 0;
}

/* 1 if something was not as it should be. */
static int work(const struct hunt_service *s)
{
    bool good = s->service_day();

    kprintf("%s: %s\n", s->service_name,
            good ? "the day's work is done" : "not all went well");
    return good ? 0 : 1;
}

static int cmd_hunt(int argc, char **argv)
{
    bool found = false;
    int result = 0;

    if (argc == 1)
        return list();
    if (argc != 2)
        return shell_error("wants one service, or all; `hunt` lists them");
    if (!taskcmd_alive())
        return 1;
    for (size_t i = 0; i < hunt_count; i++)
        if (strcmp(argv[1], "all") == 0 ||
            strcmp(argv[1], hunt_services[i].service_name) == 0) {
            found = true;
            result |= work(&hunt_services[i]);
        }
    return found
               ? result
               : shell_error("'%s' is no service; `hunt` lists them", argv[1]);
}

static void complete(void (*add)(const char *word, void *arg), void *arg)
{
    add("all", arg);
    for (size_t i = 0; i < hunt_count; i++)
        add(hunt_services[i].service_name, arg);
}

SHELL_COMMAND(
    hunt, "hunt [SERVICE|all]", "a day of work for small services",
    "The services of lab 7 are examples of clients of the slab\n"
    "allocator, each with a cache of its name while it works. `hunt`\n"
    "lists them; with a name it gives that one something to do, and says\n"
    "whether the results are as they should be. Of heap errors it knows\n"
    "nothing: those are for kmem.debug= (`help debug`), `verify`, `leaks`.\n"
    "Example: hunt meter",
    cmd_hunt, complete);
