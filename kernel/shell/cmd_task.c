/*
 * Tasks: listing them, killing them, and their open files.
 *
 * The commands print a row or a few at a time, so that the scheduler is locked
 * for a short time only. A handle table has no lock of its own, but
 * with sched_lock held no task but the caller runs, so the tables of other
 * tasks do not change.
 */
#include "kernel/shell/cmd_task.h"
#include "kernel/fs/device.h"
#include "kernel/fs/proc.h"
#include "kernel/fs/userfs.h"
#include "kernel/ipc/port.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/x86/panic.h"
#include "kernel/shell/cmd_kmem.h"
#include "kernel/object/handle.h"
#include "kernel/object/session.h"
#include "kernel/x86/backtrace.h"
#include "kernel/x86/switch.h"

#define FRAMES_MAX 24
#define MS_TO_DIE  10

/* ---- shared by the commands --------------------------------------------- */

bool taskcmd_alive(void)
{
    if (panic_happened())
        shell_error("cannot work on a stopped machine");
    return !panic_happened();
}

bool taskcmd_stat(const char *word, struct task_stat *out)
{
    uint32_t pid;

    if (!parse_u32(word, &pid) || pid > INT32_MAX) {
        shell_error("'%.32s' is no pid; `ps` lists them", word);
        return false;
    }
    if (task_stats((pid_t)pid - 1, out, 1) == 1 && out->stat_pid == (pid_t)pid)
        return true;
    shell_error("there is no task %u; `ps` lists them", pid);
    return false;
}

static void offer_numbers(const struct shell_offer *o, bool programs,
                          bool groups)
{
    struct task_stat st = {.stat_pid = -1};
    char word[12];

    while (task_stats(st.stat_pid, &st, 1) == 1) {
        snprintf(word, sizeof(word), "%d",
                 (int)(groups ? st.stat_group : st.stat_pid));
        if (st.stat_user || !programs)
            shell_offer(o, word);
    }
}

static void offer_tasks(const struct shell_offer *o)
{
    offer_numbers(o, false, false);
}

static void offer_programs(const struct shell_offer *o)
{
    offer_numbers(o, true, false);
}

static void offer_groups(const struct shell_offer *o)
{
    offer_numbers(o, true, true);
}

SHELL_WORDS(TASK, offer_tasks);
SHELL_WORDS(PID, offer_programs);
SHELL_WORDS(GRP, offer_groups);

/* The return addresses on the stack of a task that does not run. The first is
 * where the task will continue. */
static unsigned stack_of(pid_t pid, uintptr_t *pc, unsigned max)
{
    const struct switch_frame *f;
    const struct task *t;
    unsigned n = 0;

    spin_lock(&sched_lock);
    t = task_find(pid);
    if (t != NULL && t->task_state != TASK_RUNNING) {
        f = (const struct switch_frame *)t->task_esp;
        pc[0] = f->eip;
        n = 1 + backtrace(f->ebp, pc + 1, max - 1);
    }
    spin_unlock(&sched_lock);
    return n;
}

bool taskcmd_print_stack(pid_t pid)
{
    uintptr_t pc[FRAMES_MAX];
    unsigned n = stack_of(pid, pc, FRAMES_MAX);

    print_frames(pc, n, false);
    return n > 0;
}

/* ---- ps ----------------------------------------------------------------- */

SHELL_COMMAND(ps, {"[-j]", .form_table = &proc_tasks, SHELL_REPORT});

/* ---- kill --------------------------------------------------------------- */

static const struct signal_name {
    const char *signal_name;
    uint8_t signal_number;
} signals[] = {
    {"INT", SIGINT},   {"ILL", SIGILL},   {"TRAP", SIGTRAP}, {"FPE", SIGFPE},
    {"KILL", SIGKILL}, {"SEGV", SIGSEGV}, {"TERM", SIGTERM},
};

const char *taskcmd_signal(int signal)
{
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
        if (signals[i].signal_number == signal)
            return signals[i].signal_name;
    return NULL;
}

/* "9", "KILL" or "SIGKILL". -1: no such signal. */
static int parse_signal(const char *word)
{
    const char *name = strncmp(word, "SIG", 3) == 0 ? word + 3 : word;
    uint32_t number;

    for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
        if (strcmp(signals[i].signal_name, name) == 0)
            return signals[i].signal_number;
    return parse_u32(word, &number) && number <= SIG_MAX ? (int)number : -1;
}

/* A killed task ends when it next runs. The shell sleeps to let it run, so that
 * the next prompt can report its end. */
static int cmd_kill(char **argv)
{
    const char *word = argv[2] ?: argv[1];
    bool group = word[0] == '-';
    int signal = SIGTERM;
    uint32_t number;
    int error;

    if (!taskcmd_alive())
        return 1;
    if (argv[2])
        signal = argv[1][0] == '-' ? parse_signal(argv[1] + 1) : -1;
    if (signal < 0)
        return shell_error("'%.32s' is no signal; -0 to -%d are, or a name as "
                           "-TERM, before the pid",
                           argv[1], SIG_MAX);
    if (!parse_u32(word + group, &number) || number == 0 || number > INT32_MAX)
        return shell_error(
            "'%.32s' is neither a pid nor a group with a - in front", word);
    error = task_kill(NULL, group ? -(pid_t)number : (pid_t)number, signal);
    if (error == -EPERM)
        return shell_error("%.32s is the kernel's own, not a program", word);
    if (error != 0)
        return shell_error("there is no %s %u; `ps` lists them",
                           group ? "group" : "task", number);
    if (signal != 0)
        sched_sleep_ms(MS_TO_DIE);
    return 0;
}

static void offer_signals(const struct shell_offer *o)
{
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
        shell_offer(o, signals[i].signal_name);
}

