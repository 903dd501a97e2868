/*
 * Strings, numbers, sorting, patterns.
 *
 * Tests: user/lib/string.c, user/lib/strdup.c, user/lib/strerror.c
 * Tests: user/lib/stdlib.c, user/lib/match.c
 */
#include "user/lib/ctype.h"
#include "user/lib/match.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"
#include "user/tests/libtest/libtest.h"

TEST(string, searches)
{
    const char *s = "hello, world";

    CHECK(memchr(s, 'o', 12) == s + 4);
    CHECK(memchr(s, 'w', 7) == NULL);
    CHECK(strrchr(s, 'o') == s + 8);
    CHECK(strrchr(s, 0) == s + 12);
    CHECK(strrchr(s, 'x') == NULL);
    CHECK(strspn(s, "hel") == 4 && strcspn(s, ", ") == 5);
    CHECK(strcspn(s, "x") == 12 && strspn(s, "") == 0);
    CHECK(strpbrk(s, "dw") == s + 7 && strpbrk(s, "xyz") == NULL);
    CHECK(strcasecmp("Slate", "sLATE") == 0 && strcasecmp("a", "B") < 0);
}

TEST(string, copies)
{
    char buf[8];
    char *copy = strdup("a copy");

    CHECK(copy != NULL && strcmp(copy, "a copy") == 0);
    free(copy);
    CHECK(strcpy(buf, "abc") == buf && strcmp(buf, "abc") == 0);
    CHECK(strlcat(buf, "defghij", sizeof(buf)) == 10);
    CHECK(strcmp(buf, "abcdefg") == 0);
    CHECK(strlcat(buf, "x", sizeof(buf)) == 8);
}

TEST(string, tokens)
{
    char text[] = "::one:two::three";
    char empty[] = "::";
    char *save;

    CHECK(strcmp(strtok_r(text, ":", &save), "one") == 0);
    CHECK(strcmp(strtok_r(NULL, ":", &save), "two") == 0);
    CHECK(strcmp(strtok_r(NULL, ":", &save), "three") == 0);
    CHECK(strtok_r(NULL, ":", &save) == NULL);
    CHECK(strtok_r(NULL, ":", &save) == NULL);
    CHECK(strtok_r(empty, ":", &save) == NULL);
}

TEST(string, paths)
{
    char path[10];
    char buf[PATH_MAX];

    CHECK(strcmp(path_name("/bin/ls"), "ls") == 0);
    CHECK(strcmp(path_name("ls"), "ls") == 0);
    CHECK(strcmp(path_last("/bin/ls//", buf), "ls") == 0);
    CHECK(strcmp(path_last("//", buf), "") == 0);
    CHECK(path_join(path, sizeof(path), "/", "a"));
    CHECK(strcmp(path, "/a") == 0);
    CHECK(path_join(path, sizeof(path), path, "bc"));
    CHECK(strcmp(path, "/a/bc") == 0);
    CHECK(path_join(path, sizeof(path), "", "abcdefghi"));
    errno = 0;
    CHECK(!path_join(path, sizeof(path), "abc", "defghi"));
    CHECK(errno == ENAMETOOLONG);
}

TEST(stdlib, numbers)
{
    char *end;
    const char *s = "  -42x";

    CHECK(strtol(s, &end, 10) == -42 && end == s + 5);
    s = "0x1fg";
    CHECK(strtol(s, &end, 0) == 31 && end == s + 4);
    CHECK(strtol("0755", NULL, 0) == 493 && strtol("z", NULL, 36) == 35);
    s = "0xg";
    CHECK(strtol(s, &end, 16) == 0 && end == s + 1);
    s = "none";
    CHECK(strtol(s, &end, 10) == 0 && end == s);
    errno = 0;
    CHECK(strtol("2147483648", NULL, 10) == 2147483647 && errno == ERANGE);
    errno = 0;
    CHECK(strtol("-2147483648", NULL, 10) == -2147483647 - 1 && errno == 0);
    CHECK(strtol("-2147483649", NULL, 10) == -2147483647 - 1 &&
          errno == ERANGE);
    errno = 0;
    CHECK(strtoul("4294967295", NULL, 10) == 4294967295u && errno == 0);
    CHECK(strtoul("4294967296", NULL, 10) == 4294967295u && errno == ERANGE);
    errno = 0;
    CHECK(strtoul("-4294967295", NULL, 10) == 1 && errno == 0);
    CHECK(strtoul("-4294967296", NULL, 10) == 4294967295u && errno == ERANGE);
    CHECK(atoi("+7") == 7 && abs(-3) == 3);
}

