/*
 * Functions built from several system calls, or from one with fixed arguments.
 */
#include "user/lib/stdlib.h"
#include "user/lib/string.h"
#include "user/lib/unistd.h"

pid_t wait(int *status)
{
    return waitpid(-1, status, 0);
}

unsigned sleep(unsigned seconds)
{
    for (; seconds > 0; seconds--)
        if (sleep_ms(1000) < 0)
            break;
    return seconds;
}

/* -1 is no mode (EINVAL), but ttymode checks the handle first. */
int isatty(int handle)
{
    return ttymode(handle, -1) < 0 && errno == EINVAL;
}

int write_all(int handle, const void *buf, size_t n)
{
    const char *at = buf;

    while (n > 0) {
        ssize_t done = write(handle, at, n);

        if (done < 0)
            return -1;
        at += done;
        n -= (size_t)done;
    }
    return 0;
}

int execv(const char *path, char *const argv[])
{
    return execve(path, argv, environ);
}

/* Joins the next directory of PATH, up to ':', with `file`. Returns the rest of
 * PATH, NULL after its end. An empty directory is ".". */
static const char *next_directory(const char *path, const char *file, char *out,
                                  size_t size)
{
    size_t n = strcspn(path, ":");

    if (n + strlen(file) + 2 > size) {
        out[0] = 0;
    } else {
        memcpy(out, path, n);
        if (n > 0)
            out[n++] = '/';
        strlcpy(out + n, file, size - n);
    }
    path += strcspn(path, ":");
    return *path != 0 ? path + 1 : NULL;
}

int execvp(const char *file, char *const argv[])
{
    const char *path = getenv("PATH");
    int error = ENOENT;
    char full[PATH_MAX];

    if (strchr(file, '/') != NULL || *file == 0)
        return execv(file, argv);
    if (path == NULL)
        path = "/bin:/sbin";
    while (path != NULL) {
        path = next_directory(path, file, full, sizeof(full));
        execv(full, argv);
        if (errno != ENOENT && errno != ENOTDIR) {
            error = errno;
            break;
        }
    }
    errno = error;
    return -1;
}
