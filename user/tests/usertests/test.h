/*
 * Tests of the system calls, as programs see them.
 *
 *     main.c      runs cases, each in a child of its own, and reports
 *     skip.c      the cases that are not run
 *     table.c     the list of all families
 *     t_*.c       a family each: functions, and a table of them at the end
 *
 * A case runs in its own process group, in an empty directory. Processes that
 * it leaves are killed, files in the directory are removed; then the kernel's
 * objects are counted. If there are more than before, the case has failed.
 */
#pragma once

#include "user/lib/ipc.h"
#include "user/lib/unistd.h"

struct test {
    const char *test_name;
    void (*test_run)(void);
    int test_signal; /* signal that must end the case; 0: it exits */
};

struct family {
    const char *family_name;
    const struct test *family_tests; /* ended by a NULL name */
};

extern const struct family families[]; /* ended by a NULL name */

extern const struct test task_tests[];
extern const struct test exec_tests[];
extern const struct test memory_tests[];
extern const struct test commit_tests[];
extern const struct test protect_tests[];
extern const struct test trap_tests[];
extern const struct test pointer_tests[];
extern const struct test handle_tests[];
extern const struct test pipe_tests[];
extern const struct test file_tests[];
extern const struct test tree_tests[];
extern const struct test device_tests[];
extern const struct test ipc_tests[];
extern const struct test grant_tests[];
extern const struct test session_tests[];
extern const struct test death_tests[];
extern const struct test mount_tests[];
extern const struct test liar_tests[];
extern const struct test dead_server_tests[];
extern const struct test silent_tests[];

/* An entry: TEST(task, fork) is the function task_fork. */
#define TEST(family, name)                                                     \
    {                                                                          \
#family "." #name, family##_##name, 0                                  \
    }
/* … a case that a signal must end. */
#define TEST_KILLED(family, name, signal)                                      \
    {                                                                          \
#family "." #name, family##_##name, signal                             \
    }
#define TEST_END                                                               \
    {                                                                          \
        NULL, NULL, 0                                                          \
    }

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

/* Waits until /proc/tasks lists the child as blocked for this reason, such as
 * "message". That is the wait which is meant if the child has no other for the
 * same reason. */
void until_waits_for(pid_t pid, const char *reason);

/* Creates a file with this text; tests whether it has this text. */
void make_file(const char *path, const char *text);
bool has_text(const char *path, const char *text);

/* Creates a pipe, which must succeed. */
void make_pipe(int ends[2]);

/* A child that runs fn(port) and is the only task that can receive at that
 * port; *port gets a handle to call it. (With an inherited port both could
 * receive.) */
pid_t spawn_server(void (*fn)(int port), int *port);

/* Uses about `bytes` of stack below here, page by page; returns 1. */
int use_stack(size_t bytes);
