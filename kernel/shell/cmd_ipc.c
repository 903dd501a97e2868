/*
 * Messages: the ports, and the tasks that wait for replies.
 */
#include "kernel/ipc/port.h"
#include "kernel/shell/cmd_task.h"

/* ---- ports -------------------------------------------------------------- */

/* A row of `ports`. */
struct port_row {
    struct port_stat row_stat;
    const char *row_remark;
};

#define PORT(member, ...) COLUMN(struct port_row, member, __VA_ARGS__)

static const struct column port_columns[] = {
    PORT(row_stat.stat_number, NUMBER, 6, "NUMBER", "number"),
    PORT(row_stat.stat_refs, NUMBER, 5, "REFS", "refs"),
    PORT(row_stat.stat_holders, NUMBER, 7, "RECEIVE", "receive"),
    PORT(row_stat.stat_calls, NUMBER, 7, "CALLS", "calls"),
    PORT(row_stat.stat_queued, NUMBER, 6, "QUEUED", "queued"),
    PORT(row_stat.stat_waiting, NUMBER, 7, "WAITING", "waiting"),
    PORT(row_stat.stat_bits, WORD, 8, "BITS", "bits"),
    PORT(row_stat.stat_irqs, HEX, 8, "IRQS", "irqs"),
    PORT(row_remark, STRING, -18, "", NULL),
    {0},
};

static void ports_rows(const struct table *t)
{
    struct port_row row = {.row_stat.stat_number = 0};
    struct port *port = NULL;

    while ((port = port_walk(port, &row.row_stat)) != NULL) {
        row.row_remark = row.row_stat.stat_name_server    ? " the name server's"
                         : row.row_stat.stat_holders == 0 ? " dead"
                                                          : "";
        if (!shell_interrupted())
            table_row(t, &row);
    }
}

static const struct table_source ports = {port_columns, ports_rows,
                                          "(there are no ports)"};

/* ---- ports -w ----------------------------------------------------------- */

#define EDGE(member, ...) COLUMN(struct ipc_edge, member, __VA_ARGS__)

static const struct column edge_columns[] = {
    EDGE(edge_task, INTEGER, 5, "PID", "pid"),
    EDGE(edge_name, CHARS, -15, "CALLER", "name"),
    EDGE(edge_port, NUMBER, 6, "PORT", "port"),
    EDGE(edge_queued, FLAG, -6, "QUEUED", "queued"),
    EDGE(edge_server, NONZERO, 5, "PID", "server"),
    EDGE(edge_server_name, CHARS, -15, "SERVER", "server_name"),
    {0},
};

#define EDGES_MAX 64

/* An edge leads from a caller to the server; each task has one at most. */
static struct ipc_edge edges[EDGES_MAX];

static void print_task_stack(const char *name, pid_t pid)
{
    kprintf("  the stack of %s(%d):\n", name, (int)pid);
    if (!taskcmd_print_stack(pid))
        kprintf("  (gone)\n");
}

/* Whether a server is a caller as well, or one of an edge before `n`. */
static bool stack_elsewhere(pid_t server, size_t used, size_t n)
{
    for (size_t i = 0; i < used; i++)
        if (edges[i].edge_task == server ||
            (i < n && edges[i].edge_server == server))
            return true;
    return false;
}

/* Of each task once, the servers after their callers. */
static void print_stacks(size_t used)
{
    for (size_t i = 0; i < used && !shell_interrupted(); i++) {
        const struct ipc_edge *e = &edges[i];

        print_task_stack(e->edge_name, e->edge_task);
        if (e->edge_server != 0 && !stack_elsewhere(e->edge_server, used, i))
            print_task_stack(e->edge_server_name, e->edge_server);
    }
}

static void print_edges(void)
{
    struct table t = shell_table(edge_columns);
    size_t used = ipc_edges(edges, EDGES_MAX);

    for (size_t i = 0; i < used; i++)
        table_row(&t, &edges[i]);
    if (t.table_json)
        return;
    print_stacks(used);
    if (used == EDGES_MAX)
        kprintf("(only the first %d callers)\n", EDGES_MAX);
    if (used == 0)
        kprintf("(no task waits for a reply)\n");
}

static int cmd_ports(char **argv UNUSED)
{
    if (!shell_option('w'))
        return shell_print(&ports);
    print_edges();
    return 0;
}

SHELL_COMMAND(ports, {"[-w] [-j]", cmd_ports, SHELL_REPORT});
