/*
 * Servers and drivers: grants from the manifest, and the system call by which a
 * task takes one.
 *
 *     /etc/servers ──> manifest_read ──> a stanza ──> path_lookup, inode_seal
 *                                                 ──> grant_create
 *
 * This happens once, before any program runs. The programs that it names, the
 * file itself, and what the kernel and init open later are sealed and kept,
 * with the directories that lead to them. So a path that was trusted at boot is
 * the same file for ever.
 */
#include "kernel/syscall/servers.h"
#include "kernel/lib/printf.h"
#include "kernel/fs/inode.h"
#include "kernel/fs/path.h"
#include "kernel/lib/string.h"
#include "kernel/syscall/syscall.h"
#include "kernel/object/grant.h"
#include "mm/kmem.h"
#include "mm/page.h"

#define MANIFEST     "/etc/servers"
#define INIT         "/sbin/init"
#define MANIFEST_MAX KIB(64)

/* What the kernel, init and sh open by name. */
static const char *const opened_later[] = {"/dev/console", "/dev/debug",
                                           "/dev/null"};

static struct inode *init;

const struct inode *servers_init_program(void)
{
    return init;
}

/* ---- the manifest ------------------------------------------------------- */

/* Whether any of that memory is RAM. */
static bool is_ram(const struct manifest_range *range)
{
    for (size_t i = range->range_first >> PAGE_SHIFT;
         i <= range->range_last >> PAGE_SHIFT && i < page_count; i++)
        if (page_array[i].page_state != PAGE_RESERVED)
            return true;
    return false;
}

/* Seals and keeps what is at `path`; NULL: there is nothing. */
static struct inode *seal(const char *path)
{
    struct inode *inode;

    if (path_lookup(path, NULL, &inode) != 0)
        return NULL;
    inode_seal(inode);
    return inode;
}

/* The same, and before it the directories that lead there. */
static struct inode *seal_path(const char *path)
{
    char upto[MANIFEST_COMMAND_MAX + 1];

    for (const char *end = path; (end = strchr(end + 1, '/')) != NULL;) {
        strlcpy(upto, path, (size_t)(end - path) + 1);
        seal(upto);
    }
    return seal(path);
}

/* The program at `path`, sealed, with a reference; NULL: not a program. */
static struct inode *seal_program(const char *path)
{
    struct inode *inode;
    bool regular;

    if (path_lookup(path, NULL, &inode) != 0)
        return NULL;
    regular = inode->inode_type == FILE_REGULAR;
    inode_put(inode);
    return regular ? seal_path(path) : NULL;
}

static const char *take_stanza(const struct manifest_server *s,
                               void *arg UNUSED)
{
    char path[sizeof(s->server_command)];
    struct inode *program;

    if (grant_find(s->server_name) != NULL)
        return "a server of that name precedes it";
    for (unsigned i = 0; i < s->server_memories; i++)
        if (is_ram(&s->server_memory[i]))
            return "its memory range contains RAM";
    strlcpy(path, s->server_command, (size_t)manifest_path_length(s) + 1);
    program = seal_program(path); /* which may be missing */
    if (grant_create(s, program) == NULL) {
        inode_put(program);
        return "not enough memory for its grant";
    }
    return NULL;
}

static void report_line(unsigned line, const char *what, void *arg UNUSED)
{
    kprintf("%s:%u: %s\n", MANIFEST, line, what);
}

unsigned servers_read(const char *text, size_t n)
{
    static const struct manifest_reader reader = {take_stanza, report_line,
                                                  NULL};

    return manifest_read(text, n, &reader);
}

/* Reads the manifest; returns what is wrong with it. */
static const char *read_manifest(void)
{
    struct inode *inode = seal_path(MANIFEST);
    size_t size = inode == NULL ? 0 : inode->inode_size;
    char *text;
    ssize_t n;

    if (size == 0)
        return NULL;
    if (size > MANIFEST_MAX)
        return "larger than 64 KiB";
    text = kmem_alloc(size, KM_NOSLEEP);
    if (text == NULL)
        return "not enough memory to read it";
    n = inode_read(inode, 0, text, size);
    if (n > 0)
        servers_read(text, (size_t)n);
    kmem_free(text, size);
    return n < 0 ? "not a file" : NULL;
}

void servers_init(void)
{
    const char *wrong;

    for (size_t i = 0; i < ARRAY_SIZE(opened_later); i++)
        seal_path(opened_later[i]);
    init = seal_program(INIT);
    wrong = read_manifest();
    if (wrong != NULL)
        kprintf("%s: %s\n", MANIFEST, wrong);
}

const char *servers_verify(const char **where)
{
    static struct grant_stat st;

    for (size_t n = 0; grant_stat(n, &st); n++) {
        const struct grant *g = grant_find(st.stat_server.server_name);

        *where = st.stat_server.server_name;
        if (g->grant_program != NULL && !g->grant_program->inode_sealed)
            return "a server's program is not sealed";
    }
    return grant_verify(where);
}

/* ---- grant_take --------------------------------------------------------- */

/* grant_take(name): EPERM, ENOENT, EBUSY, EFAULT, ENAMETOOLONG.
 * grant_take(NULL) only drops the privilege. */
int32_t sys_grant_take(uint32_t name, NO_BC)
{
    struct task *self = task_self();
    char text[MANIFEST_NAME_MAX + 1];
    struct grant *g;
    int error;

    if (name == 0) {
        self->task_privileged = false;
        return 0;
    }
    if (!self->task_privileged)
        return -EPERM;
    error =
        copy_string_from_user(text, (const char __user *)name, sizeof(text));
    if (error < 0)
        return error;
    g = grant_find(text);
    if (g == NULL || g->grant_program == NULL)
        return -ENOENT;
    error = grant_take(g, self);
    if (error == 0)
        self->task_privileged = false;
    return error;
}
