/*
 * Programs: starting them, and passing the console back and forth.
 *
 *     run ──> process_spawn ──> tty_foreground ─┬─ ended ──> how, if not well
 *                                               └─ ^\ ──> `left`
 *     continue ──> tty_continue(left) ──────────┬─ …
 *
 * A program left with Ctrl-\ still runs, but waits when it uses the console.
 * There is one at a time, since there is one console. For children that end
 * while a command runs, the shell calls task_wait at its next prompt.
 */
#include "drivers/debugcon.h"
#include "kernel/lib/option.h"
#include "kernel/fs/file.h"
#include "kernel/fs/tty.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/x86/panic.h"
#include "kernel/shell/cmd_task.h"
#include "kernel/syscall/process.h"
#include "kernel/object/grant.h"

#define CONSOLE "/dev/console"

static struct {
    pid_t left_pid; /* 0: none */
    char left_name[TASK_NAME_MAX + 1];
} left;

/* ---- how programs end --------------------------------------------------- */

/* 0 if it ended well. Otherwise says how. */
static int report_status(pid_t pid, const char *name, int status)
{
    int signal = WTERMSIG(status);
    int code = WEXITSTATUS(status);
    const char *why = taskcmd_signal(signal);
    char escaped[320];

    debugcon_escape(name, escaped, sizeof(escaped));
    debugcon_event("{\"event\":\"run\",\"pid\":%d,\"name\":\"%s\","
                   "\"exit\":%d,\"signal\":%d}",
                   (int)pid, escaped, code, signal);
    if (signal != 0)
        kprintf("%s: killed by signal %d%s%s%s\n", name, signal,
                why != NULL ? " (" : "", why != NULL ? why : "",
                why != NULL ? ")" : "");
    else if (code != 0)
        kprintf("%s: exit code %d\n", name, code);
    return status != 0;
}

/* Finds a child that has ended and has not been waited for. */
static bool find_ended(struct task_stat *st)
{
    pid_t self = task_self()->task_pid;

    st->stat_pid = -1;
    while (task_stats(st->stat_pid, st, 1) == 1)
        if (st->stat_parent == self && st->stat_state == TASK_ZOMBIE)
            return true;
    return false;
}

void taskcmd_reap(void)
{
    struct task_stat st;
    int status;

    while (find_ended(&st) &&
           task_wait(st.stat_pid, &status, WNOHANG) == st.stat_pid) {
        if (st.stat_pid == left.left_pid)
            left.left_pid = 0;
        if (report_status(st.stat_pid, st.stat_name, status) == 0)
            kprintf("%s: done\n", st.stat_name);
    }
}

/* Reports how the program ended, or that Ctrl-\ took the console from it. */
static int console_back(pid_t pid, const char *name, int error, int status)
{
    left.left_pid = 0;
    if (error == 0)
        return report_status(pid, name, status);
    if (error != -EINTR)
        return shell_error("%s is not a child of the shell", name);
    left.left_pid = pid;
    strlcpy(left.left_name, name, sizeof(left.left_name));
    kprintf("\n%s (pid %d) has lost the console; `continue` goes back to it\n",
            name, (int)pid);
    return 0;
}

/* ---- run ---------------------------------------------------------------- */

typedef char path_t[SHELL_LINE_MAX + 8];

static int try_program(const char *folder, const char *name, path_t path)
{
    struct file *f;
    int error;

    snprintf(path, sizeof(path_t), "%s%s", folder, name);
    error = file_open(path, NULL, O_RDONLY, &f);
    if (error != 0)
        return error;
    if (f->file_inode == NULL || f->file_inode->inode_type != FILE_REGULAR)
        error = -ENOEXEC;
    object_put(&f->file_object);
    return error;
}

