/*
 * File systems served by a program, as other programs see them: every
 * operation on files, in a file system of memfs.
 */
#include "user/tests/usertests/test.h"
#include "user/lib/fs_server.h"
#include "user/lib/ipc.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

#define PIECE 200000 /* bytes: need several requests */

static pid_t memfs;

/* The kind of the file system that a path is in. */
static bool is_kind(const char *path, const char *kind)
{
    struct fs_stat st;

    return statfs(path, &st) == 0 && strcmp(st.fs_kind, kind) == 0;
}

/* memfs, mounted on a new directory as a file system of that kind. */
static pid_t start(const char *path, const char *kind)
{
    char *const argv[] = {"memfs", (char *)path, (char *)kind, NULL};
    pid_t pid;

    EQUAL(mkdir(path), 0);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        execv("/sbin/memfs", argv);
        _exit(127);
    }
    for (int i = 0; i < 1000 && !is_kind(path, kind); i++)
        sleep_ms(1);
    CHECK(is_kind(path, kind));
    return pid;
}

static void begin(void)
{
    memfs = start("m", "mem");
}

/* The server ends when it is unmounted. */
static void end(void)
{
    EQUAL(umount("m"), 0);
    expect_exit(memfs, 0);
    CHECK(!is_kind("m", "mem"));
}

/* ---- contents ----------------------------------------------------------- */

TEST(mount, contents)
{
    char buf[8] = "";
    int h;

    begin();
    make_file("m/a", "hello");
    CHECK(has_text("m/a", "hello"));
    h = open("m/a", O_RDWR | O_APPEND);
    CHECK(h >= 0);
    EQUAL(write(h, ", all", 5), 5);
    EQUAL(lseek(h, 1, SEEK_SET), 1);
    EQUAL(read(h, buf, 4), 4);
    EQUAL(memcmp(buf, "ello", 4), 0);
    EQUAL(ftruncate(h, 3), 0);
    EQUAL(stat_of("m/a").st_size, 3);
    EQUAL(lseek(h, 0, SEEK_END), 3);
    EQUAL(read(h, buf, 4), 0);
    EQUAL(lseek(h, 0, SEEK_SET), 0);
    FAILS(read(h, (char *)0x10, 4), EFAULT);
    FAILS(write(h, (char *)0x10, 4), EFAULT);
    CHECK(has_text("m/a", "hel"));
    EQUAL(close(h), 0);
    h = open("m/hole", O_RDWR | O_CREAT);
    EQUAL(lseek(h, 5000, SEEK_SET), 5000);
    EQUAL(write(h, "x", 1), 1);
    EQUAL(lseek(h, 4996, SEEK_SET), 4996);
    EQUAL(read(h, buf, 8), 5);
    EQUAL(memcmp(buf, "\0\0\0\0x", 5), 0);
    EQUAL(stat_of("m/hole").st_blocks, 2);
    EQUAL(stat_of("m/hole").st_device, 0);
    EQUAL(ftruncate(h, 9000), 0);
    EQUAL(stat_of("m/hole").st_blocks, 3);
    EQUAL(close(h), 0);
    end();
}

/* Invalid buffers, or too short ones: no byte is transferred. */
TEST(mount, buffers)
{
    char *page = mmap(4096, PROT_READ | PROT_WRITE);
    const uint32_t bad[] = {0,          0x10,       (uint32_t)page + 4096,
                            0xc0000000, 0xfffffffc, (uint32_t)page + 4092};
    int h, dir;

    begin();
    make_file("m/a", "hello, world");
    h = open("m/a", O_RDWR);
    dir = open("m", O_RDONLY);
    CHECK(page != MAP_FAILED && h >= 0 && dir >= 0);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        FAILS(read(h, (void *)bad[i], 12), EFAULT);
        FAILS(write(h, (void *)bad[i], 12), EFAULT);
        FAILS(getdents(dir, (void *)bad[i], 64), EFAULT);
        EQUAL(lseek(h, 0, SEEK_CUR), 0);
        EQUAL(lseek(dir, 0, SEEK_CUR), 0);
    }
    FAILS(read(h, (void *)mount_buffers, 12), EFAULT); /* the program's text */
    CHECK(has_text("m/a", "hello, world"));
    EQUAL(close(h), 0);
    EQUAL(close(dir), 0);
    end();
}

