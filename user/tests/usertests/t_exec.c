/*
 * exec: inherited state, and files that are refused.
 */
#include "user/tests/usertests/test.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

/* Runs a program in a child with its output in the file "out"; returns the
 * exit code. */
static int run(const char *path, char *const argv[], char *const envp[])
{
    int status;
    pid_t child = fork();

    CHECK(child >= 0);
    if (child == 0) {
        int h = open("out", O_WRONLY | O_CREAT | O_TRUNC);

        CHECK(h >= 0);
        EQUAL(dup2(h, STDOUT_FILENO), STDOUT_FILENO);
        EQUAL(dup2(open("/dev/null", O_WRONLY), STDERR_FILENO), STDERR_FILENO);
        execve(path, argv, envp);
        _exit(99);
    }
    EQUAL(waitpid(child, &status, 0), child);
    EQUAL(WTERMSIG(status), 0);
    return WEXITSTATUS(status);
}

TEST(exec, arguments)
{
    char *argv[] = {"echo", "a", "", "b c", NULL};
    char *envp[] = {NULL};

    EQUAL(run("/bin/echo", argv, envp), 0);
    CHECK(has_text("out", "a  b c\n"));
}

TEST(exec, environment)
{
    char *argv[] = {"sh", "-c", "echo $ONE-$TWO", NULL};
    char *envp[] = {"ONE=1", "TWO=two", NULL};

    EQUAL(run("/bin/sh", argv, envp), 0);
    CHECK(has_text("out", "1-two\n"));
}

/* A path relative to the current directory. */
TEST(exec, relative)
{
    char *argv[] = {"true", NULL};
    pid_t child = fork();

    CHECK(child >= 0);
    if (child == 0) {
        EQUAL(chdir("/bin"), 0);
        execv("./true", argv);
        _exit(1);
    }
    expect_exit(child, 0);
}

/* Without any argument, not even a name. */
TEST(exec, no_arguments)
{
    char *none[] = {NULL};

    EQUAL(run("/bin/true", none, none), 0);
    EQUAL(run("/bin/true", NULL, NULL), 0);
}

TEST(exec, close_on_exec)
{
    char *argv[] = {"sh", "-c", "cat <&8 && cat <&9", NULL};
    int h, kept;

    make_file("kept", "kept");
    kept = open("kept", O_RDONLY);
    EQUAL(dup2(kept, 8), 8);
    h = open("kept", O_RDONLY | O_CLOEXEC);
    while (h >= 0 && h < 9) /* dup clears the flag */
        h = open("kept", O_RDONLY | O_CLOEXEC);
    EQUAL(h, 9);
    environ[0] = NULL;
    CHECK(run("/bin/sh", argv, environ) != 0);
    CHECK(has_text("out", "kept"));
}

/* ---- files that cannot be run ------------------------------------------- */

static char *const argv_x[] = {"x", NULL};

TEST(exec, path_errors)
{
    static char path[PATH_MAX + 8];

    FAILS(execv("/bin/nothing", argv_x), ENOENT);
    FAILS(execv("nothing", argv_x), ENOENT);
    FAILS(execv("", argv_x), ENOENT);
    FAILS(execv("/bin/true/x", argv_x), ENOTDIR);
    FAILS(execv("/bin", argv_x), EISDIR);
    FAILS(execv("/dev/null", argv_x), EACCES);
    memset(path, '/', sizeof(path) - 1);
    FAILS(execv(path, argv_x), ENAMETOOLONG);
    memset(path, 'n', NAME_MAX + 1);
    path[NAME_MAX + 1] = 0;
    FAILS(execv(path, argv_x), ENAMETOOLONG);
}

TEST(exec, too_big)
{
    static char text[ARG_MAX + 1];
    static char *many[ARG_MAX / 4];
    char *one[] = {"true", text, NULL};

    memset(text, 'x', sizeof(text) - 1);
    FAILS(execv("/bin/true", one), E2BIG);
    FAILS(execve("/bin/true", argv_x, one), E2BIG);
    for (size_t i = 0; i < ARRAY_SIZE(many) - 1; i++)
        many[i] = "";
    FAILS(execv("/bin/true", many), E2BIG);
    many[100] = NULL;
    EQUAL(run("/bin/true", many, NULL), 0);
    text[ARG_MAX - 100] = 0;
    EQUAL(run("/bin/true", one, NULL), 0);
}

