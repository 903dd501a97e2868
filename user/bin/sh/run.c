/*
 * Runs parsed lines.
 *
 *     a | b > f        a: fork ── stdout into the pipe ── exec
 *                      b: fork ── stdin from the pipe, > f ── exec
 *
 * A command is expanded before it is forked, so that an error in it costs no
 * process. On a console each pipeline is a process group, which gets the
 * console while the shell waits for it: ^C kills it and not the shell. Other
 * shells leave all processes in their own group.
 */
#include "user/bin/sh/sh.h"
#include "user/lib/ctype.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

#define NOT_EXECUTABLE 126
#define HANDLES_NAMED  10 /* 0 … 9 can be redirected */

/* A pipeline being started. */
struct job {
    pid_t job_group; /* 0: none started yet */
    bool job_background;
    int job_in;      /* read end of the pipe from the last command, or -1 */
    int job_pipe[2]; /* the pipe to the next one, or -1 */
};

/* A command, expanded. */
struct simple {
    const struct command *simple_command;
    int simple_argc;
    char **simple_argv;
};

static void run_list(const struct list *l);

int complain(int status, const char *fmt, ...)
{
    char text[256] = "sh: ";
    size_t n = 4;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text + n, sizeof(text) - n - 1, fmt, ap);
    va_end(ap);
    make_printable(text);
    n = strlen(text);
    text[n] = '\n';
    write_all(STDERR_FILENO, text, n + 1);
    return status;
}

/* ---- groups and waiting ------------------------------------------------- */

void run_foreground(pid_t group)
{
    if (shell.shell_interactive)
        tcsetpgrp(STDIN_FILENO, group);
}

