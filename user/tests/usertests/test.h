/*
 * Tests of the system calls, as programs see them.
 *
 *     main.c      runs cases, each in a child of its own, and reports
 *     skip.c      the cases that are not run
 *     t_*.c       a family each
 *
 * A case runs in its own process group, in an empty directory. Processes that
 * it leaves are killed, files in the directory are removed; then the kernel's
 * objects are counted. If there are more than before, the case has failed.
 */
#pragma once

#include "user/lib/ipc.h"
#include "user/lib/unistd.h"

struct test {
    const char *test_family;
    const char *test_name; /* "family.case" */
    void (*test_run)(void);
    int test_signal; /* signal that must end the case; 0: it exits */
};

/* All cases: a case registers itself in the linker section `tests`. */
extern const struct test __start_tests[];
extern const struct test __stop_tests[];

/* A case, in the order of the source: TEST(task, fork) { ... }. */
#define TEST(family, name) TEST_KILLED(family, name, 0)
/* A case that a signal must end. */
#define TEST_KILLED(family, name, signal)                                      \
    static void family##_##name(void);                                         \
    static const struct test entry_##family##_##name __attribute__((           \
        used, no_reorder, section("tests"), aligned(sizeof(void *)))) = {      \
        #family, #family "." #name, family##_##name, signal};                  \
    static void family##_##name(void)

/* Ends the case, or a child of it, as failed. */
void test_fail(const char *file, int line, const char *what, int32_t got)
    __attribute__((noreturn));

#define CHECK(e)                                                               \
    do {                                                                       \
        if (!(e))                                                              \
            test_fail(__FILE__, __LINE__, "not true: " #e, errno);             \
    } while (0)

/* Both numbers must be equal. */
#define EQUAL(e, value)                                                        \
    do {                                                                       \
        int32_t test_got = (int32_t)(e);                                       \
        if (test_got != (int32_t)(value))                                      \
            test_fail(__FILE__, __LINE__, #e " is not " #value, test_got);     \
    } while (0)

/* A library function must return -1 and set errno to this. */
#define FAILS(e, error)                                                        \
    do {                                                                       \
        int32_t test_result = (int32_t)(e);                                    \
        if (test_result != -1)                                                 \
            test_fail(__FILE__, __LINE__, #e " does not fail", test_result);   \
        if (errno != (error))                                                  \
            test_fail(__FILE__, __LINE__, #e " is not -" #error, errno);       \
    } while (0)

/* Reads a list of cases to skip. Exits if it has a mistake, with a message. */
void skip_read(const char *path);

/* Why the case is to be skipped; NULL: it is not. */
const char *skip_reason(const struct test *t);

/* ---- common functions --------------------------------------------------- */

/* For the bytes of long messages. */
extern char message_bytes[IPC_DATA_MAX];

/* A child that runs fn(arg) and ends with 0. */
pid_t spawn(void (*fn)(int arg), int arg);

/* Waits for a child and checks how it ended. */
void expect_exit(pid_t pid, int code);
void expect_signal(pid_t pid, int signal);

/* Kills a child and waits for its end. */
void expect_killed(pid_t pid);

/* Waits until /proc/tasks lists the child as blocked for this reason, such as
 * "message". That is the wait which is meant if the child has no other for the
 * same reason. */
void until_waits_for(pid_t pid, const char *reason);

/* Creates a file with this text; tests whether it has this text. */
void make_file(const char *path, const char *text);
bool has_text(const char *path, const char *text);

/* The status of a file that exists. */
struct stat stat_of(const char *path);

/* Creates a pipe, which must succeed. */
void make_pipe(int ends[2]);

/* A child that runs fn(port) and is the only task that can receive at that
 * port; *port gets a handle to call it. (With an inherited port both could
 * receive.) */
pid_t spawn_server(void (*fn)(int port), int *port);

/* Uses about `bytes` of stack below here, page by page; returns 1. */
int use_stack(size_t bytes);
