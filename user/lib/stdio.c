/*
 * Streams: buffered read and write.
 *
 * All output passes through fwrite, all input through fill.
 */
#include "user/lib/stdio_impl.h"
#include "user/lib/err.h"
#include "user/lib/string.h"

static char input_buf[BUFSIZ];
static char output_buf[BUFSIZ];

static FILE input = {
    .file_handle = STDIN_FILENO,
    .file_flags = STREAM_READ,
    .file_buf = input_buf,
};
static FILE output = {
    .file_handle = STDOUT_FILENO,
    .file_flags = STREAM_WRITE | STREAM_UNSURE,
    .file_buf = output_buf,
};
static FILE errors = {
    .file_handle = STDERR_FILENO,
    .file_flags = STREAM_WRITE | STREAM_NOW,
};

FILE *const stdin = &input;
FILE *const stdout = &output;
FILE *const stderr = &errors;

FILE *stdio_opened;

int fileno(const FILE *f)
{
    return f->file_handle;
}

int feof(const FILE *f)
{
    return (f->file_flags & STREAM_EOF) != 0;
}

int ferror(const FILE *f)
{
    return f->file_error;
}

void clearerr(FILE *f)
{
    f->file_flags &= ~STREAM_EOF;
    f->file_error = 0;
}

void stdio_failed(FILE *f)
{
    if (f->file_error == 0)
        f->file_error = errno;
}

/* ---- writing ------------------------------------------------------------ */

static int put(FILE *f, const char *s, size_t n)
{
    if (write_all(f->file_handle, s, n) == 0)
        return 0;
    if (errno == EPIPE && f == &output)
        _exit(1);
    stdio_failed(f);
    return EOF;
}

static int flush(FILE *f)
{
    size_t n = f->file_pos;

    if ((f->file_flags & STREAM_WRITING) == 0)
        return 0;
    f->file_pos = 0;
    return n == 0 ? 0 : put(f, f->file_buf, n);
}

int fflush(FILE *f)
{
    int result = 0;

    if (f != NULL)
        return flush(f);
    result |= flush(&output);
    for (f = stdio_opened; f != NULL; f = f->file_next)
        result |= flush(f);
    return result;
}

int stdio_end(int status)
{
    fflush(NULL);
    if (output.file_error == 0)
        return status;
    errno = output.file_error;
    warn("standard output");
    return status != 0 ? status : 1;
}

/* Prepares a stream for writing. False if it is not writable. */
static bool begin_writing(FILE *f)
{
    if (f->file_flags & STREAM_WRITING)
        return true;
    if ((f->file_flags & STREAM_WRITE) == 0) {
        errno = EBADF;
        stdio_failed(f);
        return false;
    }
    if (f->file_pos < f->file_end) /* seek back to what was consumed */
        lseek(f->file_handle, -(off_t)(f->file_end - f->file_pos), SEEK_CUR);
    if ((f->file_flags & STREAM_UNSURE) && isatty(f->file_handle))
        f->file_flags |= STREAM_LINE;
    f->file_flags &= ~(STREAM_UNSURE | STREAM_EOF);
    f->file_flags |= STREAM_WRITING;
    f->file_pos = f->file_end = 0;
    return true;
}

/* Writes `n` characters; true on success. */
static bool put_all(FILE *f, const char *s, size_t n)
{
    if (!begin_writing(f))
        return false;
    if (f->file_flags & STREAM_NOW)
        return put(f, s, n) == 0;
    if (n > BUFSIZ - f->file_pos && flush(f) != 0)
        return false;
    if (n >= BUFSIZ)
        return put(f, s, n) == 0;
    memcpy(f->file_buf + f->file_pos, s, n);
    f->file_pos += n;
    if ((f->file_flags & STREAM_LINE) && memchr(s, '\n', n) != NULL)
        return flush(f) == 0;
    return true;
}

size_t fwrite(const void *buf, size_t size, size_t n, FILE *f)
{
    size_t bytes;

    if (__builtin_mul_overflow(size, n, &bytes) || bytes == 0)
        return 0;
    return put_all(f, buf, bytes) ? n : 0;
}

int fputc(int c, FILE *f)
{
    char byte = (char)c;

    return put_all(f, &byte, 1) ? (uint8_t)byte : EOF;
}

int putchar(int c)
{
    return fputc(c, &output);
}

int fputs(const char *s, FILE *f)
{
    return put_all(f, s, strlen(s)) ? 0 : EOF;
}

int puts(const char *s)
{
    return fputs(s, &output) == EOF ? EOF : fputc('\n', &output);
}

