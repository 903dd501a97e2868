/*
 * Servers and interrupt lines: the grants, and the tasks that hold them.
 */
#include "drivers/pic.h"
#include "kernel/fs/proc.h"
#include "kernel/ipc/port.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/symbol.h"
#include "kernel/shell/cmd_task.h"
#include "kernel/object/grant.h"
#include "kernel/x86/trap.h"

/* ---- servers ------------------------------------------------------------ */

static void offer_servers(const struct shell_offer *o)
{
    struct grant_stat st;

    for (size_t n = 0; grant_stat(n, &st); n++)
        shell_offer(o, st.stat_server.server_name);
}

SHELL_COMMAND(servers, {"[-j]", .form_table = &proc_servers, SHELL_REPORT});
SHELL_WORDS(SERVER, offer_servers);

/* ---- irqs --------------------------------------------------------------- */

#define OWNER_MAX 24 /* bytes */

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
    char owner[OWNER_MAX] = "";
    struct irq_line l;

    ipc_irq_stat(irq, &st);
    l = (struct irq_line){.line_number = irq,
                          .line_count = irq_count((int)irq),
                          .line_masked = pic_masked((int)irq),
                          .line_port = st.stat_port};
    if (st.stat_port != 0)
        snprintf(owner, OWNER_MAX, "%s(%d)", st.stat_name, (int)st.stat_task);
    else if (handler != 0)
        strlcpy(owner, name != NULL ? name : "kernel", OWNER_MAX);
    else if (irq_taken((int)irq))
        strlcpy(owner, "cascade", OWNER_MAX);
    l.line_owner = owner[0] != '\0' ? owner : NULL;
    table_row(t, &l);
}

static void irqs_rows(const struct table *t)
{
    for (unsigned irq = 0; irq < PIC_LINES; irq++)
        print_irq(t, irq);
}

static const struct table_source irqs = {irq_columns, irqs_rows, NULL};

SHELL_COMMAND(irqs, {"[-j]", .form_table = &irqs, SHELL_REPORT});
