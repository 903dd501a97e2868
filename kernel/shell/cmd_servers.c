/*
 * Servers and interrupt lines: the grants, and the tasks that hold them.
 */
#include "drivers/console.h"
#include "drivers/pic.h"
#include "kernel/ipc/port.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/symbol.h"
#include "kernel/shell/cmd_task.h"
#include "kernel/object/grant.h"
#include "kernel/vm/space.h"
#include "kernel/x86/trap.h"

/* ---- servers ------------------------------------------------------------ */

#define CELL 24

static const char *range(const struct manifest_range *ranges, unsigned n,
                         unsigned i, char *buf)
{
    uint32_t first = ranges[i].range_first;
    uint32_t last = ranges[i].range_last;

    strlcpy(buf, "-", CELL);
    if (i < n && first == last)
        snprintf(buf, CELL, "%x", (unsigned)first);
    else if (i < n)
        snprintf(buf, CELL, "%x-%x", (unsigned)first, (unsigned)last);
    return buf;
}

/* The number of the i-th bit that is set, or -1. */
static int nth_bit(uint32_t bits, unsigned i)
{
    for (; bits != 0 && i > 0; i--)
        bits &= bits - 1;
    return bits == 0 ? -1 : __builtin_ctz(bits);
}

/* Prints row `i` of the rights, which may need several. False: no such row. */
static bool print_rights(const struct grant_stat *st, unsigned i)
{
    const struct manifest_server *s = &st->stat_server;
    int line = nth_bit(s->server_irqs, i);
    char ports[CELL], memory[CELL], irq[CELL] = "-";

    if (i > 0 && i >= s->server_ports && i >= s->server_memories && line < 0)
        return false;
    if (i > 0)
        kprintf("\n%24s", "");
    if (line >= 0)
        snprintf(irq, sizeof(irq), "%d", line);
    kprintf(" %9s %3s %17s",
            range(s->server_port, s->server_ports, MIN(i, MANIFEST_PORTS - 1u),
                  ports),
            irq,
            range(s->server_memory, s->server_memories,
                  MIN(i, MANIFEST_MEMORY - 1u), memory));
    return true;
}

static void print_server(const struct grant_stat *st)
{
    const struct manifest_server *s = &st->stat_server;
    char pid[CELL] = "-";
    char dma[CELL] = "-";
    unsigned i = 0;

    if (st->stat_pid != 0)
        snprintf(pid, sizeof(pid), "%d", (int)st->stat_pid);
    if (s->server_dma != 0)
        snprintf(dma, sizeof(dma), "%zu/%u", space_dma_pages(st->stat_pid),
                 s->server_dma);
    kprintf("%-10s %5s %-7s", s->server_name, pid, grant_state(st));
    print_rights(st, i);
    if (st->stat_program)
        kprintf(" %6s %.*s", dma, manifest_path_length(s), s->server_command);
    else
        kprintf(" %6s no program", dma);
    while (print_rights(st, ++i))
        continue;
    kprintf("\n");
}

static void json_ranges(const char *name, const struct manifest_range *ranges,
                        unsigned n)
{
    kprintf(",\"%s\":[", name);
    for (unsigned i = 0; i < n; i++)
        kprintf("%s[%u,%u]", i > 0 ? "," : "", (unsigned)ranges[i].range_first,
                (unsigned)ranges[i].range_last);
    kprintf("]");
}

static void json_server(const struct grant_stat *st)
{
    const struct manifest_server *s = &st->stat_server;

    kprintf("{\"server\":");
    print_json(print_console, NULL, s->server_name);
    kprintf(",\"pid\":%d,\"state\":\"%s\"", (int)st->stat_pid, grant_state(st));
    json_ranges("ports", s->server_port, s->server_ports);
    kprintf(",\"irqs\":[");
    for (unsigned i = 0; nth_bit(s->server_irqs, i) >= 0; i++)
        kprintf("%s%d", i > 0 ? "," : "", nth_bit(s->server_irqs, i));
    kprintf("]");
    json_ranges("memory", s->server_memory, s->server_memories);
    kprintf(",\"dma\":%u,\"dma_used\":%zu,\"program\":%s,\"command\":",
            s->server_dma, space_dma_pages(st->stat_pid),
            st->stat_program ? "true" : "false");
    print_json(print_console, NULL, s->server_command);
    kprintf("}\n");
}

static int cmd_servers(char **argv)
{
    struct grant_stat st;
    bool json = shell_option('j');
    size_t n = 0;

    (void)argv;
    if (!json)
        kprintf("%-10s %5s %-7s %9s %3s %17s %6s %s\n", "NAME", "PID", "STATE",
                "PORTS", "IRQ", "MEMORY", "DMA", "PROGRAM");
    for (; !shell_interrupted() && grant_stat(n, &st); n++)
        json ? json_server(&st) : print_server(&st);
    if (n == 0 && !json)
        kprintf("(/etc/servers grants nothing)\n");
    return 0;
}

static void offer_servers(const struct shell_offer *o)
{
    struct grant_stat st;

    for (size_t n = 0; grant_stat(n, &st); n++)
        shell_offer(o, st.stat_server.server_name);
}

SHELL_COMMAND(servers, cmd_servers, "[-j]", SHELL_REPORT);
SHELL_WORDS(SERVER, offer_servers);

/* ---- irqs --------------------------------------------------------------- */

struct irq_line {
    uint32_t line_number;
    uint32_t line_count;
    bool line_masked;
    uint32_t line_port;     /* 0: not bound */
    const char *line_owner; /* NULL: unused */
};

#define LINE(member, ...) COLUMN(struct irq_line, member, __VA_ARGS__)

static const struct column irq_columns[] = {
    LINE(line_number, NUMBER, 4, "LINE", "line"),
    LINE(line_count, NUMBER, 10, "COUNT", "count"),
    LINE(line_owner, STRING, -23, "OWNER", "owner"),
    LINE(line_port, NONZERO, 6, "PORT", "port"),
    LINE(line_masked, FLAG, -6, "MASKED", "masked"),
    {0},
};

/* A line that is not bound is the kernel's if it has a handler. */
static void print_irq(const struct table *t, unsigned irq)
{
    struct ipc_irq_stat st;
    uintptr_t handler = irq_handler((int)irq);
    const char *name = handler ? symbol_lookup(handler, NULL) : NULL;
    char owner[CELL] = "";
    struct irq_line l;

    ipc_irq_stat(irq, &st);
    l = (struct irq_line){.line_number = irq,
                          .line_count = irq_count((int)irq),
                          .line_masked = pic_masked((int)irq),
                          .line_port = st.stat_port};
    if (st.stat_port != 0)
        snprintf(owner, CELL, "%s(%d)", st.stat_name, (int)st.stat_task);
    else if (handler != 0)
        strlcpy(owner, name != NULL ? name : "kernel", CELL);
    else if (irq_taken((int)irq))
        strlcpy(owner, "cascade", CELL);
    l.line_owner = owner[0] != '\0' ? owner : NULL;
    table_row(t, &l);
}

static int cmd_irqs(char **argv UNUSED)
{
    struct table t = shell_table(irq_columns);

    for (unsigned irq = 0; irq < PIC_LINES; irq++)
        print_irq(&t, irq);
    return 0;
}

SHELL_COMMAND(irqs, cmd_irqs, "[-j]", SHELL_REPORT);
