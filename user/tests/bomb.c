/*
 * bomb: takes all that its session may have of a resource, and keeps it until
 * it is killed.
 *
 *     bomb tasks | pages | files | names | ports | mounts
 *
 * Files are in /tmp/bomb, many pages of few or many empty ones; mounts are on
 * /tmp/bomb0 and so on. It prints how many it got, and the error of the next.
 */
#include "kernel/abi/fs.h"
#include "user/lib/err.h"
#include "user/lib/ipc.h"
#include "user/lib/stdio.h"
#include "user/lib/string.h"
#include "user/lib/unistd.h"

#define FILE_PAGES 8192 /* half of what a file may have */

static char page[4096] = "x";

static void keep(void)
{
    for (;;)
        sleep_ms(1000000);
}

static bool take_task(unsigned n)
{
    pid_t pid = fork();

    (void)n;
    if (pid == 0)
        keep();
    return pid > 0;
}

static bool take_pages(unsigned n)
{
    char *p = mmap(16 * sizeof(page), PROT_READ | PROT_WRITE);

    (void)n;
    if (p == MAP_FAILED)
        return false;
    for (int i = 0; i < 16; i++)
        p[i * sizeof(page)] = 'x';
    return true;
}

static bool take_file_page(unsigned n)
{
    static int file = -1;
    char name[32];

    if (n % FILE_PAGES == 0) {
        if (file >= 0)
            close(file);
        snprintf(name, sizeof(name), "/tmp/bomb/%u", n / FILE_PAGES);
        file = open(name, O_WRONLY | O_CREAT);
    }
    return file >= 0 && write(file, page, sizeof(page)) == sizeof(page);
}

static bool take_name(unsigned n)
{
    char name[32];
    int file;

    snprintf(name, sizeof(name), "/tmp/bomb/%u", n);
    file = open(name, O_WRONLY | O_CREAT);
    if (file >= 0)
        close(file);
    return file >= 0;
}

static bool take_port(unsigned n)
{
    (void)n;
    return port_create() >= 0;
}

/* A file system that has nothing but its root. */
static void serve(int port)
{
    struct fs_stat all = {.fs_root = 1, .fs_kind = "bomb"};
    struct fs_attr root = {.attr_type = FILE_DIRECTORY, .attr_nlink = 2};
    struct ipc_buffer b = {.ipc_send = NULL};
    struct message m = {.msg_buffer = &b};

    while (ipc_receive(port, &m) == 0) {
        bool stat = IPC_LABEL(m.msg_tag) == FS_STAT;

        b.ipc_send = stat ? (void *)&all : &root;
        b.ipc_send_size = stat ? sizeof(all) : sizeof(root);
        m.msg_tag = IPC_DATA;
        m.msg_word[0] = 0;
        ipc_reply(m.msg_client, &m);
    }
}

static bool take_mount(unsigned n)
{
    static int port = -1;
    char name[32];

    if (n == 0) {
        port = port_create();
        if (fork() == 0)
            serve(port);
    }
    snprintf(name, sizeof(name), "/tmp/bomb%u", n);
    return mkdir(name) == 0 && mount(port, name) == 0;
}

static const struct {
    const char *name;
    bool (*take)(unsigned n);
} kinds[] = {
    {"tasks", take_task}, {"pages", take_pages}, {"files", take_file_page},
    {"names", take_name}, {"ports", take_port},  {"mounts", take_mount},
};

int main(int argc, char **argv)
{
    unsigned n = 0;

    mkdir("/tmp/bomb");
    for (size_t i = 0; argc == 2 && i < ARRAY_SIZE(kinds); i++) {
        if (strcmp(argv[1], kinds[i].name) != 0)
            continue;
        while (kinds[i].take(n))
            n++;
        printf("%u %s, then: %s\n", n, argv[1], strerror(errno));
        fflush(stdout);
        keep();
    }
    usage("tasks | pages | files | names | ports | mounts");
}