int run_status(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int run_wait(pid_t pid)
{
    int status;
    pid_t ended;
    int result = pid == shell.shell_background ? shell.shell_ended : NOT_FOUND;

    while ((ended = waitpid(pid, &status, 0)) > 0) {
        result = run_status(status);
        if (shell.shell_interactive &&
            (WTERMSIG(status) == SIGKILL || WTERMSIG(status) == SIGTERM))
            complain(0, "%d was killed by signal %d", (int)ended,
                     WTERMSIG(status));
        if (pid != -1)
            break;
    }
    return result;
}

/* ---- redirection -------------------------------------------------------- */

static int open_target(const struct redirect *r, const char *target)
{
    static const uint32_t flags[] = {
        [REDIRECT_READ] = O_RDONLY,
        [REDIRECT_WRITE] = O_WRONLY | O_CREAT | O_TRUNC,
        [REDIRECT_APPEND] = O_WRONLY | O_CREAT | O_APPEND,
    };
    int handle = open(target, flags[r->redirect_kind]);

    if (handle < 0)
        complain(1, "%s: %s", target, strerror(errno));
    return handle;
}

static bool redirect(const struct redirect *r)
{
    const char *target = expand_word(r->redirect_target);
    int handle;

    if (target == NULL)
        return false;
    if (r->redirect_kind == REDIRECT_DUP) {
        if (isdigit(target[0]) && target[1] == 0 &&
            dup2(target[0] - '0', r->redirect_handle) >= 0)
            return true;
        complain(1, "%s: not an open handle", target);
        return false;
    }
    handle = open_target(r, target);
    if (handle < 0 || handle == r->redirect_handle)
        return handle >= 0;
    if (dup2(handle, r->redirect_handle) < 0) {
        complain(1, "%s: %s", target, strerror(errno));
        close(handle);
        return false;
    }
    close(handle);
    return true;
}

static bool redirect_all(const struct redirect *r)
{
    for (; r != NULL; r = r->redirect_next)
        if (!redirect(r))
            return false;
    return true;
}

/* ---- commands ----------------------------------------------------------- */

static bool assign_all(const struct word *w, enum var_use use)
{
    for (; w != NULL; w = w->word_next) {
        const char *text = expand_word(w->word_text);

        if (text == NULL || !var_set(text, use))
            return false;
    }
    return true;
}

static int run_builtin(const struct simple *s)
{
    const struct builtin *b = builtin_find(s->simple_argv[0]);
    int status = b->builtin_run(s->simple_argc, s->simple_argv);
    int error;

    fflush(stdout);
    error = ferror(stdout);
    clearerr(stdout);
    if (error != 0)
        status = complain(1, "%s: standard output: %s", b->builtin_name,
                          strerror(error));
    return status;
}

/* A copy of the handle above those that can be redirected, or -1. */
static int save(int handle)
{
    int copy = dup(handle);
    int above;

    if (copy < 0 || copy >= HANDLES_NAMED)
        return copy;
    above = save(handle); /* `copy` keeps the low number in use */
    close(copy);
    return above;
}

/* Saves the handles that a command redirects, with -1 for one that is closed,
 * and adds them to *changed. False after a message. */
static bool save_handles(const struct redirect *r, int *saved,
                         uint32_t *changed)
{
    for (; r != NULL; r = r->redirect_next) {
        int h = r->redirect_handle;

        if (*changed & 1u << h)
            continue;
        saved[h] = save(h);
        if (saved[h] < 0 && errno != EBADF) {
            complain(1, "handle %d: %s", h, strerror(errno));
            return false;
        }
        *changed |= 1u << h;
    }
    return true;
}

/* Runs a command in this process, then undoes its redirections. Assignments are
 * undone too if there is a builtin after them. */
static int run_in_shell(const struct simple *s)
{
    const struct command *c = s->simple_command;
    bool builtin = s->simple_argc > 0;
    int saved[HANDLES_NAMED];
    uint32_t changed = 0;
    int status = 1;

    if (save_handles(c->command_redirects, saved, &changed) &&
        redirect_all(c->command_redirects) &&
        assign_all(c->command_assigns, builtin ? VAR_COMMAND : VAR_SHELL))
        status = builtin ? run_builtin(s) : 0;
    vars_end_command();
    for (int h = 0; h < HANDLES_NAMED; h++) {
        if ((changed & 1u << h) == 0)
            continue;
        if (saved[h] < 0) {
            close(h);
        } else {
            dup2(saved[h], h);
            close(saved[h]);
        }
    }
    return status;
}

static int not_found(const char *name)
{
    char other[NAME_MAX + 1];

    if (strchr(name, '/') == NULL && suggest(name, other))
        return complain(NOT_FOUND, "%s: not found; did you mean %s?", name,
                        other);
    return complain(NOT_FOUND, "%s: not found", name);
}

static void exec_program(char **argv) __attribute__((noreturn));
static void exec_program(char **argv)
{
    environ = vars_environment();
    if (environ == NULL)
        _exit(complain(1, "%s: the environment is too long", argv[0]));
    execvp(argv[0], argv);
    if (errno == ENOENT || errno == ENOTDIR)
        _exit(not_found(argv[0]));
    _exit(complain(NOT_EXECUTABLE, "%s: %s", argv[0], strerror(errno)));
}

/* What runs in the background reads nothing that is typed for the shell. */
static void empty_input(void)
{
    int null = open("/dev/null", O_RDONLY);

    if (null < 0)
        _exit(complain(1, "/dev/null: %s", strerror(errno)));
    dup2(null, STDIN_FILENO);
    close(null);
}

/* The child's side of a fork: connects pipes and redirections. */
static void run_child(const struct job *job, const struct simple *s)
    __attribute__((noreturn));
static void run_child(const struct job *job, const struct simple *s)
{
    const struct command *c = s->simple_command;

    if (shell.shell_interactive)
        setpgid(0, job->job_group);
    shell.shell_interactive = false;
    if (job->job_in >= 0) {
        dup2(job->job_in, STDIN_FILENO);
        close(job->job_in);
    } else if (job->job_background) {
        empty_input();
    }
    if (job->job_pipe[1] >= 0) {
        dup2(job->job_pipe[1], STDOUT_FILENO);
        close(job->job_pipe[0]);
        close(job->job_pipe[1]);
    }
    if (!redirect_all(c->command_redirects) ||
        !assign_all(c->command_assigns, VAR_EXPORT))
        _exit(1);
    if (s->simple_argc == 0)
        _exit(0);
    if (builtin_find(s->simple_argv[0]) != NULL)
        _exit(run_builtin(s));
    exec_program(s->simple_argv);
}

/* The parent's side. */
static void note_child(struct job *job, pid_t pid)
{
    if (!shell.shell_interactive)
        return;
    setpgid(pid, job->job_group);
    if (job->job_group != 0)
        return;
    job->job_group = pid;
    if (!job->job_background)
        run_foreground(pid);
}

/* Forks one command of a job. Its pid, or -1 after a message. */
static pid_t start(struct job *job, const struct command *c)
{
    size_t mark = arena_mark();
    struct simple s = {.simple_command = c};
    pid_t pid = -1;

    s.simple_argv = expand_words(c->command_words, &s.simple_argc);
    if (s.simple_argv != NULL) {
        pid = fork();
        if (pid == 0)
            run_child(job, &s);
        if (pid < 0)
            complain(1, "fork: %s", strerror(errno));
        else
            note_child(job, pid);
    }
    arena_release(mark);
    return pid;
}

/* ---- pipelines ---------------------------------------------------------- */

static void forget_pipe(struct job *job)
{
    if (job->job_in >= 0)
        close(job->job_in);
    if (job->job_pipe[1] >= 0)
        close(job->job_pipe[1]);
    job->job_in = job->job_pipe[0];
    job->job_pipe[0] = job->job_pipe[1] = -1;
}

/* Starts all commands; their pids go to `pids`. Returns how many were
 * started. */
static int start_all(struct job *job, const struct command *c, pid_t *pids)
{
    int n = 0;

    for (; c != NULL; c = c->command_next) {
        pid_t pid;

        if (c->command_next != NULL && pipe(job->job_pipe) < 0) {
            complain(1, "pipe: %s", strerror(errno));
            break;
        }
        pid = start(job, c);
        forget_pipe(job);
        if (pid < 0)
            break;
        pids[n++] = pid;
    }
    forget_pipe(job);
    return n;
}

static void note_background(pid_t pid)
{
    shell.shell_background = pid;
    shell.shell_ended = NOT_FOUND;
    if (shell.shell_interactive)
        complain(0, "%d runs in the background", (int)pid);
}

/* Starts a pipeline and, unless it is in the background, waits for it. */
static int run_job(const struct pipeline *p, bool background)
{
    struct job job = {
        .job_background = background, .job_in = -1, .job_pipe = {-1, -1}};
    size_t mark = arena_mark();
    int commands = 0;
    int started;
    int status = 1;
    pid_t *pids;

    for (const struct command *c = p->pipeline_commands; c != NULL;
         c = c->command_next)
        commands++;
    pids = arena_alloc((size_t)commands * sizeof(*pids));
    if (pids == NULL)
        return complain(1, "the line is too long");
    started = start_all(&job, p->pipeline_commands, pids);
    if (background && started > 0) {
        note_background(pids[started - 1]);
        status = 0;
    } else {
        for (int i = 0; i < started; i++)
            status = run_wait(pids[i]);
        run_foreground(0);
    }
    arena_release(mark);
    return started == commands ? status : 1;
}

/* Runs a command without a process: a built-in, or assignments. */
static bool runs_in_shell(const struct simple *s)
{
    return s->simple_argc == 0 || builtin_find(s->simple_argv[0]) != NULL;
}

static int run_pipeline(const struct pipeline *p)
{
    const struct command *c = p->pipeline_commands;
    struct simple s = {.simple_command = c};
    size_t mark = arena_mark();
    int status;

    if (c->command_next != NULL)
        return run_job(p, false);
    s.simple_argv = expand_words(c->command_words, &s.simple_argc);
    if (s.simple_argv == NULL)
        status = 1;
    else
        status = runs_in_shell(&s) ? run_in_shell(&s) : run_job(p, false);
    arena_release(mark);
    return status;
}

/* ---- lists -------------------------------------------------------------- */

static void run_list(const struct list *l)
{
    for (const struct pipeline *p = l->list_pipelines; p != NULL;
         p = p->pipeline_next) {
        bool failed = shell.shell_status != 0;

        if ((p->pipeline_join == JOIN_AND && failed) ||
            (p->pipeline_join == JOIN_OR && !failed))
            continue;
        shell.shell_status = run_pipeline(p);
        if (shell.shell_exit)
            break;
    }
}

/* Several pipelines with && and || in the background need a shell process. */
static void run_background_list(const struct list *l)
{
    pid_t pid = fork();

    if (pid < 0) {
        shell.shell_status = complain(1, "fork: %s", strerror(errno));
    } else if (pid == 0) {
        if (shell.shell_interactive)
            setpgid(0, 0);
        shell.shell_interactive = false;
        empty_input();
        run_list(l);
        _exit(shell.shell_status);
    } else {
        note_background(pid);
        shell.shell_status = 0;
    }
}

bool run_line(const char *line, const char *where)
{
    size_t mark = arena_mark();
    const char *error;
    const struct list *l = parse_line(line, &error);

    if (error != NULL) {
        arena_release(mark);
        shell.shell_status = where != NULL ? complain(2, "%s: %s", where, error)
                                           : complain(2, "%s", error);
        return false;
    }
    for (; l != NULL && !shell.shell_exit; l = l->list_next) {
        if (!l->list_background)
            run_list(l);
        else if (l->list_pipelines->pipeline_next != NULL)
            run_background_list(l);
        else
            shell.shell_status = run_job(l->list_pipelines, true);
    }
    arena_release(mark);
    return true;
}
