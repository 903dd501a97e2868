/*
 * The map of ports: filled at a switch, and compared with the task's rights.
 */
#include "kernel/task/io_map.h"
#include "kernel/lib/manifest.h"
#include "kernel/x86/gdt.h"

/* Whose ports the map allows. Guarded by sched_lock. */
static const struct manifest_server *mapped;

static void set_ports(const struct manifest_server *s, bool allow)
{
    for (unsigned i = 0; i < s->server_ports; i++)
        gdt_ports_allow(s->server_port[i].range_first,
                        s->server_port[i].range_last, allow);
}

void io_map_load(const struct task *next)
{
    const struct manifest_server *s = next->task_ports;

    spin_assert_held(&sched_lock);
    if (CPU_SEVERAL && cpu_self() != &cpu_boot)
        return; /* a task that gets ports here is about to move */
    if (s != NULL && s != mapped) {
        if (mapped != NULL)
            set_ports(mapped, false);
        set_ports(s, true);
        mapped = s;
    }
    gdt_ports_on(s != NULL);
}

/* Whether the map allows all these ports; counts them. */
static bool allows_all(const struct manifest_server *s, size_t *ports)
{
    for (unsigned i = 0; i < s->server_ports; i++)
        for (uint32_t port = s->server_port[i].range_first;
             port <= s->server_port[i].range_last; port++, ++*ports)
            if (!gdt_port_allowed(port))
                return false;
    return true;
}

const char *io_map_check(void)
{
    const struct manifest_server *s = cpu_boot.cpu_task->task_ports;
    size_t ports = 0;

    if (gdt_ports_are_on() != (s != NULL) || (s != NULL && s != mapped))
        return "the map of ports is not that of the task that runs";
    if ((mapped != NULL && !allows_all(mapped, &ports)) ||
        gdt_ports_allowed() != ports)
        return "the map allows other ports than the grant";
    return NULL;
}