/* More bytes than a message can have. */
TEST(mount, large)
{
    uint8_t *out = malloc(PIECE);
    uint8_t *in = malloc(PIECE + 1);
    int h;

    CHECK(out != NULL && in != NULL);
    begin();
    for (uint32_t i = 0; i < PIECE; i++)
        out[i] = (uint8_t)(i * 7 + (i >> 8));
    h = open("m/large", O_RDWR | O_CREAT);
    CHECK(h >= 0);
    EQUAL(write(h, out, PIECE), PIECE);
    EQUAL(fsync(h), 0);
    EQUAL(lseek(h, 0, SEEK_SET), 0);
    EQUAL(read(h, in, PIECE + 1), PIECE);
    EQUAL(memcmp(in, out, PIECE), 0);
    EQUAL(lseek(h, 65530, SEEK_SET), 65530);
    EQUAL(read(h, in, 70001), 70001);
    EQUAL(memcmp(in, out + 65530, 70001), 0);
    EQUAL(close(h), 0);
    end();
}

/* A file without a name exists until its last user has closed it; then the
 * server gets a release. */
TEST(mount, unlinked)
{
    struct fs_stat st;
    char buf[8];
    int h;

    begin();
    make_file("m/a", "still");
    h = open("m/a", O_RDONLY);
    CHECK(h >= 0);
    EQUAL(unlink("m/a"), 0);
    FAILS(open("m/a", O_RDONLY), ENOENT);
    EQUAL(read(h, buf, 8), 5);
    EQUAL(statfs("m", &st), 0);
    EQUAL(st.fs_blocks - st.fs_blocks_free, 5);
    EQUAL(close(h), 0);
    EQUAL(statfs("m", &st), 0);
    EQUAL(st.fs_blocks_free, st.fs_blocks);
    end();
}

/* ---- the tree ----------------------------------------------------------- */

TEST(mount, tree)
{
    begin();
    EQUAL(mkdir("m/d"), 0);
    FAILS(mkdir("m/d"), EEXIST);
    EQUAL(mkdir("m/d/e"), 0);
    EQUAL(stat_of("m").st_nlink, 3);
    EQUAL(stat_of("m/d").st_nlink, 3);
    make_file("m/d/e/f", "f");
    FAILS(rmdir("m/d"), ENOTEMPTY);
    FAILS(unlink("m/d"), EISDIR);
    FAILS(rmdir("m/d/e/f"), ENOTDIR);
    FAILS(open("m/d/e/f/g", O_RDONLY), ENOTDIR);
    EQUAL(link("m/d/e/f", "m/g"), 0);
    EQUAL(stat_of("m/g").st_nlink, 2);
    EQUAL(stat_of("m/g").st_ino, stat_of("m/d/e/f").st_ino);
    EQUAL(unlink("m/d/e/f"), 0);
    EQUAL(stat_of("m/g").st_nlink, 1);
    EQUAL(rmdir("m/d/e"), 0);
    EQUAL(stat_of("m/d").st_nlink, 2);
    EQUAL(rmdir("m/d"), 0);
    FAILS(rmdir("m/d"), ENOENT);
    EQUAL(unlink("m/g"), 0);
    EQUAL(stat_of("m").st_nlink, 2);
    end();
}