static int cannot_start(const char *path, int error)
{
    path_t init;

    switch (error) {
    case -ENOENT:
    case -ENOTDIR:
    case -ENAMETOOLONG:
        return shell_error(
            try_program("/sbin/", "init", init) == 0
                ? "there is no %s; `run ls /bin` lists programs"
                : "there is no %s, nor any program; boot with the archive of "
                  "programs, as `make run` does: -initrd build/initrd.tar",
            path);
    case -ENOEXEC:
    case -EISDIR:
    case -EACCES:
        return shell_error("%s is not a program", path);
    case -EXDEV:
        return shell_error("%s is on a file server; the kernel's shell runs "
                           "only programs of the file system in RAM",
                           path);
    case -EBUSY:
        return shell_error("%s runs as that server; `servers` shows it", path);
    case -ENOMEM:
    case -EAGAIN:
        return shell_error("no room for %s; `sessions` shows what has it, and "
                           "ends one",
                           path);
    default:
        return shell_error("cannot start %s: error %d", path, -error);
    }
}

#define START_MAX 120 /* characters of start= */

static const char *start_option = "";

static bool set_start(char *value)
{
    if (value[0] == '\0' || strlen(value) > START_MAX)
        return false;
    start_option = value;
    return true;
}

BOOT_OPTION(start, "start=", "start=SERVER,SERVER...",
            "servers that init starts besides the default ones", set_start);

/* The pid of a child of the shell, on the console, or an error. */
static pid_t spawn_child(struct process_start *start)
{
    char start_servers[START_MAX + 8];
    const char *const environment[] = {"PATH=/bin:/sbin", "HOME=/home",
                                       start_servers, NULL};
    pid_t pid = file_open(CONSOLE, NULL, O_RDWR, &start->start_console);

    if (pid != 0)
        return pid;
    snprintf(start_servers, sizeof(start_servers), "START=%s", start_option);
    start->start_envp = environment;
    pid = process_spawn(start);
    object_put(&start->start_console->file_object);
    return pid;
}

/* The path of a program: a name without '/' is in /bin or /sbin. 0 or an error;
 * the path then says where the program was expected. */
static int program_path(const char *name, path_t path)
{
    int error;

    if (strchr(name, '/') != NULL)
        return try_program("", name, path);
    error = try_program("/bin/", name, path);
    if (error == -ENOENT && try_program("/sbin/", name, path) == 0)
        return 0;
    if (error == -ENOENT)
        snprintf(path, sizeof(path_t), "/bin/%s", name);
    return error;
}

bool taskcmd_is_program(const char *name)
{
    path_t path;

    return !panic_happened() && program_path(name, path) == 0;
}

static int start_program(struct process_start *start, bool background)
{
    const char *name = exec_name(start->start_path);
    pid_t pid = spawn_child(start);
    int status = 0;
    int error;

    if (pid < 0)
        return cannot_start(start->start_path, pid);
    if (!background) {
        error = tty_foreground(pid, &status);
        return console_back(pid, name, error, status);
    }
    kprintf("%s: pid %d\n", name, (int)pid);
    return 0;
}

static int run_program(char **argv, bool privileged, bool background)
{
    path_t path;
    struct process_start start = {.start_path = path,
                                  .start_argv = (const char *const *)argv,
                                  .start_privileged = privileged};
    int error = program_path(argv[0], path);

    return error != 0 ? cannot_start(path, error)
                      : start_program(&start, background);
}

int taskcmd_run(char **argv)
{
    return run_program(argv, false, false);
}

/* Splits the manifest's command; what follows on the line after the server's
 * name takes the place of its arguments. */
static void server_words(char *command, char **words, char **argv)
{
    size_t n = 0;

    while (command != NULL && n < SHELL_ARGS_MAX) {
        words[n++] = command;
        command = strchr(command, ' ');
        if (command != NULL)
            *command++ = '\0';
    }
    if (argv[1] != NULL)
        for (n = 1; n < SHELL_ARGS_MAX && argv[n] != NULL; n++)
            words[n] = argv[n];
    words[n] = NULL;
}

static int run_server(char **argv, bool background)
{
    char command[MANIFEST_COMMAND_MAX + 1];
    char *words[SHELL_ARGS_MAX + 1];
    struct grant *g = grant_find(argv[0]);
    struct process_start start = {.start_path = command,
                                  .start_argv = (const char *const *)words,
                                  .start_grant = g};

    if (g == NULL)
        return shell_error("there is no server '%.32s'; `servers` lists them",
                           argv[0]);
    if (g->grant_program == NULL)
        return shell_error("the program of '%.32s' is not in the archive",
                           argv[0]);
    memcpy(command, g->grant_server.server_command, sizeof(command));
    server_words(command, words, argv);
    return start_program(&start, background);
}

