/* The host's side of the tests: files, output, e2fsck. */
#include "tools/test/budget.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))

uint8_t *host_load(const char *path, size_t *size);
void host_save(const char *path, const void *data, size_t size);
void host_print(const char *fmt, ...) PRINTF_LIKE(1, 2);
void host_fail(const char *fmt, ...) PRINTF_LIKE(1, 2)
    __attribute__((noreturn));
bool host_line(char *line, size_t size);
int host_e2fsck(const char *options, const char *path, char *out, size_t size);

void host_print(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
}

void host_fail(const char *fmt, ...)
{
    va_list ap;

    fflush(stdout);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(1);
}

uint8_t *host_load(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data;

    if (f == NULL || fseek(f, 0, SEEK_END) != 0)
        host_fail("cannot read %s", path);
    *size = (size_t)ftell(f);
    rewind(f);
    data = malloc(*size + 1);
    if (data == NULL || fread(data, 1, *size, f) != *size)
        host_fail("cannot read %s", path);
    fclose(f);
    return data;
}

void host_save(const char *path, const void *data, size_t size)
{
    FILE *f = fopen(path, "wb");

    if (f == NULL || fwrite(data, 1, size, f) != size || fclose(f) != 0)
        host_fail("cannot write %s", path);
}

void budget_used_up(const char *why)
{
    host_fail("%s", why);
}

bool host_line(char *line, size_t size)
{
    if (fgets(line, (int)size, stdin) == NULL)
        return false;
    line[strcspn(line, "\n")] = 0;
    return true;
}

int host_e2fsck(const char *options, const char *path, char *out, size_t size)
{
    char command[512];
    char rest[512];
    size_t n;
    FILE *f;
    int status;

    snprintf(command, sizeof(command),
             "PATH=$PATH:/sbin:/usr/sbin e2fsck %s %s 2>&1", options, path);
    f = popen(command, "r");
    if (f == NULL)
        host_fail("cannot run e2fsck");
    n = fread(out, 1, size - 1, f);
    out[n] = 0;
    while (fread(rest, 1, sizeof(rest), f) > 0)
        continue; /* reads all output, or e2fsck would die of a closed pipe */
    status = pclose(f);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
