/*
 * The small programs as users see them: a command line for sh, its output (with
 * messages) and its exit status.
 *
 * Tests: user/bin/[a-z]*.c, user/bin/sh/[a-z]*.c
 * Tests: user/lib/copy.c, user/lib/directory.c, user/lib/number.c
 * Tests: user/lib/findtask.c
 */
#include "user/lib/stdio.h"
#include "user/lib/string.h"
#include "user/tests/libtest/libtest.h"

struct line {
    const char *line_command; /* NULL ends a case */
    const char *line_output;  /* expected; a prefix if it ends in * */
    int line_status;
};

static char output[2000];
static bool crowded; /* programs start with all handles open */

static void execute(const void *command)
{
    char *words[] = {"sh", "-c", (char *)command, NULL};

    dup2(STDOUT_FILENO, STDERR_FILENO);
    while (crowded && dup(STDIN_FILENO) >= 0)
        continue;
    execvp("sh", words);
    _exit(127);
}

/* Runs a command in the directory of the tests; returns its status. */
static int run(const char *command)
{
    int status = test_output(execute, command, output, sizeof(output));

    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static bool as_expected(const char *want)
{
    size_t n = strlen(want);

    if (n > 0 && want[n - 1] == '*')
        return strncmp(output, want, n - 1) == 0;
    return strcmp(output, want) == 0;
}

/* Runs in an empty directory, so that cases are independent. */
static void run_lines(const struct line *l)
{
    CHECK(mkdir("/tmp/programs") == 0 && chdir("/tmp/programs") == 0);
    for (; l->line_command != NULL; l++) {
        int status = run(l->line_command);

        if (status == l->line_status && as_expected(l->line_output))
            continue;
        printf("# %s: status %d, output:\n# %s\n", l->line_command, status,
               output);
        CHECK(status == l->line_status && as_expected(l->line_output));
    }
    CHECK(chdir("/") == 0);
    CHECK(run("rm -r /tmp/programs") == 0);
}

#define CASE(name, ...)                                                        \
    TEST(programs, name)                                                       \
    {                                                                          \
        static const struct line lines[] = {__VA_ARGS__, {NULL, NULL, 0}};     \
                                                                               \
        run_lines(lines);                                                      \
    }

/* clang-format off */
CASE(true_false,
     {"true", "", 0},
     {"false", "", 1})

CASE(echo,
     {"echo", "\n", 0},
     {"echo a 'b  c'", "a b  c\n", 0},
     {"echo -n a", "a", 0})

CASE(cat,
     {"echo one > a; echo two > b; cat a b", "one\ntwo\n", 0},
     {"echo x | cat a - b", "one\nx\ntwo\n", 0},
     {"cat < b", "two\n", 0},
     {"cat nothing a", "cat: nothing: no such file or directory\none\n", 1},
     {"cat .", "cat: .: is a directory\n", 1},
     {"cat -x a", "cat: unknown option -x\nusage: cat [FILE...]\n", 2})

CASE(ls,
     {"mkdir d; echo > d/b; echo > d/a; ls d", "a\nb\n", 0},
     {"ls -a d", ".\n..\na\nb\n", 0},
     {"echo -n 12345 > d/a; ls -l d/a", "-    1        5 *", 0},
     {"ls nothing", "ls: nothing: no such file or directory\n", 1},
     {"ls -q", "ls: unknown option -q\nusage: ls [-al] [PATH...]\n", 2},
     {"ls --help", "ls: unknown option --help\nusage: ls [-al] [PATH...]\n",
      2})

CASE(grep,
     {"echo slab > a; echo Slate >> a; echo bin >> a; grep '^s.*b$' a",
      "slab\n", 0},
     {"grep -i SLA a", "slab\nSlate\n", 0},
     {"grep -n b a", "1:slab\n3:bin\n", 0},
     {"grep -vn b a", "2:Slate\n", 0},
     {"grep -c . a", "3\n", 0},
     {"cat a | grep bin", "bin\n", 0},
     {"grep bin a /dev/null", "a:bin\n", 0},
     {"grep nothing a", "", 1},
     {"grep x nothing", "grep: nothing: no such file or directory\n", 2},
     {"grep", "usage: grep [-cinv] PATTERN [FILE...]\n", 2})

CASE(wc,
     {"echo one two > a; echo three >> a; wc a",
      "       2       3      14 a\n", 0},
     {"wc -l < a", "       2\n", 0},
     {"wc -cw a a", "       3      14 a\n       3      14 a\n"
      "       6      28 total\n", 0},
     {"echo -n 'a b' | wc", "       0       2       3\n", 0})

CASE(head,
     {"find /bin | head -n 1", "/bin\n", 0},
     {"echo a > a; echo b >> a; head a", "a\nb\n", 0},
     {"head -n 0 a", "", 0},
     {"head -n1 a a", "==> a <==\na\n==> a <==\na\n", 0},
     {"head -1 a; head -01 a a", "a\n==> a <==\na\n==> a <==\na\n", 0},
     {"head -n -1 a", "head: -1 is not a number of lines\n", 2},
     {"head -1x a", "head: 1x is not a number of lines\n", 2},
     {"head -q a", "head: unknown option -q\n"
      "usage: head [-n LINES | -LINES] [FILE...]\n", 2},
     {"head -n x a", "head: x is not a number of lines\n", 2})

/* A directory can be opened, but not read as a file. */
CASE(input_errors,
     {"cat < /bin", "cat: -: is a directory\n", 1},
     {"wc -l < /bin", "wc: -: is a directory\n       0\n", 1},
     {"echo a | wc -l - /bin", "wc: /bin: is a directory\n"
      "       1\n       0 /bin\n       1 total\n", 1},
     {"sort < /bin", "sort: -: is a directory\n", 1},
     {"sort - /dev/null < /bin", "sort: -: is a directory\n", 1},
     {"head < /bin", "head: -: is a directory\n", 1},
     {"grep x < /bin", "grep: -: is a directory\n", 2},
     {"sh /bin && echo ON", "sh: /bin: is a directory\n", 128},
     {"sh < /bin && echo ON", "sh: input: is a directory\n", 128})

CASE(no_compound_commands,
     {"echo no; for x in a b; do echo $x; done", "sh: for is not supported: "
      "no loops, no conditions but && and ||\n", 2},
     {"X=1 if true", "sh: if is not supported*", 2},
     {"true && while true", "sh: while is not supported*", 2},
     {"true | { cat", "sh: { is not supported*", 2},
     {"! true", "sh: ! is not supported*", 2},
     {"echo for if done", "for if done\n", 0},
     {"'for' x", "sh: for: not found*", 127})

CASE(sort,
     {"echo 10 > a; echo 9 >> a; echo -3 >> a; echo x >> a; sort a",
      "-3\n10\n9\nx\n", 0},
     {"sort -n a", "-3\nx\n9\n10\n", 0},
     {"sort -nr < a", "10\n9\nx\n-3\n", 0},
     {"sort /dev/null", "", 0})

CASE(directories,
     {"mkdir a", "", 0},
     {"mkdir a", "mkdir: a: exists already\n", 1},
     {"mkdir b/c", "mkdir: b/c: no such file or directory\n", 1},
     {"mkdir -p b/c/d a; find .", "*", 0},
     {"echo > a/f; mkdir -p a/f", "mkdir: a/f: exists already\n", 1},
     {"mkdir -p a/f/g", "mkdir: a/f: exists already\n", 1},
     {"echo > b/c/f; rm b", "rm: b: is a directory\n", 1},
     {"rm nothing", "rm: nothing: no such file or directory\n", 1},
     {"rm -f nothing", "", 0},
     {"rmdir b/c/d a b/c/f; ls b/c", "rmdir: a: directory not empty\n"
      "rmdir: b/c/f: not a directory\nf\n", 0},
     {"rmdir", "usage: rmdir DIRECTORY...\n", 2},
     {"umount b", "umount: b: no server's file system is mounted there\n", 1},
     {"rm -r a b; ls", "", 0},
     {"mkdir -p '' e/f; ls e", "mkdir: : no such file or directory\nf\n", 0},
     {"cd e; rm -r . .. ../e/. f/../ /",
      "rm: . cannot be removed\nrm: .. cannot be removed\n"
      "rm: ../e/. cannot be removed\nrm: f/../ cannot be removed\n"
      "rm: / cannot be removed\n", 1},
     {"rm -rf ''; find e; rm -r e/", "e\ne/f\n", 0},
     {"rm -r /proc 2> a; grep -c meminfo a; grep -c tasks a", "1\n1\n", 0},
     {"rm", "usage: rm [-fr] PATH...\n", 2})

CASE(names,
     {"echo x > a; mkdir d; mv a b; cat b", "x\n", 0},
     {"mv b d; ls; ls d", "d\nb\n", 0},
     {"echo y > c; echo z > e; mv c e d; ls d", "b\nc\ne\n", 0},
     {"mkdir f g; mv f/ g; mv g// d; ls d/g", "f\n", 0},
     {"ln d/b k; echo w > k; cat d/b", "w\n", 0},
     {"ln d/b k", "ln: d/b to k: exists already\n", 1},
     {"mv nothing d", "mv: nothing to d/nothing: no such file or directory\n",
      1},
     {"mv k d/b c", "mv: c is not a directory\n", 2},
     {"ln d", "usage: ln FILE NAME\n", 2})

CASE(cp,
     {"echo x > a; cp a b; cat b", "x\n", 0},
     {"mkdir d; cp a b d; ls d; echo y > a; cp -s a d; cat d/a d/b",
      "a\nb\ny\nx\n", 0},
     {"cp a a", "cp: a and a are the same file\n", 1},
     {"cp d/a d", "cp: d/a and d/a are the same file\n", 1},
     {"cat d/a", "y\n", 0},
     {"cp d e", "cp: d is a directory\n", 1},
     {"cp nothing e", "cp: nothing: no such file or directory\n", 1},
     {"cp a a/e", "cp: a/e: not a directory\n", 1},
     {"cp a b e", "cp: e is not a directory\n", 2},
     {"cp /bin/sh big; ls -l big /bin/sh | wc -l",
      "       2\n", 0},
     {"cp -x a b",
      "cp: unknown option -x\nusage: cp [-s] FROM TO | [-s] FROM... "
      "DIRECTORY\n",
      2})

CASE(find,
     {"mkdir -p x/y; echo > x/f.c; echo > x/y/g.c; find x -name '*.c' | sort",
      "x/f.c\nx/y/g.c\n", 0},
     {"find x -type d | sort", "x\nx/y\n", 0},
     {"find x// x/y/ -name '[xy]'", "x//\nx//y\nx/y/\n", 0},
     {"find x/f.c x/y -type f", "x/f.c\nx/y/g.c\n", 0},
     {"find / -name console -type c", "/dev/console\n", 0},
     {"find nothing", "find: nothing: no such file or directory\n", 1},
     {"find x -type q", "find: -type q: must be f, d or c\n", 2},
     {"find x -wrong", "usage: find [PATH...] [-name PATTERN] [-type f|d|c]\n",
      2})

CASE(file_and_stat,
     {"file /bin/ls /etc/motd /dev/null /",
      "/bin/ls: ELF program, 32 bits, i386\n/etc/motd: text\n"
      "/dev/null: device\n/: directory\n", 0},
     {"echo -n > e; file e", "e: empty\n", 0},
     {"file nothing", "file: nothing: no such file or directory\n", 1},
     {"echo abc > e; stat e", "e: file, inode *", 0},
     {"stat nothing", "stat: nothing: no such file or directory\n", 1})

CASE(proc,
     {"kmastat pipe_buffer", "CACHE *", 0},
     {"kmastat no_such", "kmastat: no cache matches no_such\n*", 1},
     {"free", "USE *", 0},
     {"uptime", "up 0 days 00:*", 0},
     {"ps | grep -c ' ps$'", "1\n", 0},
     {"ps x", "usage: ps\n", 2})

CASE(assignments,
     {"X=1 pwd; echo $X; X=2; X=3 X=4 pwd; echo $X",
      "/tmp/programs\n\n/tmp/programs\n2\n", 0},
     {"HOME=/bin cd; pwd; echo $HOME; Y=1 export Z=2; echo $Z",
      "/bin\n/home\n2\n", 0},
     {"X=1 Y=$X sh -c 'echo $X$Y'; echo $X", "11\n\n", 0})

CASE(redirections,
     {"cd /nowhere 2> a 3> b; qqqqq; wc -c < b",
      "sh: qqqqq: not found\n       0\n", 0},
     {"pwd 3>&1 > a; cat a", "/tmp/programs\n", 0},
     {"sh < /dev/null > a; cat a", "", 0})

CASE(patterns,
     {"echo > a1; echo > b1; echo > '[x'; echo [a-b]? [!a]1 [q] '[ab]'1 [x",
      "a1 b1 b1 [q] [ab]1 [x\n", 0},
     {"mkdir d; echo > d/a; echo > 'd/*'; echo [d]/[!a] d*/\\* */[\\*]",
      "d/* d/* d/*\n", 0})

CASE(suggestions,
     {"cta a", "sh: cta: not found; did you mean cat?\n", 127},
     {"exti", "sh: exti: not found; did you mean exit?\n", 127},
     {"quit", "sh: quit: not found; did you mean exit?\n", 127},
     {"dir", "sh: dir: not found; did you mean ls?\n", 127},
     {"kmastats", "sh: kmastats: not found; did you mean kmastat?\n", 127},
     {"mkdri x", "sh: mkdri: not found; did you mean mkdir?\n", 127},
     {"hackbnhc", "sh: hackbnhc: not found; did you mean hackbench?\n", 127},
     {"qqqqq", "sh: qqqqq: not found\n", 127},
     {"x", "sh: x: not found\n", 127},
     {"/bin/cta", "sh: /bin/cta: not found\n", 127},
     {"sl", "sh: sl: not found; did you mean ls?\n", 127},
     {"PATH=/nowhere; cta", "sh: cta: not found\n", 127})

CASE(sizes,
     {"hackbench -g 1 -f 1 -l 1 -s 1k", "hackbench: 1 groups of 1 + 1, "
      "1 messages of 1024 bytes *", 0},
     {"hackbench -s 1G", "hackbench: 1G: not a size from 1 to *", 2})

CASE(time_and_death,
     {"sleep 0.01", "", 0},
     {"sleep x", "usage: sleep SECONDS\n", 2},
     {"kill 99999", "kill: 99999: no such task\n", 1},
     {"kill x", "kill: x is not the number of a task\n", 2},
     {"kill -7", "usage: kill [-SIGNAL] PID...\n", 2},
     {"kill -- 99999", "kill: 99999: no such task\n", 1},
     {"kill -9 -99999", "kill: -99999: no such task\n", 1},
     {"kill -9 -- -99999", "kill: -99999: no such task\n", 1},
     {"kill --", "usage: kill [-SIGNAL] PID...\n", 2},
     {"kill", "usage: kill [-SIGNAL] PID...\n", 2})
/* clang-format on */

/* A redirection that cannot be undone is refused: the handle stays open. */
TEST(programs, no_handle_left)
{
    int status;

    crowded = true;
    status = run("cd /bin; pwd > /tmp/x; pwd");
    crowded = false;
    CHECK(status == 0 &&
          as_expected("sh: handle 1: too many open handles\n/bin\n"));
}