SHELL_COMMAND(kill, {"PID|-GRP", cmd_kill, SHELL_ACTION},
              {"-SIGNAL PID|-GRP", cmd_kill, SHELL_ACTION});
SHELL_WORDS(SIGNAL, offer_signals);

/* ---- sessions ----------------------------------------------------------- */

static int end_session(char **argv)
{
    uint32_t number;
    int error;

    if (!taskcmd_alive())
        return 1;
    error = parse_u32(argv[2], &number) ? session_end(number) : -ESRCH;
    if (error == -ESRCH)
        return shell_error("there is no session '%.32s'", argv[2]);
    userfs_unmount_session(number);
    if (error != 0)
        return shell_error("session %.32s has tasks that do not end; `ps` "
                           "lists them",
                           argv[2]);
    return 0;
}

SHELL_COMMAND(sessions, {"[-j]", .form_table = &proc_sessions, SHELL_REPORT},
              {"end N", end_session, SHELL_ACTION});

/* ---- files -------------------------------------------------------------- */

#define NO_HANDLE (-2) /* before the first row */
#define CWD       (-1) /* the row of the current directory */

struct file_row {
    int row_handle;
    char row_shown[12];
    const char *row_type;
    char row_flags[12];
    uint32_t row_offset;
    char row_what[64];
    bool row_running; /* there is no row: the task runs or is pinned */
};

#define HANDLE(member, ...) COLUMN(struct file_row, member, __VA_ARGS__)

static const struct column file_columns[] = {
    HANDLE(row_shown, CHARS, 6, "HANDLE", NULL),
    HANDLE(row_handle, INTEGER, 0, NULL, "handle"),
    HANDLE(row_type, STRING, -6, "TYPE", "type"),
    HANDLE(row_flags, CHARS, -8, "FLAGS", "flags"),
    HANDLE(row_offset, NUMBER, 10, "OFFSET", "offset"),
    HANDLE(row_what, CHARS, -4, "WHAT", "what"),
    {0},
};

static void inode_in_row(const struct inode *inode, struct file_row *row)
{
    const char *device = inode->inode_type == FILE_DEVICE
                             ? device_name(inode->inode_device)
                             : NULL;

    row->row_type = inode_type_name(inode);
    if (device != NULL)
        strlcpy(row->row_what, device, sizeof(row->row_what));
    else
        snprintf(row->row_what, sizeof(row->row_what), "%s %s %u, %u byte%s",
                 inode->inode_fs->fs_name, row->row_type, inode->inode_number,
                 inode->inode_size, plural(inode->inode_size));
}

static void file_in_row(const struct file *f, const char *close,
                        struct file_row *row)
{
    static const char *const access[] = {
        [O_RDONLY] = "r", [O_WRONLY] = "w", [O_RDWR] = "rw"};

    snprintf(row->row_flags, sizeof(row->row_flags), "%s%s%s",
             access[f->file_flags & O_ACCMODE],
             f->file_flags & O_APPEND ? "a" : "", close);
    row->row_offset = f->file_offset;
    if (f->file_inode != NULL) {
        inode_in_row(f->file_inode, row);
        return;
    }
    row->row_type = "pipe";
    snprintf(row->row_what, sizeof(row->row_what), "pipe %p", f->file_data);
}

static void handle_in_row(const struct handle *h, struct file_row *row)
{
    const char *close = h->handle_flags & HANDLE_CLOEXEC ? "c" : "";
    const struct object *o = h->handle_object;

    if (o->object_type == &file_type) {
        file_in_row((const struct file *)o, close, row);
        return;
    }
    row->row_type = o->object_type->type_name;
    snprintf(row->row_flags, sizeof(row->row_flags), "%s %s",
             h->handle_flags & HANDLE_RECEIVE ? "receive" : "call", close);
    snprintf(row->row_what, sizeof(row->row_what), "port %u",
             ((const struct port *)o)->port_number);
}

/* Fills in the row after `row` of a task. False: there is none. */
static bool next_file(pid_t pid, struct file_row *row)
{
    const struct handle_table *table;
    const struct task *t;
    int h = row->row_handle + 1;
    int handles;

    *row = (struct file_row){.row_shown = "cwd", .row_flags = "-"};
    spin_lock(&sched_lock);
    t = task_find_at_rest(pid);
    row->row_running = t == NULL && task_find(pid) != NULL;
    table = t == NULL ? NULL : t->task_handles;
    handles = table == NULL ? 0 : (int)table->table_size;
    if (h == CWD && t != NULL && t->task_cwd != NULL) {
        inode_in_row(t->task_cwd, row);
    } else {
        for (h = MAX(h, 0); h < handles; h++)
            if (table->table_slot[h].handle_object != NULL)
                break;
        if (h < handles)
            handle_in_row(&table->table_slot[h], row);
    }
    spin_unlock(&sched_lock);
    row->row_handle = h;
    if (h != CWD)
        snprintf(row->row_shown, sizeof(row->row_shown), "%d", h);
    return row->row_type != NULL;
}

static int cmd_files(char **argv)
{
    struct file_row row = {.row_handle = NO_HANDLE};
    struct task_stat st;
    struct table t;

    if (!taskcmd_stat(argv[1], &st))
        return 1;
    if (!next_file(st.stat_pid, &row))
        return shell_error(row.row_running
                               ? "task %d runs now; try again"
                               : "task %d has no handles; only programs do",
                           (int)st.stat_pid);
    t = shell_table(file_columns);
    do
        table_row(&t, &row);
    while (next_file(st.stat_pid, &row) && !shell_interrupted());
    if (row.row_running && !t.table_json)
        kprintf("(the task runs again: there may be more handles)\n");
    return 0;
}

SHELL_COMMAND(files, {"[-j] PID", cmd_files, SHELL_REPORT});
