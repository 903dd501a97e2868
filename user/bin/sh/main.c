/*
 * sh: a shell.
 *
 *     sh                lines from handle 0; edited, if 0 and 1 are the console
 *     sh FILE [ARG …]   lines from a file
 *     sh -c LINE        one line
 *
 * Handle 0 is read byte by byte unless it is a console, because the bytes after
 * a line are input of the commands in it.
 */
#include "user/bin/sh/sh.h"
#include "user/lib/err.h"
#include "user/lib/stdio.h"
#include "user/lib/string.h"

#define PROMPT      "$ "
#define READ_FAILED 128 /* the status, as in POSIX */

struct shell shell = {.shell_name = "sh"};

/* The source of lines, if not a console. */
struct input {
    const char *input_name; /* NULL: handle 0 */
    int input_handle;
    int input_error; /* errno of the read that failed, or 0 */
    unsigned input_line;
    size_t input_step; /* bytes per read */
    size_t input_pos;
    size_t input_end;
    char input_buf[512];
};

/* ---- reading ------------------------------------------------------------ */

/* The next byte, or -1 at the end, or after an error. */
static int next_byte(struct input *in)
{
    if (in->input_pos == in->input_end) {
        ssize_t n = read(in->input_handle, in->input_buf, in->input_step);

        if (n < 0)
            in->input_error = errno;
        if (n <= 0)
            return -1;
        in->input_pos = 0;
        in->input_end = (size_t)n;
    }
    return (unsigned char)in->input_buf[in->input_pos++];
}

/* Reads a line without its newline. Returns its length, LINE_MAX_BYTES if it is
 * too long, -1 at the end, or if it could not be read to its end: half of it
 * may be another command. */
static int read_line(struct input *in, char *line)
{
    int n = 0;
    int c = next_byte(in);

    if (c < 0)
        return -1;
    in->input_line++;
    while (c >= 0 && c != '\n') {
        if (n < LINE_MAX_BYTES)
            line[n++] = (char)c;
        c = next_byte(in);
    }
    if (n < LINE_MAX_BYTES)
        line[n] = 0;
    return in->input_error == 0 ? n : -1;
}

/* ---- running ------------------------------------------------------------ */

/* A syntax error ends a script. */
static void run_input(struct input *in)
{
    static char line[LINE_MAX_BYTES];
    const char *name = in->input_name != NULL ? in->input_name : "input";
    char where[64];
    int n;

    while (!shell.shell_exit && (n = read_line(in, line)) >= 0) {
        snprintf(where, sizeof(where), "%s:%u", name, in->input_line);
        if (n == LINE_MAX_BYTES) {
            shell.shell_status = complain(2, "%s: the line is too long", where);
            break;
        }
        if (!run_line(line, where))
            break;
    }
    if (in->input_error != 0)
        shell.shell_status =
            complain(READ_FAILED, "%s: %s", name, strerror(in->input_error));
}

static void run_file(const char *name)
{
    static struct input in;

    in.input_name = name;
    in.input_step = sizeof(in.input_buf);
    in.input_handle = open(name, O_RDONLY | O_CLOEXEC);
    if (in.input_handle < 0)
        shell.shell_status = complain(127, "%s: %s", name, strerror(errno));
    else
        run_input(&in);
}

/* Collects background commands that have ended. */
static void reap(void)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == shell.shell_background)
            shell.shell_ended = run_status(status);
        if (WIFEXITED(status))
            complain(0, "%d has ended, status %d", (int)pid,
                     WEXITSTATUS(status));
        else
            complain(0, "%d was killed by signal %d", (int)pid,
                     WTERMSIG(status));
    }
}

static void run_console(void)
{
    static char line[LINE_MAX_BYTES];

    shell.shell_interactive = true;
    run_foreground(0);
    while (!shell.shell_exit) {
        reap();
        if (edit_line(PROMPT, line) < 0) {
            write_all(STDOUT_FILENO, "\n", 1);
            break;
        }
        run_line(line, NULL);
    }
}

int main(int argc, char **argv, char **envp)
{
    static struct input in = {.input_step = 1};

    vars_init(envp);
    if (argc > 1 && strcmp(argv[1], "-c") == 0) {
        if (argc < 3)
            usage("[-c LINE | FILE] [ARGUMENT ...]");
        shell.shell_args = argv + 3;
        shell.shell_argc = argc - 3;
        run_line(argv[2], NULL);
    } else if (argc > 1) {
        shell.shell_name = argv[1];
        shell.shell_args = argv + 2;
        shell.shell_argc = argc - 2;
        run_file(argv[1]);
    } else if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)) {
        run_console();
    } else {
        run_input(&in);
    }
    return shell.shell_status;
}