static int by_value(const void *a, const void *b)
{
    int x = *(const int *)a;
    int y = *(const int *)b;

    return (x > y) - (x < y);
}

TEST(stdlib, sorting)
{
    int array[257];
    int key;

    srand(7);
    for (size_t n = 0; n < ARRAY_SIZE(array); n += 8) {
        unsigned sum = 0;

        for (size_t i = 0; i < n; i++)
            sum += (unsigned)(array[i] = rand() % 100);
        qsort(array, n, sizeof(array[0]), by_value);
        for (size_t i = 0; i < n; i++)
            sum -= (unsigned)array[i];
        CHECK(sum == 0);
        for (size_t i = 1; i < n; i++)
            CHECK(array[i - 1] <= array[i]);
    }
    for (int i = 0; i < 100; i++)
        array[i] = 2 * i;
    for (key = -1; key <= 200; key++) {
        int *found = bsearch(&key, array, 100, sizeof(array[0]), by_value);
        bool there = key % 2 == 0 && key < 200;

        CHECK(there ? found == &array[key / 2] : found == NULL);
    }
}

TEST(stdlib, random_numbers)
{
    int first;

    srand(5);
    first = rand();
    CHECK(first >= 0 && rand() != first);
    srand(5);
    CHECK(rand() == first);
    srand(0);
    CHECK(rand() != 0);
}

TEST(match, regular_expressions)
{
    CHECK(regex_match("b*c", "aabbc", false));
    CHECK(regex_match("^a*$", "aaa", false));
    CHECK(!regex_match("^a*$", "aba", false));
    CHECK(regex_match("", "", false) && regex_match("^$", "", false));
    CHECK(!regex_match("^$", "x", false));
    CHECK(regex_match("a.*d", "xabcde", false));
    CHECK(!regex_match("a.d", "ad", false));
    CHECK(regex_match("\\.c$", "x.c", false));
    CHECK(!regex_match("\\.c$", "xxc", false));
    CHECK(regex_match("\\**x", "**x", false));
    CHECK(regex_match("a$b", "a$b", false));
    CHECK(regex_match("SLAB", "a slab", true));
    CHECK(!regex_match("SLAB", "a slab", false));
    CHECK(regex_match("x*", "yyy", false));
}

TEST(match, globs)
{
    CHECK(glob_match("*", "") && glob_match("*", "abc"));
    CHECK(glob_match("*.c", "x.c.c") && !glob_match("*.c", "x.cc"));
    CHECK(glob_match("a?c", "abc") && !glob_match("a?c", "ac"));
    CHECK(glob_match("[a-c]*[!x]", "by") && !glob_match("[a-c]*[!x]", "bx"));
    CHECK(glob_match("a**b*", "ab") && !glob_match("", "a"));
    CHECK(glob_match("[]]", "]") && glob_match("[", "["));
    CHECK(glob_match("\\*\\[[\\*x]", "*[*") && !glob_match("[\\*]", "\\"));
    CHECK(!glob_match("abc", "ab") && !glob_match("ab", "abc"));
}

TEST(string, errors)
{
    CHECK(strcmp(strerror(ENOENT), "no such file or directory") == 0);
    CHECK(strcmp(strerror(9999), "unknown error") == 0);
}

TEST(string, characters)
{
    CHECK(isdigit('7') && !isdigit('a') && isalnum('z') && !isalnum('_'));
    CHECK(isspace('\t') && isspace(' ') && !isspace('x') && isprint('~'));
    CHECK(!isprint(0x7f) && toupper('q') == 'Q' && tolower('[') == '[');
}