TEST(mount, rename)
{
    begin();
    EQUAL(mkdir("m/a"), 0);
    EQUAL(mkdir("m/b"), 0);
    make_file("m/a/f", "one");
    make_file("m/b/g", "two");
    EQUAL(rename("m/a/f", "m/b/g"), 0);
    CHECK(has_text("m/b/g", "one"));
    FAILS(open("m/a/f", O_RDONLY), ENOENT);
    FAILS(rename("m/a", "m/b"), ENOTEMPTY);
    FAILS(rename("m/b", "m/b/c"), EINVAL);
    FAILS(rename("m/b/g", "m/a"), EISDIR);
    FAILS(rename("m/a", "m/b/g"), ENOTDIR);
    EQUAL(rename("m/b", "m/a/b"), 0);
    EQUAL(stat_of("m").st_nlink, 3);
    EQUAL(stat_of("m/a").st_nlink, 3);
    CHECK(has_text("m/a/b/g", "one"));
    EQUAL(mkdir("m/c"), 0);
    EQUAL(rename("m/a/b", "m/c"), 0);
    EQUAL(stat_of("m/c/..").st_ino, stat_of("m").st_ino);
    CHECK(has_text("m/c/g", "one"));
    end();
}

TEST(mount, names)
{
    char path[80] = "m/";
    size_t n = strlen(path);

    begin();
    memset(path + n, 'n', NAME_MAX);
    path[n + NAME_MAX] = 0;
    make_file(path, "long");
    CHECK(has_text(path, "long"));
    EQUAL(unlink(path), 0);
    strlcat(path, "n", sizeof(path));
    FAILS(open(path, O_WRONLY | O_CREAT), ENAMETOOLONG);
    FAILS(mkdir("m/."), EEXIST);
    FAILS(rmdir("m/.."), EINVAL);
    end();
}

/* Each is seen once, whatever is removed meanwhile. */
TEST(mount, entries)
{
    uint32_t room[32], seen[3] = {0};
    char path[16];
    unsigned files = 0, dots = 0;
    ssize_t n;
    int h;

    begin();
    for (unsigned i = 0; i < 90; i++) {
        snprintf(path, sizeof(path), "m/%u", i);
        make_file(path, "");
    }
    h = open("m", O_RDONLY);
    CHECK(h >= 0);
    FAILS(getdents(h, room, 8), EINVAL);
    while ((n = getdents(h, room, sizeof(room))) > 0)
        for (char *at = (char *)room; at < (char *)room + n;) {
            const struct dirent *d = (const void *)at;
            unsigned i = 0;

            for (const char *c = d->d_name; *c >= '0' && *c <= '9'; c++)
                i = i * 10 + (unsigned)(*c - '0');
            at += d->d_reclen;
            if (d->d_name[0] == '.') {
                dots++;
                continue;
            }
            CHECK(i < 90 && (seen[i / 32] >> i % 32 & 1) == 0);
            seen[i / 32] |= 1u << i % 32;
            files++;
            snprintf(path, sizeof(path), "m/%u", i);
            EQUAL(unlink(path), 0);
        }
    EQUAL(n, 0);
    EQUAL(files, 90);
    EQUAL(dots, 2);
    EQUAL(close(h), 0);
    end();
}

/* ---- with other file systems -------------------------------------------- */

TEST(mount, paths)
{
    char here[PATH_MAX], there[PATH_MAX];

    begin();
    EQUAL(mkdir("m/d"), 0);
    CHECK(getcwd(here, sizeof(here)) > 0);
    EQUAL(chdir("m/d"), 0);
    CHECK(getcwd(there, sizeof(there)) > 0);
    strlcat(here, "/m/d", sizeof(here));
    EQUAL(strcmp(here, there), 0);
    make_file("../f", "up");
    CHECK(has_text("../../m/f", "up"));
    FAILS(umount("../../m"), EBUSY);
    EQUAL(chdir("../.."), 0);
    CHECK(stat_of("m").st_fs != stat_of(".").st_fs);
    end();
}

TEST(mount, across)
{
    begin();
    make_file("m/a", "a");
    make_file("b", "b");
    FAILS(rename("m/a", "a"), EXDEV);
    FAILS(rename("b", "m/b"), EXDEV);
    FAILS(link("b", "m/b"), EXDEV);
    FAILS(rmdir("m"), EBUSY);
    FAILS(rename("m", "n"), EBUSY);
    end();
}

