/*
 * Programs: starting them, and passing the console back and forth.
 *
 *     run ──> process_spawn ──> tty_foreground ─┬─ ended ──> how, if not well
 *                                               └─ ^\ ──> `left`
 *     continue ──> tty_continue(left) ──────────┬─ …
 *
 * A program that Ctrl-\ left does not stop: it waits when it wants the console.
 * There is one at a time, since there is one console. Children that end while
 * the shell has other things to do are taken in at its next prompt.
 */
#include "drivers/console.h"
#include "drivers/debugcon.h"
#include "kernel/fs/file.h"
#include "kernel/fs/tty.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/panic.h"
#include "kernel/shell/cmd_task.h"
#include "kernel/syscall/process.h"

#define CONSOLE "/dev/console"

static struct {
    pid_t left_pid; /* 0: none */
    char left_name[TASK_NAME_MAX + 1];
} left;

/* ---- how programs end --------------------------------------------------- */

/* 0 if it ended well. Otherwise says how. */
static int report(pid_t pid, const char *name, int status)
{
    int signal = WTERMSIG(status);
    int code = WEXITSTATUS(status);
    const char *why = taskcmd_signal(signal);

    debugcon_event("{\"event\":\"run\",\"pid\":%d,\"name\":\"%s\","
                   "\"exit\":%d,\"signal\":%d}",
                   (int)pid, name, code, signal);
    if (signal != 0)
        kprintf("%s: killed by signal %d%s%s%s\n", name, signal,
                why != NULL ? " (" : "", why != NULL ? why : "",
                why != NULL ? ")" : "");
    else if (code != 0)
        kprintf("%s: exit code %d\n", name, code);
    return status != 0;
}

/* A child that has ended and has not been asked yet. */
static bool find_ended(struct task_stat *st)
{
    pid_t self = task_self()->task_pid;
    pid_t last = -1;

    while (task_stats(last, st, 1) == 1) {
        if (st->stat_parent == self && st->stat_state == TASK_ZOMBIE)
            return true;
        last = st->stat_pid;
    }
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
        if (report(st.stat_pid, st.stat_name, status) == 0)
            kprintf("%s: done\n", st.stat_name);
    }
}

/* What became of the program that had the console. */
static int console_back(pid_t pid, const char *name, int error, int status)
{
    left.left_pid = 0;
    if (error == 0)
        return report(pid, name, status);
    if (error != -EINTR)
        return shell_error("%s is not the shell's to wait for", name);
    left.left_pid = pid;
    strlcpy(left.left_name, name, sizeof(left.left_name));
    kprintf("\n%s (pid %d) has lost the console; `continue` goes back to it\n",
            name, (int)pid);
    return 0;
}

/* ---- run ---------------------------------------------------------------- */

static int cannot_start(const char *path, int error)
{
    switch (error) {
    case -ENOENT:
    case -ENOTDIR:
        return shell_error("there is no %s; `run ls /bin` lists programs",
                           path);
    case -ENOEXEC:
    case -EISDIR:
        return shell_error("%s is no program", path);
    case -ENOMEM:
        return shell_error("no memory for %s; `kmastat` shows who has it",
                           path);
    default:
        return shell_error("cannot start %s: error %d", path, -error);
    }
}

/* The pid of a child of the shell, on the console, or an error. */
static pid_t spawn(const char *path, char **argv)
{
    static const char *const environment[] = {"PATH=/bin", "HOME=/home", NULL};
    struct file *console;
    pid_t pid = file_open(CONSOLE, NULL, O_RDWR, &console);

    if (pid != 0)
        return pid;
    pid = process_spawn(path, (const char *const *)argv, environment, console);
    object_put(&console->file_object);
    return pid;
}

/* Before the program has run: it has a lower priority than the shell. */
static void privilege(pid_t pid)
{
    spin_lock(&sched_lock);
    task_find(pid)->task_privileged = true;
    spin_unlock(&sched_lock);
}

typedef char path_t[SHELL_LINE_MAX + 8];

static void find_program(const char *name, path_t path)
{
    snprintf(path, sizeof(path_t), "%s%s",
             strchr(name, '/') == NULL ? "/bin/" : "", name);
}

bool taskcmd_exists(const char *name)
{
    struct file *f;
    path_t path;
    int error;

    find_program(name, path);
    error = file_open(path, NULL, O_RDONLY, &f);
    if (error == 0)
        object_put(&f->file_object);
    else
        cannot_start(path, error);
    return error == 0;
}

