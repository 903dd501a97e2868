/*
 * Error messages of a program. Each is one write, so that messages of several
 * programs at one console do not mix.
 */
#include "user/lib/err.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"
#include "user/lib/unistd.h"

static void message(int error, const char *fmt, va_list ap)
{
    char text[1024];
    size_t max = sizeof(text) - 1; /* room for the newline */
    size_t n;

    snprintf(text, max, "%s: ", program_name);
    n = strlen(text);
    vsnprintf(text + n, max - n, fmt, ap);
    n = strlen(text);
    if (error != 0)
        snprintf(text + n, max - n, ": %s", strerror(error));
    make_printable(text);
    n = strlen(text);
    text[n] = '\n';
    write_all(STDERR_FILENO, text, n + 1);
}

void warn(const char *fmt, ...)
{
    int error = errno;
    va_list ap;

    va_start(ap, fmt);
    message(error, fmt, ap);
    va_end(ap);
}

void warnx(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    message(0, fmt, ap);
    va_end(ap);
}

void tellx(const char *fmt, ...)
{
    va_list ap;
    pid_t pid = fork();

    if (pid > 0)
        waitpid(pid, NULL, 0);
    if (pid != 0)
        return;
    /* The message may wait for the console after the caller has died: it must
     * not keep the caller's ports and pipes open. */
    for (int h = STDERR_FILENO + 1; h < HANDLES_MAX; h++)
        close(h);
    if (fork() == 0) {
        va_start(ap, fmt);
        message(0, fmt, ap);
        va_end(ap);
    }
    _exit(0);
}

void err(int status, const char *fmt, ...)
{
    int error = errno;
    va_list ap;

    va_start(ap, fmt);
    message(error, fmt, ap);
    va_end(ap);
    exit(status);
}

void errx(int status, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    message(0, fmt, ap);
    va_end(ap);
    exit(status);
}

void usage(const char *arguments)
{
    char text[256];
    size_t n;

    snprintf(text, sizeof(text), "usage: %s", program_name);
    make_printable(text); /* the name alone: arguments may take two lines */
    n = strlen(text);
    snprintf(text + n, sizeof(text) - n, "%s%s\n", *arguments != 0 ? " " : "",
             arguments);
    write_all(STDERR_FILENO, text, strlen(text));
    exit(2);
}