TEST(mount, busy)
{
    int h;

    begin();
    make_file("m/a", "a");
    h = open("m/a", O_RDONLY);
    CHECK(h >= 0);
    FAILS(umount("m"), EBUSY);
    EQUAL(close(h), 0);
    h = open("m", O_RDONLY);
    CHECK(h >= 0);
    FAILS(umount("m"), EBUSY);
    EQUAL(close(h), 0);
    FAILS(umount("m/a"), EINVAL);
    FAILS(umount("/proc"), EINVAL);
    FAILS(umount("/"), EINVAL);
    FAILS(umount("n"), ENOENT);
    end();
    FAILS(umount("m"), EINVAL);
}

/* One file system mounted in another. */
TEST(mount, nested)
{
    pid_t inner;

    begin();
    inner = start("m/d", "inner");
    make_file("m/d/f", "inside");
    CHECK(stat_of("m/d").st_fs != stat_of("m").st_fs);
    CHECK(has_text("m/d/../d/f", "inside"));
    FAILS(umount("m"), EBUSY);
    FAILS(rmdir("m/d"), EBUSY);
    FAILS(rename("m/d", "m/e"), EBUSY);
    FAILS(rename("m/d/f", "m/f"), EXDEV);
    EQUAL(umount("m/d"), 0);
    expect_exit(inner, 0);
    FAILS(open("m/d/f", O_RDONLY), ENOENT);
    end();
}

static void copy(const char *from, const char *to)
{
    static char buf[8192];
    int in = open(from, O_RDONLY);
    int out = open(to, O_WRONLY | O_CREAT);
    ssize_t n;

    CHECK(in >= 0 && out >= 0);
    while ((n = read(in, buf, sizeof(buf))) > 0)
        EQUAL(write_all(out, buf, (size_t)n), 0);
    EQUAL(n, 0);
    EQUAL(close(in), 0);
    EQUAL(close(out), 0);
}

TEST(mount, exec)
{
    char *const argv[] = {"true", NULL};
    pid_t pid;

    begin();
    copy("/bin/true", "m/true");
    make_file("m/none", "no program");
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        FAILS(execv("m/none", argv), ENOEXEC);
        execv("m/true", argv);
        _exit(3);
    }
    expect_exit(pid, 0);
    end();
}

TEST(mount, sync)
{
    struct fs_stat st;
    int ends[2];
    int h;

    begin();
    EQUAL(sync(), 0);
    h = open("m/a", O_WRONLY | O_CREAT);
    EQUAL(fsync(h), 0);
    EQUAL(close(h), 0);
    h = open(".", O_RDONLY);
    EQUAL(fsync(h), 0);
    EQUAL(close(h), 0);
    FAILS(fsync(h), EBADF);
    make_pipe(ends);
    FAILS(fsync(ends[1]), EINVAL);
    EQUAL(statfs("/", &st), 0);
    EQUAL(strcmp(st.fs_kind, "ram"), 0);
    CHECK(st.fs_blocks > st.fs_blocks_free && st.fs_block_size == 4096);
    EQUAL(statfs("/proc/tasks", &st), 0);
    EQUAL(strcmp(st.fs_kind, "proc"), 0);
    FAILS(statfs("n", &st), ENOENT);
    FAILS(statfs("m", (void *)0x10), EFAULT);
    FAILS(statfs("m", (void *)0xc0000000), EFAULT);
    end();
}

/* Ports and paths that cannot be mounted. */
TEST(mount, errors)
{
    int port = port_create();

    CHECK(port >= 0);
    EQUAL(mkdir("d"), 0);
    make_file("f", "");
    FAILS(mount(-1, "d"), EBADF);
    FAILS(mount(STDOUT_FILENO, "d"), EBADF);
    FAILS(mount(port, "n"), ENOENT);
    FAILS(mount(port, (char *)0x10), EFAULT);
    FAILS(mount(port, "f"), ENOTDIR);
    FAILS(mount(port, "d"),
          EDEADLK); /* the caller would have to reply to itself */
    EQUAL(close(port), 0);
}