void putname(const char *name)
{
    for (; *name; name++) { /* sh may have redirected the output since */
        bool odd = *name < ' ' || *name > '~';

        putchar(odd && isatty(STDOUT_FILENO) ? '?' : *name);
    }
}

/* ---- formatted ---------------------------------------------------------- */

#define FORMAT_SHORT 256u
#define FORMAT_MAX   65536u

/* A text that did not fit: formats it into a large enough array on the
 * stack. */
static __attribute__((noinline)) int put_long(FILE *f, size_t n,
                                              const char *fmt, va_list ap)
{
    char *text;

    if (n > FORMAT_MAX) {
        errno = E2BIG;
        stdio_failed(f);
        return EOF;
    }
    text = __builtin_alloca(n + 1);
    vsnprintf(text, n + 1, fmt, ap);
    return put_all(f, text, n) ? (int)n : EOF;
}

int vfprintf(FILE *f, const char *fmt, va_list ap)
{
    char text[FORMAT_SHORT];
    va_list again;
    int n;

    va_copy(again, ap);
    n = vsnprintf(text, sizeof(text), fmt, ap);
    if ((size_t)n >= sizeof(text))
        n = put_long(f, (size_t)n, fmt, again);
    else if (!put_all(f, text, (size_t)n))
        n = EOF;
    va_end(again);
    return n;
}

int vprintf(const char *fmt, va_list ap)
{
    return vfprintf(&output, fmt, ap);
}

int fprintf(FILE *f, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vfprintf(f, fmt, ap);
    va_end(ap);
    return n;
}

int printf(const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vfprintf(&output, fmt, ap);
    va_end(ap);
    return n;
}

void perror(const char *what)
{
    fprintf(&errors, "%s: %s\n", what, strerror(errno));
}

/* ---- reading ------------------------------------------------------------ */

/* Prepares a stream for reading. False if it is not readable. */
static bool begin_reading(FILE *f)
{
    if ((f->file_flags & STREAM_READ) == 0) {
        errno = EBADF;
        stdio_failed(f);
        return false;
    }
    if ((f->file_flags & STREAM_WRITING) && flush(f) != 0)
        return false;
    f->file_flags &= ~STREAM_WRITING;
    if (f == &input && (output.file_flags & STREAM_LINE))
        flush(&output); /* a prompt */
    return true;
}

/* Fills the empty buffer; false at the end or after an error. */
static bool fill(FILE *f)
{
    ssize_t n;

    if (!begin_reading(f))
        return false;
    f->file_pos = f->file_end = 1; /* room for an ungetc */
    n = read(f->file_handle, f->file_buf + 1, BUFSIZ - 1);
    if (n < 0)
        stdio_failed(f);
    if (n == 0)
        f->file_flags |= STREAM_EOF;
    if (n <= 0)
        return false;
    f->file_end += (size_t)n;
    return true;
}

static bool something_left(FILE *f)
{
    return (f->file_flags & STREAM_WRITING) == 0 && f->file_pos < f->file_end;
}

int fgetc(FILE *f)
{
    if (!something_left(f) && !fill(f))
        return EOF;
    return (uint8_t)f->file_buf[f->file_pos++];
}

int getchar(void)
{
    return fgetc(&input);
}

int ungetc(int c, FILE *f)
{
    uint32_t flags = f->file_flags & (STREAM_READ | STREAM_WRITING);

    if (flags == STREAM_READ && f->file_end == 0)
        f->file_pos = f->file_end = 1; /* nothing was read yet */
    if (c == EOF || f->file_pos == 0 || flags != STREAM_READ)
        return EOF;
    f->file_buf[--f->file_pos] = (char)c;
    f->file_flags &= ~STREAM_EOF;
    return (uint8_t)c;
}

size_t fread(void *buf, size_t size, size_t n, FILE *f)
{
    char *at = buf;
    size_t bytes;
    size_t left;

    if (__builtin_mul_overflow(size, n, &bytes) || bytes == 0)
        return 0;
    for (left = bytes; left > 0;) {
        size_t some;

        if (!something_left(f) && !fill(f))
            break;
        some = MIN(left, f->file_end - f->file_pos);
        memcpy(at, f->file_buf + f->file_pos, some);
        f->file_pos += some;
        at += some;
        left -= some;
    }
    return (bytes - left) / size;
}

char *fgets(char *buf, int size, FILE *f)
{
    char *at = buf;
    char *last = buf + size - 1;
    int c = 0;

    while (at < last && c != '\n' && (c = fgetc(f)) != EOF)
        *at++ = (char)c;
    if (at == buf && at != last)
        return NULL;
    *at = 0;
    return buf;
}
