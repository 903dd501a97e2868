/*
 * Streams other than the standard ones: each is allocated with its buffer.
 */
#include "user/lib/stdio_impl.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

/* The stream flags for a mode, 0 if it is invalid; *open_flags gets those of
 * open(). */
static uint32_t read_mode(const char *mode, uint32_t *open_flags)
{
    bool both = mode[0] != 0 && mode[1] == '+';

    switch (mode[0]) {
    case 'r':
        *open_flags = both ? O_RDWR : O_RDONLY;
        return STREAM_READ | (both ? STREAM_WRITE : 0);
    case 'w':
        *open_flags = (both ? O_RDWR : O_WRONLY) | O_CREAT | O_TRUNC;
        return STREAM_WRITE | (both ? STREAM_READ : 0);
    case 'a':
        *open_flags = (both ? O_RDWR : O_WRONLY) | O_CREAT | O_APPEND;
        return STREAM_WRITE | (both ? STREAM_READ : 0);
    default:
        errno = EINVAL;
        return 0;
    }
}

/* Allocates memory first, so that nothing must be undone. */
static FILE *create(uint32_t flags)
{
    FILE *f = malloc(sizeof(*f) + BUFSIZ);

    if (f != NULL)
        *f = (FILE){.file_flags = flags, .file_buf = (char *)(f + 1)};
    return f;
}

static FILE *publish(FILE *f, int handle)
{
    f->file_handle = handle;
    f->file_next = stdio_opened;
    stdio_opened = f;
    return f;
}

FILE *fopen(const char *path, const char *mode)
{
    uint32_t open_flags;
    uint32_t flags = read_mode(mode, &open_flags);
    FILE *f = flags == 0 ? NULL : create(flags | STREAM_UNSURE);
    int handle;

    if (f == NULL)
        return NULL;
    handle = open(path, open_flags);
    if (handle >= 0)
        return publish(f, handle);
    free(f);
    return NULL;
}

FILE *fdopen(int handle, const char *mode)
{
    uint32_t open_flags;
    uint32_t flags = read_mode(mode, &open_flags);
    FILE *f = flags == 0 ? NULL : create(flags | STREAM_UNSURE);

    return f == NULL ? NULL : publish(f, handle);
}

int fclose(FILE *f)
{
    int result = fflush(f) | close(f->file_handle);

    for (FILE **link = &stdio_opened; *link != NULL;
         link = &(*link)->file_next) {
        if (*link == f) {
            *link = f->file_next;
            free(f);
            break;
        }
    }
    return result == 0 ? 0 : EOF;
}

/* ---- lines of any length ------------------------------------------------ */

/* Ensures that *line holds at least `need` bytes; false: no memory. */
static bool make_room(char **line, size_t *size, size_t need)
{
    size_t wanted = MAX(need, *size * 2);
    char *larger;

    if (need <= *size)
        return true;
    larger = realloc(*line, MAX(wanted, (size_t)128));
    if (larger == NULL)
        return false;
    *line = larger;
    *size = malloc_usable_size(larger);
    return true;
}

ssize_t getline(char **line, size_t *size, FILE *f)
{
    size_t n = 0;
    int c = 0;

    if (*line == NULL)
        *size = 0;
    while (c != '\n' && (c = fgetc(f)) != EOF) {
        if (!make_room(line, size, n + 2)) {
            stdio_failed(f);
            return -1;
        }
        (*line)[n++] = (char)c;
    }
    if (n == 0)
        return -1;
    (*line)[n] = 0;
    return (ssize_t)n;
}
