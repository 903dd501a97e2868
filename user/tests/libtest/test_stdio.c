/*
 * Streams.
 *
 * Tests: user/lib/stdio.c, user/lib/fopen.c
 */
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"
#include "user/tests/libtest/libtest.h"

#define NAME "/tmp/libtest.tmp"

static bool write_file(const char *mode, const char *text)
{
    FILE *f = fopen(NAME, mode);

    return f != NULL && fputs(text, f) >= 0 && fclose(f) == 0;
}

static void check_file(const char *text)
{
    static char buf[200];
    FILE *f = fopen(NAME, "r");
    size_t n;

    CHECK(f != NULL);
    if (f == NULL)
        return;
    n = fread(buf, 1, sizeof(buf) - 1, f);
    buf[n] = 0;
    CHECK(strcmp(buf, text) == 0);
    CHECK(feof(f) && !ferror(f));
    CHECK(fclose(f) == 0);
}

TEST(stdio, modes)
{
    FILE *f;

    CHECK(write_file("w", "one\n"));
    CHECK(write_file("a", "two\n"));
    check_file("one\ntwo\n");
    f = fopen(NAME, "r+");
    CHECK(f != NULL && fgetc(f) == 'o');
    CHECK(fputc('N', f) == 'N');
    CHECK(fflush(f) == 0 && fgetc(f) == 'e');
    CHECK(fclose(f) == 0);
    check_file("oNe\ntwo\n");
    CHECK(write_file("w", ""));
    check_file("");
    unlink(NAME);
}

TEST(stdio, wrong)
{
    FILE *f;

    errno = 0;
    CHECK(fopen("/nowhere/at/all", "r") == NULL && errno == ENOENT);
    errno = 0;
    CHECK(fopen(NAME, "x") == NULL && errno == EINVAL);
    CHECK(write_file("w", "x"));
    f = fopen(NAME, "r");
    errno = 0;
    CHECK(fputc('y', f) == EOF && errno == EBADF && ferror(f));
    clearerr(f);
    CHECK(!ferror(f) && fgetc(f) == 'x' && fgetc(f) == EOF && feof(f));
    fclose(f);
    f = fopen(NAME, "w");
    errno = 0;
    CHECK(fgetc(f) == EOF && errno == EBADF && !feof(f));
    fclose(f);
    unlink(NAME);
}

/* Longer than the buffer, in pieces whose size does not divide it. */
TEST(stdio, long_files)
{
    char piece[333];
    FILE *f = fopen(NAME, "w+");
    unsigned wrong_bytes = 0;

    for (unsigned i = 0; i < 50; i++) {
        memset(piece, 'a' + (int)(i % 26), sizeof(piece));
        CHECK(fwrite(piece, 1, sizeof(piece), f) == sizeof(piece));
    }
    CHECK(fflush(f) == 0);
    CHECK(lseek(fileno(f), 0, SEEK_SET) == 0);
    for (unsigned i = 0; i < 50; i++) {
        CHECK(fread(piece, sizeof(piece), 1, f) == 1);
        for (size_t at = 0; at < sizeof(piece); at++)
            wrong_bytes += piece[at] != (char)('a' + i % 26);
    }
    CHECK(wrong_bytes == 0);
    CHECK(fread(piece, 1, 1, f) == 0 && feof(f));
    fclose(f);
    unlink(NAME);
}

TEST(stdio, lines)
{
    char *line = NULL;
    size_t size = 0;
    char buf[4];
    FILE *f = fopen(NAME, "w");

    for (unsigned i = 0; i < 3000; i++)
        fputc('x', f);
    fputs("\nabcde\n\nend", f);
    fclose(f);
    f = fopen(NAME, "r");
    CHECK(getline(&line, &size, f) == 3001 && line[3000] == '\n');
    free(line);
    CHECK(fgets(buf, sizeof(buf), f) && strcmp(buf, "abc") == 0);
    CHECK(fgets(buf, 1, f) && strcmp(buf, "") == 0);
    CHECK(fgets(buf, sizeof(buf), f) && strcmp(buf, "de\n") == 0);
    CHECK(fgets(buf, sizeof(buf), f) && strcmp(buf, "\n") == 0);
    line = NULL;
    CHECK(getline(&line, &size, f) == 3 && strcmp(line, "end") == 0);
    CHECK(getline(&line, &size, f) == -1);
    CHECK(fgets(buf, sizeof(buf), f) == NULL);
    free(line);
    fclose(f);
    unlink(NAME);
}

TEST(stdio, pushing_back)
{
    FILE *f;

    CHECK(write_file("w", "ab"));
    f = fopen(NAME, "r");
    CHECK(fgetc(f) == 'a' && ungetc('z', f) == 'z');
    CHECK(fgetc(f) == 'z' && fgetc(f) == 'b' && fgetc(f) == EOF);
    CHECK(ungetc('y', f) == 'y' && !feof(f) && fgetc(f) == 'y');
    CHECK(ungetc(EOF, f) == EOF);
    fclose(f);
    f = fopen(NAME, "r");
    CHECK(ungetc('x', f) == 'x' && ungetc('y', f) == EOF);
    CHECK(fgetc(f) == 'x' && fgetc(f) == 'a' && fgetc(f) == 'b');
    fclose(f);
    unlink(NAME);
}

TEST(stdio, formatted)
{
    FILE *f = fopen(NAME, "w");

    CHECK(fprintf(f, "%d %s|%5u|%-4x|%c", -7, "text", 42u, 255u, '!') == 20);
    CHECK(fprintf(f, "%*d", 1000, 1) == 1000);
    errno = 0;
    CHECK(fprintf(f, "%*d", 70000, 1) == EOF && errno == E2BIG);
    CHECK(fclose(f) == 0);
    f = fopen(NAME, "r");
    for (const char *s = "-7 text|   42|ff  |!"; *s != 0; s++)
        CHECK(fgetc(f) == *s);
    for (unsigned i = 0; i < 999; i++)
        CHECK(fgetc(f) == ' ');
    CHECK(fgetc(f) == '1' && fgetc(f) == EOF);
    fclose(f);
    unlink(NAME);
}

/* With no reader: exits with status 1, silently. */
static void print_for_ever(void)
{
    int ends[2];

    if (pipe(ends) < 0)
        return;
    close(ends[0]);
    dup2(ends[1], STDOUT_FILENO);
    for (;;)
        puts("who reads this");
}

TEST(stdio, broken_pipe)
{
    int status = test_in_child(print_for_ever);

    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}
