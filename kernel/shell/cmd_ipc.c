/*
 * Messages: the ports, and the chains of tasks that wait for replies.
 */
#include "drivers/console.h"
#include "kernel/ipc/port.h"
#include "kernel/lib/string.h"
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

static int cmd_ports(char **argv UNUSED)
{
    struct table t = shell_table(port_columns);
    struct port_row row = {.row_stat.stat_number = 0};
    struct port *port = NULL;

    while ((port = port_walk(port, &row.row_stat)) != NULL) {
        row.row_remark = row.row_stat.stat_name_server    ? " the name server's"
                         : row.row_stat.stat_holders == 0 ? " dead"
                                                          : "";
        if (!shell_interrupted())
            table_row(&t, &row);
    }
    if (row.row_stat.stat_number == 0 && !t.table_json)
        kprintf("(there are no ports)\n");
    return 0;
}

SHELL_COMMAND(ports, cmd_ports, "[-j]", SHELL_REPORT);

/* ---- ipc ---------------------------------------------------------------- */

#define EDGES_MAX 64

/* An edge leads from a caller to the server; each task has one at most. */
static struct graph {
    struct ipc_edge graph_edge[EDGES_MAX];
    bool graph_shown[EDGES_MAX]; /* its task's stack, and its server's */
    size_t graph_edges;
} graph;

/* The edge that begins at a task, or NULL. */
static const struct ipc_edge *edge_of(pid_t pid)
{
    for (size_t i = 0; i < graph.graph_edges; i++)
        if (graph.graph_edge[i].edge_task == pid)
            return &graph.graph_edge[i];
    return NULL;
}

static bool is_waited_for(pid_t pid)
{
    for (size_t i = 0; i < graph.graph_edges; i++)
        if (graph.graph_edge[i].edge_server == pid)
            return true;
    return false;
}

static bool is_shown(pid_t pid)
{
    for (size_t i = 0; i < graph.graph_edges; i++)
        if (graph.graph_shown[i] && (graph.graph_edge[i].edge_task == pid ||
                                     graph.graph_edge[i].edge_server == pid))
            return true;
    return false;
}

/* The whole chain on one line. A cycle ends where it is closed. */
static void print_chain(const struct ipc_edge *e)
{
    size_t length = 0;

    kprintf("%s(%d)", e->edge_name, (int)e->edge_task);
    for (; e != NULL && length++ <= graph.graph_edges;
         e = edge_of(e->edge_server)) {
        kprintf(" -> port %u%s -> ", e->edge_port,
                e->edge_state == IPC_QUEUED ? " (queued)" : "");
        if (e->edge_server == 0)
            kprintf("no task");
        else
            kprintf("%s(%d)", e->edge_server_name, (int)e->edge_server);
    }
    kprintf("\n");
}

static void print_task_stack(const char *name, pid_t pid)
{
    if (pid == 0 || is_shown(pid))
        return;
    kprintf("  the stack of %s(%d):\n", name, (int)pid);
    if (!taskcmd_print_stack(pid))
        kprintf("  (gone)\n");
}

/* Prints the stacks of all tasks of the chain, each once. */
static void print_stacks(const struct ipc_edge *e)
{
    for (; e != NULL; e = edge_of(e->edge_server)) {
        bool *shown = &graph.graph_shown[e - graph.graph_edge];

        if (*shown)
            return;
        print_task_stack(e->edge_name, e->edge_task);
        print_task_stack(e->edge_server_name, e->edge_server);
        *shown = true;
    }
}

/* First the chains that begin with a task for which no other waits; then, with
 * `cycles`, the rest. */
static void print_graph(bool cycles)
{
    for (size_t i = 0; i < graph.graph_edges && !shell_interrupted(); i++) {
        const struct ipc_edge *e = &graph.graph_edge[i];

        if (graph.graph_shown[i] || (!cycles && is_waited_for(e->edge_task)))
            continue;
        print_chain(e);
        print_stacks(e);
    }
}

static int cmd_ipc(char **argv)
{
    (void)argv;
    memset(&graph, 0, sizeof(graph));
    graph.graph_edges = ipc_edges(graph.graph_edge, EDGES_MAX);
    print_graph(false);
    print_graph(true);
    if (graph.graph_edges == EDGES_MAX)
        kprintf("(only the first %d callers)\n", EDGES_MAX);
    if (graph.graph_edges == 0)
        kprintf("(no task waits for a reply)\n");
    return 0;
}

SHELL_COMMAND(ipc, cmd_ipc, "", SHELL_REPORT);