/* On a directory with a mounted file system whose server is alive. */
TEST(mount, twice)
{
    char *const argv[] = {"memfs", "m", NULL};
    pid_t pid;
    int status;

    begin();
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        close(STDERR_FILENO);
        execv("/sbin/memfs", argv);
        _exit(127);
    }
    EQUAL(waitpid(pid, &status, 0), pid);
    EQUAL(WEXITSTATUS(status), 1);
    make_file("m/a", "works on");
    CHECK(has_text("m/a", "works on"));
    end();
}

/* Several programs at once. */
static void work(int arg)
{
    char path[16], text[16];

    for (int i = 0; i < 20; i++) {
        snprintf(path, sizeof(path), "m/%d", arg * 100 + i);
        snprintf(text, sizeof(text), "text %d %d", arg, i);
        make_file(path, text);
        yield();
        CHECK(has_text(path, text));
        if (i % 2 == 0)
            EQUAL(unlink(path), 0);
    }
}

TEST(mount, together)
{
    pid_t pids[4];

    begin();
    for (int i = 0; i < 4; i++)
        pids[i] = spawn(work, i);
    for (int i = 0; i < 4; i++)
        expect_exit(pids[i], 0);
    end();
}

/* ---- a server by fs_serve ------------------------------------------------ */

/* The reply's number of files is the number of the server's next handle. */
static int ghost_stat(void *fs, struct fs_stat *out)
{
    int next = dup(STDOUT_FILENO);

    (void)fs;
    *out = (struct fs_stat){
        .fs_root = 1, .fs_files = (uint32_t)next, .fs_kind = "ghost"};
    close(next);
    return 0;
}

static int ghost_inode(void *fs, uint32_t file, struct fs_attr *out)
{
    (void)fs, (void)file;
    *out = (struct fs_attr){.attr_type = FILE_DIRECTORY, .attr_nlink = 2};
    return 0;
}

static int ghost_lookup(void *fs, uint32_t dir, const char *name,
                        uint32_t *file)
{
    (void)fs, (void)dir, (void)name, (void)file;
    return -ENOENT;
}

static ssize_t ghost_getdents(void *fs, uint32_t dir, uint32_t *offset,
                              void *buf, size_t n)
{
    (void)fs, (void)dir;
    if ((*offset)++ > 0)
        return 0;
    return (ssize_t)dirent_store(buf, n, 2, FILE_REGULAR, "ghost", 5);
}

/* A file system whose only entry has no file. */
static void ghost_run(int port)
{
    static const struct fs_functions functions = {
        .fs_stat = ghost_stat,
        .fs_inode = ghost_inode,
        .fs_lookup = ghost_lookup,
        .fs_getdents = ghost_getdents,
    };

    _exit(fs_serve(port, NULL, &functions, NULL) < 0);
}

/* fs_files in the reply to a request that has a handle. */
static uint32_t stat_with_handle(int port)
{
    struct fs_stat st = {0};
    struct ipc_buffer b = {
        .ipc_receive = &st,
        .ipc_receive_max = sizeof(st),
        .ipc_send_handle = STDOUT_FILENO,
    };
    struct message m = {.msg_tag = FS_STAT | IPC_HANDLE, .msg_buffer = &b};

    EQUAL(ipc_call(port, &m), 0);
    return st.fs_files;
}

TEST(mount, handles)
{
    int port;
    pid_t server = spawn_server(ghost_run, &port);
    uint32_t next = stat_with_handle(port);

    EQUAL(stat_with_handle(port), next);
    EQUAL(close(port), 0);
    expect_killed(server);
}

/* rm -r ends, though it removes nothing. */
TEST(mount, ghost)
{
    char *const argv[] = {"rm", "-rf", "m", NULL};
    int port;
    pid_t server = spawn_server(ghost_run, &port);
    pid_t rm;

    EQUAL(mkdir("m"), 0);
    EQUAL(mount(port, "m"), 0);
    rm = fork();
    if (rm == 0) {
        close(STDERR_FILENO);
        execvp("rm", argv);
        _exit(127);
    }
    expect_exit(rm, 1);
    EQUAL(close(port), 0);
    expect_killed(server);
    EQUAL(umount("m"), 0);
}