TEST(exec, garbage)
{
    make_file("empty", "");
    FAILS(execv("empty", argv_x), ENOEXEC);
    make_file("text", "echo this is a script\n");
    FAILS(execv("text", argv_x), ENOEXEC);
    make_file("magic", "\x7f"
                       "ELF\1\1\1");
    FAILS(execv("magic", argv_x), ENOEXEC);
}

/* /bin/true in memory, and its first `n` bytes in the file "program". */
static uint8_t image[32768] __attribute__((aligned(4)));
static size_t image_size;

static void load_image(void)
{
    int h = open("/bin/true", O_RDONLY);

    CHECK(h >= 0);
    image_size = (size_t)read(h, image, sizeof(image));
    CHECK(image_size > 52 && image_size < sizeof(image));
    EQUAL(close(h), 0);
}

static void store_image(size_t n)
{
    int h = open("program", O_WRONLY | O_CREAT | O_TRUNC);

    CHECK(h >= 0);
    EQUAL(write(h, image, n), n);
    EQUAL(close(h), 0);
}

/* Truncated anywhere before the end of the last segment. */
TEST(exec, truncated)
{
    load_image();
    for (size_t n = 1; n < 4096; n += 117) {
        store_image(n);
        FAILS(execv("program", argv_x), ENOEXEC);
    }
    store_image(image_size);
    EQUAL(run("program", argv_x, NULL), 0);
}

struct patch {
    uint16_t patch_offset; /* in the file */
    uint8_t patch_size;    /* bytes: 1, 2 or 4 */
    uint32_t patch_value;
};

/* Invalid numbers in the header and in the first program header (at 52). */
TEST(exec, bad_headers)
{
    static const struct patch patches[] = {
        {4, 1, 2},               /* 64-bit */
        {5, 1, 2},               /* big-endian */
        {16, 2, 3},              /* a shared object */
        {18, 2, 62},             /* another processor */
        {24, 4, 0},              /* entry: nowhere */
        {24, 4, 0xc0100000},     /* entry: in the kernel */
        {28, 4, 0xfffffff0},     /* program headers after the end of the file */
        {42, 2, 31},             /* of another size */
        {44, 2, 0},              /* no program headers */
        {44, 2, 0xffff},         /* too many */
        {52 + 4, 4, 0x7ffff000}, /* bytes after the end of the file */
        {52 + 4, 4, 0xfffff000},
        {52 + 8, 4, 0},           /* to address 0 */
        {52 + 8, 4, 0xc0000000},  /* over the kernel */
        {52 + 8, 4, 0x004ff000},  /* over the stack */
        {52 + 16, 4, 0xffffffff}, /* more bytes than memory */
        {52 + 20, 4, 0xffffffff}, /* more memory than the machine has */
        {52 + 20, 4, 0x40000000},
    };

    load_image();
    for (size_t i = 0; i < ARRAY_SIZE(patches); i++) {
        const struct patch *p = &patches[i];
        uint32_t old;

        memcpy(&old, image + p->patch_offset, 4);
        memcpy(image + p->patch_offset, &p->patch_value, p->patch_size);
        store_image(image_size);
        errno = 0;
        EQUAL(execv("program", argv_x), -1);
        if (errno != ENOEXEC)
            test_fail(__FILE__, (int)i,
                      "patch of this line number: not ENOEXEC", errno);
        memcpy(image + p->patch_offset, &old, 4);
    }
}

/* After an exec that fails the old program continues, with everything it
 * had. */
TEST(exec, failure_keeps_all)
{
    int ends[2];
    char *heap = sbrk(100);
    char c = 0;

    *heap = 'h';
    make_pipe(ends);
    EQUAL(write(ends[1], "p", 1), 1);
    make_file("bad", "bad");
    FAILS(execv("bad", argv_x), ENOEXEC);
    EQUAL(*heap, 'h');
    EQUAL(read(ends[0], &c, 1), 1);
    EQUAL(c, 'p');
    CHECK(has_text("bad", "bad"));
}
