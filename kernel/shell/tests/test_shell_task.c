/*
 * The commands about tasks, files and messages, as far as they need states that
 * are hard to bring about from outside. (tools/test/programs/test_programs.py
 * has the rest.)
 *
 * Tests: kernel/shell/cmd_task.c, kernel/shell/cmd_fs.c
 * Tests: kernel/shell/cmd_ipc.c
 */
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/shell/shell.h"
#include "kernel/ipc/tests/ipc_cast.h"
#include "kernel/shell/tests/shell_test.h"
#include "kernel/vm/space.h"

static unsigned times(const char *text)
{
    unsigned n = 0;

    for (const char *at = shell_test_said; (at = strstr(at, text)) != NULL;
         at++)
        n++;
    return n;
}

#define KT_SAID(n, ...)                                                        \
    do {                                                                       \
        char kt_text[160];                                                     \
        snprintf(kt_text, sizeof(kt_text), __VA_ARGS__);                       \
        if (times(kt_text) != (n))                                             \
            KT_FAIL("\"%s\" %u times, not %u", kt_text, times(kt_text),        \
                    (unsigned)(n));                                            \
    } while (0)

/* ---- programs on other processors --------------------------------------- */

static char typed[32];

static void run_typed(void)
{
    shell_test_run(typed);
}

/* Its pages and handles may change while the command looks. */
KTEST(shell_task, a_running_program_is_not_looked_into)
{
    begin(0);
    KT_TRUE(actor_memory(&s, ACTOR_BUFFER) != NULL);
    snprintf(typed, sizeof(typed), "whatis 0x%x", ACTOR_BUFFER);
    run_typed();
    KT_SAID(1, "of task %d (server)", (int)s.actor_pid);
    actor_run_elsewhere(&s, run_typed);
    KT_SAID(0, "of task %d (server)", (int)s.actor_pid);
    snprintf(typed, sizeof(typed), "files %d", (int)s.actor_pid);
    run_typed();
    KT_SAID(1, " receive ");
    actor_run_elsewhere(&s, run_typed);
    KT_SAID(0, " receive ");
    KT_SAID(1, "files: task %d runs now; try again\n", (int)s.actor_pid);
    snprintf(typed, sizeof(typed), "whatis %p", actor_memory(&s, ACTOR_BUFFER));
    run_typed();
    KT_SAID(1, "of task %d (server)", (int)s.actor_pid);
    actor_run_elsewhere(&s, run_typed);
    KT_SAID(1, "  no task at rest maps it\n");
}

/* ---- ports -w ----------------------------------------------------------- */

/* The number of the port of a handle. */
static unsigned number(const struct actor *a, uint32_t h)
{
    const struct port *port = (const struct port *)handle_object(
        a->actor_task->task_handles, (int)h, &port_type);

    return port == NULL ? 0 : port->port_number;
}

#define KT_EDGE(caller, name, port, queued, to, to_name)                       \
    KT_SAID(1, "\n%5d %-15s %6u %-6s %5d %s\n", (int)(caller)->actor_pid,      \
            name, port, queued, (int)(to)->actor_pid, to_name)

KTEST(shell_task, ports_lists_callers_and_stacks)
{
    uint32_t port, handle;

    KT_EQ(shell_test_run("ports -w"), 0);
    KT_SAID(1, "(no task waits for a reply)\n");
    begin(3);
    port = actor_port(&e);
    handle = actor_share(&e, port, &s, 0);
    KT_TRUE(!call(&c, port_c, 1));
    KT_EQ(shell_test_run("ports -w"), 0);
    KT_EDGE(&c, "client-c", number(&s, port_s), "yes", &s, "server");
    KT_TRUE(receive());
    KT_TRUE(!call(&d, port_d, 2));
    KT_TRUE(!call(&s, handle, 3));
    KT_EQ(shell_test_run("ports -w"), 0);
    KT_EDGE(&c, "client-c", number(&s, port_s), "no", &s, "server");
    KT_EDGE(&d, "client-d", number(&s, port_s), "yes", &s, "server");
    KT_EDGE(&s, "server", number(&e, port), "yes", &e, "client-e");
    KT_SAID(1, "the stack of client-c(%d):\n", (int)c.actor_pid);
    KT_SAID(1, "the stack of client-d(%d):\n", (int)d.actor_pid);
    KT_SAID(1, "the stack of server(%d):\n", (int)s.actor_pid);
    KT_SAID(1, "the stack of client-e(%d):\n", (int)e.actor_pid);
    KT_SAID(3, "  ipc_call+0x");
    KT_EQ(shell_test_run("ports -w -j"), 0);
    KT_SAID(1,
            "\"name\":\"client-c\",\"port\":%u,\"queued\":false,\"server\":%d",
            number(&s, port_s), (int)s.actor_pid);
    KT_SAID(0, "stack");
}

KTEST(shell_task, handles_of_one_that_waits)
{
    char line[32];

    begin(1);
    KT_TRUE(!receive());
    snprintf(line, sizeof(line), "files %d", (int)s.actor_pid);
    KT_EQ(shell_test_run(line), 0);
    KT_SAID(1, "port   receive ");
    KT_SAID(1, "port %u\n", number(&s, port_s));
    snprintf(line, sizeof(line), "files %d", (int)c.actor_pid);
    KT_EQ(shell_test_run(line), 0);
    KT_SAID(1, "port   call ");
    KT_EQ(shell_test_run("ports"), 0);
    KT_SAID(1, "\n%6u %5u %7u %7u %6u %7u", number(&s, port_s), 2u, 1u, 0u, 0u,
            1u);
    actor_end(&c);
    actor_end(&s);
    KT_EQ(shell_test_run("files 0"), 1);
}

/* ---- verify ------------------------------------------------------------- */

KTEST(shell_task, verify_finds_faults)
{
    struct handle_table *table;

    begin(1);
    KT_TRUE(!receive());
    KT_EQ(shell_test_run("verify"), 0);
    KT_SAID(1, "every invariant holds\n");
    table = s.actor_task->task_handles;
    table->table_used++;
    KT_EQ(shell_test_run("verify"), 1);
    KT_SAID(1, "verify: programs: server(%d): ", (int)s.actor_pid);
    KT_SAID(0, "every invariant holds");
    table->table_used--;
    s.actor_task->task_space->space_pages++;
    KT_EQ(shell_test_run("verify -j"), 1);
    KT_SAID(1, "{\"check\":\"heap\",\"bad\":0}");
    KT_SAID(1, "{\"check\":\"programs\",\"bad\":1,\"first_bad\":\"server(%d)\"",
            (int)s.actor_pid);
    s.actor_task->task_space->space_pages--;
    KT_EQ(shell_test_run("verify"), 0);
}
