/*
 * df [PATH…]: used and free space of file systems; of all without operands.
 *
 * A server may never reply, and all should not wait for one. So a child asks
 * about each mount, and after five seconds those that still wait are killed.
 */
#include "user/lib/copy.h"
#include "user/lib/err.h"
#include "user/lib/mounts.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

#define PATIENCE 5 /* seconds */

/* What a child says of a mount. */
struct answer {
    int answer_error;
    struct fs_stat answer_stat;
};

/* A mount, and where the child's answer comes. */
struct question {
    char *question_path; /* NULL: there is no child */
    int question_pipe;
};

/* `part` of `whole` in percent, rounded up. */
static uint32_t percent(uint32_t part, uint32_t whole)
{
    return whole == 0 ? 0
                      : (uint32_t)(((uint64_t)part * 100 + whole - 1) / whole);
}

static bool print_row(const char *path, int error, const struct fs_stat *st)
{
    uint32_t used = st->fs_blocks - st->fs_blocks_free;

    if (error != 0) {
        errno = error;
        warn("%s", path);
        return false;
    }
    printf("%-8s %7u %10u %10u %3u%% %9u %9u ", st->fs_kind, st->fs_block_size,
           st->fs_blocks, st->fs_blocks_free, percent(used, st->fs_blocks),
           st->fs_files, st->fs_files_free);
    putname(path);
    putchar('\n');
    return true;
}

static struct answer ask(const char *path)
{
    struct answer a = {0};

    if (statfs(path, &a.answer_stat) < 0)
        a.answer_error = errno;
    return a;
}

static bool print_one(const char *path)
{
    struct answer a = ask(path);

    return print_row(path, a.answer_error, &a.answer_stat);
}

/* A child that kills its group, the children that ask, when the time is up. */
static pid_t begin_deadline(void)
{
    pid_t child = fork();

    if (child < 0)
        err(1, "no time limit for servers");
    setpgid(child, child);
    if (child != 0)
        return child;
    sleep(PATIENCE);
    kill(-getpid(), SIGKILL);
    _exit(1);
}

static struct question begin(const char *path, pid_t group)
{
    struct question q = {strdup(path), -1};
    struct answer a;
    int ends[2];
    pid_t child;

    if (q.question_path == NULL || pipe(ends) < 0)
        goto no_child;
    child = fork();
    if (child == 0) {
        setpgid(0, group);
        a = ask(path);
        _exit(write(ends[1], &a, sizeof(a)) != sizeof(a));
    }
    close(ends[1]);
    q.question_pipe = ends[0];
    if (child < 0)
        goto no_child;
    setpgid(child, group);
    return q;

no_child:
    warn("%s", path);
    q.question_path = NULL;
    return q;
}

static bool print_answer(const struct question *q)
{
    struct answer a;

    if (q->question_path == NULL)
        return false;
    if (read(q->question_pipe, &a, sizeof(a)) == sizeof(a))
        return print_row(q->question_path, a.answer_error, &a.answer_stat);
    warnx("%s: its server does not reply", q->question_path);
    return false;
}

static bool print_all(FILE *mounts, const char *name)
{
    pid_t group = begin_deadline();
    struct question *q = NULL, *more;
    char path[PATH_MAX];
    size_t n = 0;
    bool good = true;

    (void)name;
    while (good && mounts_next(mounts, path)) {
        more = realloc(q, (n + 1) * sizeof(*q));
        good = more != NULL;
        if (good) {
            q = more;
            q[n++] = begin(path, group);
        } else {
            warn("%s", path);
        }
    }
    for (size_t i = 0; i < n; i++)
        good &= print_answer(&q[i]);
    kill(-group, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0)
        continue;
    return good;
}

int main(int argc, char **argv)
{
    static char *const all[] = {"/proc/mounts", NULL};
    bool good = true;

    if (getopt(argc, argv, "") != -1)
        usage("[PATH...]");
    printf("%-8s %7s %10s %10s %4s %9s %9s %s\n", "FS", "BLOCK/B", "BLOCKS",
           "FREE", "USED", "FILES", "FREE", "ON");
    if (optind == argc)
        good = for_each_file(all, print_all);
    for (; optind < argc; optind++)
        good &= print_one(argv[optind]);
    return !good;
}