int taskcmd_run_server(char **argv)
{
    return run_server(argv, false);
}

static bool console_free(void)
{
    taskcmd_reap();
    if (left.left_pid != 0)
        shell_error("%s (pid %d) waits for the console; `continue`, or "
                    "`kill %d`",
                    left.left_name, (int)left.left_pid, (int)left.left_pid);
    return left.left_pid == 0;
}

static int cmd_run(char **argv)
{
    bool background = shell_option('b');

    if (!taskcmd_alive() || (!background && !console_free()))
        return 1;
    if (shell_option('s'))
        return run_server(argv + 1, background);
    return run_program(argv + 1, shell_option('p'), background);
}

SHELL_COMMAND(run, {"[-p] [-b] PROGRAM [ARG ...]", cmd_run, SHELL_ACTION},
              {"-s [-b] SERVER [ARG ...]", cmd_run, SHELL_ACTION});

/* ---- completion --------------------------------------------------------- */

/* Offers the names in a directory, each after the first `n` characters of what
 * is typed; those of directories, if wanted, with a '/'. */
static void offer_names(const struct shell_offer *o, size_t n, const char *path,
                        bool directories)
{
    char buf[256] __attribute__((aligned(4)));
    char word[LINE_MAX + 1];
    const struct dirent *d;
    struct file *dir;
    ssize_t size;

    if (panic_happened() ||
        file_open(path, NULL, O_RDONLY | O_DIRECTORY, &dir) != 0)
        return;
    while ((size = file_getdents(dir, buf, sizeof(buf))) > 0)
        for (ssize_t at = 0; at < size; at += d->d_reclen) {
            d = (const struct dirent *)(buf + at);
            snprintf(word, sizeof(word), "%.*s%s%s", (int)n, o->offer_typed,
                     d->d_name, d->d_type == FILE_DIRECTORY ? "/" : "");
            if (d->d_name[0] != '.' &&
                (directories || d->d_type != FILE_DIRECTORY))
                shell_offer(o, word);
        }
    object_put(&dir->file_object);
}

static void offer_files(const struct shell_offer *o)
{
    size_t n = strlen(o->offer_typed);
    path_t path;

    while (n > 0 && o->offer_typed[n - 1] != '/')
        n--;
    snprintf(path, sizeof(path), "/%.*s", (int)n, o->offer_typed);
    offer_names(o, n, path, true);
}

static void offer_executables(const struct shell_offer *o)
{
    if (strchr(o->offer_typed, '/')) {
        offer_files(o);
        return;
    }
    offer_names(o, 0, "/bin", false);
    offer_names(o, 0, "/sbin", false);
}

SHELL_WORDS(PROGRAM, offer_executables);
SHELL_WORDS(ARG, offer_files);

/* ---- sh and continue ---------------------------------------------------- */

static int cmd_sh(char **argv)
{
    static const char *const words[] = {"init", NULL};
    struct process_start start = {
        .start_path = "/sbin/init", .start_argv = words, .start_init = true};

    (void)argv;
    if (!taskcmd_alive() || !console_free())
        return 1;
    return start_program(&start, false);
}

SHELL_COMMAND(sh, {"", cmd_sh, SHELL_ACTION});

static int cmd_continue(char **argv)
{
    char name[TASK_NAME_MAX + 1];
    pid_t pid = left.left_pid;
    int status = 0;
    int error;

    (void)argv;
    if (!taskcmd_alive())
        return 1;
    if (pid == 0)
        return shell_error("no program waits for the console; Ctrl-\\ leaves "
                           "one");
    strlcpy(name, left.left_name, sizeof(name));
    error = tty_continue(pid, &status);
    return console_back(pid, name, error, status);
}

SHELL_COMMAND(continue, {"", cmd_continue, SHELL_ACTION});