static int run(char **argv, bool privileged, bool background)
{
    path_t path;
    int status = 0;
    int error;
    pid_t pid;

    find_program(argv[0], path);
    pid = spawn(path, argv);
    if (pid < 0)
        return cannot_start(path, pid);
    if (privileged)
        privilege(pid);
    if (!background) {
        error = tty_foreground(pid, &status);
        return console_back(pid, exec_name(path), error, status);
    }
    kprintf("%s: pid %d\n", exec_name(path), (int)pid);
    return 0;
}

int taskcmd_run(char **argv)
{
    return run(argv, false, false);
}

/* Options end where the program begins. */
static bool run_options(char ***argv, bool *privileged, bool *background)
{
    for (; **argv != NULL && (**argv)[0] == '-'; ++*argv) {
        if (strcmp(**argv, "-p") == 0)
            *privileged = true;
        else if (strcmp(**argv, "-b") == 0)
            *background = true;
        else {
            shell_error("no option %.32s; there are -p and -b", **argv);
            return false;
        }
    }
    return true;
}

static bool console_free(void)
{
    taskcmd_reap();
    if (left.left_pid != 0)
        shell_error("%s (pid %d) is to get the console back; `continue`, or "
                    "`kill %d`",
                    left.left_name, (int)left.left_pid, (int)left.left_pid);
    return left.left_pid == 0;
}

static int cmd_run(int argc, char **argv)
{
    bool background = false;
    bool privileged = false;

    (void)argc;
    argv++;
    if (!taskcmd_alive() || !run_options(&argv, &privileged, &background))
        return 1;
    if (*argv == NULL)
        return shell_error("wants a program; `run ls /bin` lists them");
    if (!background && !console_free())
        return 1;
    return run(argv, privileged, background);
}

/* The names in a piece of a directory. */
static void add_names(const char *buf, ssize_t n,
                      void (*add)(const char *word, void *arg), void *arg)
{
    for (ssize_t at = 0; at < n;) {
        const struct dirent *d = (const struct dirent *)(buf + at);

        if (d->d_type == FILE_REGULAR)
            add(d->d_name, arg);
        at += d->d_reclen;
    }
}

static void complete_program(void (*add)(const char *word, void *arg),
                             void *arg)
{
    char buf[512] __attribute__((aligned(4)));
    struct file *dir;
    ssize_t n;

    if (panic_happened() ||
        file_open("/bin", NULL, O_RDONLY | O_DIRECTORY, &dir) != 0)
        return;
    while ((n = file_getdents(dir, buf, sizeof(buf))) > 0)
        add_names(buf, n, add, arg);
    object_put(&dir->file_object);
}

SHELL_COMMAND(
    run, "run [-p] [-b] PROGRAM [ARG ...]", "run a program on the console",
    "Starts /bin/PROGRAM, or the program at a path with a slash in it,\n"
    "gives it the console and waits until it ends; then says how, unless\n"
    "it ended with exit code 0. ^C ends it, with all of its group; Ctrl-\\\n"
    "comes back here and leaves it waiting for the console: `continue`.\n"
    "  -p  privileged: may bind interrupts and replace the name server\n"
    "  -b  in the background: what it prints comes when the next program\n"
    "      gets the console; how it ended is said at the next prompt\n"
    "Example: run sh -c \"find / | grep bin | wc\"",
    cmd_run, complete_program);

/* ---- sh and continue ---------------------------------------------------- */

static int cmd_sh(int argc, char **argv)
{
    char init[] = "init";
    char *words[] = {init, NULL};

    if (argc != 1)
        return shell_error("takes no '%.32s'; `run sh -c` runs one line",
                           argv[1]);
    if (!taskcmd_alive() || !console_free())
        return 1;
    return run(words, false, false);
}

SHELL_COMMAND(sh, "sh", "a session: the shell in ring 3",
              "Runs /bin/init, which starts the name server and a shell on\n"
              "the console. `exit` there ends the session, Ctrl-\\ only\n"
              "comes back here.\n"
              "Example: sh",
              cmd_sh, NULL);

static int cmd_continue(int argc, char **argv)
{
    char name[TASK_NAME_MAX + 1];
    pid_t pid = left.left_pid;
    int status = 0;
    int error;

    if (argc != 1)
        return shell_error("takes no '%.32s'; there is one program at most",
                           argv[1]);
    if (!taskcmd_alive())
        return 1;
    if (pid == 0)
        return shell_error("no program waits for the console; Ctrl-\\ leaves "
                           "one");
    strlcpy(name, left.left_name, sizeof(name));
    error = tty_continue(pid, &status);
    return console_back(pid, name, error, status);
}

SHELL_COMMAND(continue, "continue", "back to the program that Ctrl-\\ left",
              "Gives the console back to it. On a stopped machine: goes on,\n"
              "where that can be.\n"
              "Example: continue",
              cmd_continue, NULL);
