/*
 * Grants: taking them, when they are in force, the map of ports, sealed
 * programs, grant_take, the manifest; and whether `verify` finds damage. Memory
 * granted is tested in test_grant_memory.c.
 *
 * Tests: kernel/object/grant.c, kernel/task/io_map.c
 */
#include "kernel/fs/file.h"
#include "kernel/fs/directory.h"
#include "kernel/fs/path.h"
#include "kernel/lib/string.h"
#include "kernel/object/tests/grant_test.h"
#include "kernel/syscall/process.h"
#include "kernel/syscall/servers.h"
#include "kernel/x86/gdt.h"
#include "tools/workshop/stress/fail.h"

#define OUTER 0x100u /* a port that is not granted */

static struct grant *g, *h;

/* ---- taking ------------------------------------------------------------- */

/* Steps of actors that test their rights. */
static int32_t has_irq(uint32_t line, uint32_t b, uint32_t c_)
{
    (void)b, (void)c_;
    return grant_has_irq(line);
}

static int32_t has_memory(uint32_t first, uint32_t bytes, uint32_t c_)
{
    (void)c_;
    return grant_has_memory(first, bytes);
}

static int32_t has_dma(uint32_t a, uint32_t b, uint32_t c_)
{
    (void)a, (void)b, (void)c_;
    return (int32_t)grant_dma_pages();
}

KTEST(grant, one_task_at_a_time)
{
    begin(1);
    g = make(&rights_a);
    h = make(&rights_b);
    KT_TRUE(grant_find("test-a") == g && grant_find("test-b") == h);
    KT_TRUE(grant_find("test-") == NULL && grant_find("") == NULL);
    KT_EQ(grant_take(g, s.actor_task), 0);
    KT_EQ(grant_take(g, c.actor_task), -EBUSY);
    KT_EQ(grant_take(g, s.actor_task), -EBUSY);
    KT_EQ(grant_take(h, s.actor_task), -EPERM);
    KT_SOUND(servers_verify);
    grant_drop(s.actor_task);
    grant_drop(s.actor_task); /* nothing to drop */
    KT_EQ(grant_take(g, c.actor_task), 0);
    KT_SOUND(servers_verify);
    take_back(&c, g);
    take_back(&s, h);
    KT_TRUE(grant_find("test-a") == NULL);
    KT_SOUND(servers_verify);
}

KTEST(grant, in_force_with_its_program_only)
{
    struct inode *other = path_root() + 1; /* not looked into */

    begin(0);
    g = make(&rights_a);
    KT_EQ(actor_result(&s, has_irq, 5, 0, 0), 0);
    KT_TRUE(!grant_exec(s.actor_task, path_root()));
    KT_EQ(grant_take(g, s.actor_task), 0);
    KT_EQ(actor_result(&s, has_irq, 5, 0, 0), 0); /* taken, not in force */
    KT_EQ(actor_result(&s, has_memory, HOLE, 1, 0), 0);
    KT_EQ(actor_result(&s, has_dma, 0, 0, 0), 0);
    KT_TRUE(s.actor_task->task_ports == NULL);
    KT_TRUE(!grant_exec(s.actor_task, other));
    KT_TRUE(s.actor_task->task_grant == NULL && g->grant_task == NULL);
    give(g, &s);
    KT_EQ(actor_result(&s, has_irq, 5, 0, 0), 1);
    KT_TRUE(grant_exec(s.actor_task, path_root())); /* once more */
    KT_EQ(actor_result(&s, has_irq, 5, 0, 0), 1);
    KT_TRUE(!grant_exec(s.actor_task, other));
    KT_EQ(actor_result(&s, has_irq, 5, 0, 0), 0);
    KT_TRUE(s.actor_task->task_ports == NULL);
    take_back(&s, g);
    KT_SOUND(servers_verify);
}

KTEST(grant, exactly_the_granted_parts)
{
    begin(1);
    g = make(&rights_a);
    give(g, &s);
    for (uint32_t line = 0; line < 40; line++)
        KT_EQ(actor_result(&s, has_irq, line, 0, 0), line == 5);
    KT_EQ(actor_result(&c, has_irq, 5, 0, 0), 0);
    KT_EQ(actor_result(&s, has_memory, HOLE, 2 * PAGE_SIZE, 0), 1);
    KT_EQ(actor_result(&s, has_memory, HOLE, 2 * PAGE_SIZE + 1, 0), 0);
    KT_EQ(actor_result(&s, has_memory, HOLE, UINT32_MAX, 0), 0);
    KT_EQ(actor_result(&s, has_memory, HOLE - PAGE_SIZE, PAGE_SIZE, 0), 0);
    KT_EQ(actor_result(&s, has_memory, HOLE + PAGE_SIZE, PAGE_SIZE, 0), 1);
    KT_EQ(actor_result(&s, has_memory, HOLE + PAGE_SIZE, PAGE_SIZE + 1, 0), 0);
    KT_EQ(actor_result(&s, has_memory, HOLE + 2 * PAGE_SIZE, 1, 0), 0);
    KT_EQ(actor_result(&c, has_memory, HOLE, 1, 0), 0);
    KT_EQ(actor_result(&s, has_dma, 0, 0, 0), DMA_MAX);
    KT_EQ(actor_result(&c, has_dma, 0, 0, 0), 0);
    take_back(&s, g);
}

/* ---- the map of ports --------------------------------------------------- */

/* The number of ports that the caller may use now; 0 if not `port`. */
static int32_t may_use(uint32_t port, uint32_t b, uint32_t c_)
{
    (void)b, (void)c_;
    if (!gdt_ports_are_on() || !gdt_port_allowed(port))
        return 0;
    return (int32_t)gdt_ports_allowed();
}

KTEST(grant, each_task_has_its_own_ports)
{
    begin(2);
    g = make(&rights_a);
    h = make(&rights_b);
    give(g, &s);
    give(h, &c);
    KT_TRUE(!gdt_ports_are_on()); /* of this task */
    for (int i = 0; i < 3; i++) {
        KT_EQ(actor_result(&s, may_use, 0x300, 0, 0), 9);
        KT_EQ(actor_result(&d, may_use, 0x300, 0, 0), 0);
        KT_EQ(actor_result(&s, may_use, 0x318, 0, 0), 9);
        KT_EQ(actor_result(&c, may_use, 0x400, 0, 0), 0xfc);
        KT_EQ(actor_result(&c, may_use, 0x305, 0, 0), 0xfc);
        KT_SOUND(servers_verify);
    }
    for (uint32_t port = 0x2ff; port < 0x31a; port++)
        KT_EQ(actor_result(&s, may_use, port, 0, 0) != 0,
              (port >= 0x300 && port <= 0x307) || port == 0x318);
    KT_EQ(actor_result(&c, may_use, 0x304, 0, 0), 0);
    KT_EQ(actor_result(&c, may_use, 0x401, 0, 0), 0);
    KT_TRUE(!gdt_ports_are_on());
    grant_drop(s.actor_task);
    KT_EQ(actor_result(&s, may_use, 0x300, 0, 0), 0);
    KT_EQ(actor_result(&c, may_use, 0x305, 0, 0), 0xfc);
    take_back(&c, h);
    KT_EQ(gdt_ports_allowed(), 0); /* they went with the grant */
    take_back(&s, g);
    actor_end(&d);
    KT_SOUND(servers_verify);
}

KTEST(grant, the_map_reaches_from_end_to_end)
{
    struct manifest_server rights = rights_none;

    begin(0);
    rights.server_ports = 2;
    rights.server_port[0] = (struct manifest_range){0, 0};
    rights.server_port[1] = (struct manifest_range){0xfffe, 0xffff};
    g = make(&rights);
    give(g, &s);
    KT_EQ(actor_result(&s, may_use, 0, 0, 0), 3);
    KT_EQ(actor_result(&s, may_use, 0xffff, 0, 0), 3);
    KT_EQ(actor_result(&s, may_use, 1, 0, 0), 0);
    KT_EQ(gdt_tss.tss_ports[GDT_PORTS / 8], 0xff); /* what the processor
                                                      reads past its end */
    KT_SOUND(servers_verify);
    take_back(&s, g);
}

static int32_t drop_own(uint32_t a, uint32_t b, uint32_t c_)
{
    (void)a, (void)b, (void)c_;
    grant_drop(task_self());
    return gdt_ports_are_on();
}

static int32_t exec_own(uint32_t a, uint32_t b, uint32_t c_)
{
    (void)a, (void)b, (void)c_;
    return grant_exec(task_self(), path_root()) && gdt_ports_are_on();
}

KTEST(grant, ports_come_and_go_at_once)
{
    begin(0);
    g = make(&rights_a);
    KT_EQ(grant_take(g, s.actor_task), 0);
    KT_EQ(actor_result(&s, may_use, 0x300, 0, 0), 0);
    KT_EQ(actor_result(&s, exec_own, 0, 0, 0), 1);
    KT_EQ(actor_result(&s, may_use, 0x300, 0, 0), 9);
    KT_EQ(actor_result(&s, drop_own, 0, 0, 0), 0);
    KT_EQ(actor_result(&s, may_use, 0x300, 0, 0), 0);
    take_back(&s, g);
}

/* ---- taking a grant ----------------------------------------------------- */

static int take(struct actor *a, const char *name)
{
    memcpy(actor_memory(a, ACTOR_SEND), name, strlen(name) + 1);
    return actor_result(a, sys_grant_take, ACTOR_SEND, 0, 0);
}

KTEST(grant, take)
{
    begin(1);
    g = make(&rights_a);
    h = actor_grant(&rights_b, NULL);
    KT_EQ(take(&s, "test-a"), -EPERM);
    KT_EQ(actor_result(&s, sys_grant_take, ACTOR_HOLE, 0, 0), -EPERM);
    KT_EQ(actor_result(&s, sys_grant_take, 0, 0, 0), 0);
    s.actor_task->task_privileged = c.actor_task->task_privileged = true;
    KT_EQ(take(&s, "test-x"), -ENOENT);
    KT_EQ(take(&s, ""), -ENOENT);
    KT_EQ(take(&s, "test-b"), -ENOENT); /* no program */
    KT_EQ(take(&s, "1234567890123456"), -ENAMETOOLONG);
    KT_EQ(actor_result(&s, sys_grant_take, ACTOR_HOLE, 0, 0), -EFAULT);
    KT_EQ(actor_result(&s, sys_grant_take, 0xc0100000, 0, 0), -EFAULT);
    KT_TRUE(s.actor_task->task_privileged);
    KT_EQ(take(&s, "test-a"), 0);
    KT_TRUE(!s.actor_task->task_privileged && s.actor_task->task_grant == g);
    KT_EQ(actor_result(&s, has_irq, 5, 0, 0), 0);
    KT_EQ(take(&s, "test-a"), -EPERM);
    KT_EQ(take(&c, "test-a"), -EBUSY);
    KT_TRUE(c.actor_task->task_privileged);
    grant_drop(s.actor_task);
    KT_EQ(take(&c, "test-a"), 0);
    KT_EQ(actor_result(&s, sys_grant_take, 0, 0, 0), 0);
    s.actor_task->task_privileged = true;
    KT_EQ(actor_result(&s, sys_grant_take, 0, 0, 0), 0); /* NULL: only that */
    KT_TRUE(!s.actor_task->task_privileged);
    take_back(&c, g);
    take_back(&s, h);
}

/* ---- sealed files ------------------------------------------------------- */

#define PATH "/tmp/sealed"

static int open_file(uint32_t flags)
{
    struct file *f;
    int result = file_open(PATH, NULL, flags, &f);

    if (result == 0)
        object_put(&f->file_object);
    return result;
}

KTEST(grant, a_sealed_file_keeps_contents_and_name)
{
    struct inode *inode;

    KT_EQ(open_file(O_WRONLY | O_CREAT), 0);
    KT_REQUIRE(path_lookup(PATH, NULL, &inode) == 0);
    KT_EQ(open_file(O_RDWR), 0);
    inode_seal(inode);
    KT_EQ(open_file(O_RDONLY), 0);
    KT_EQ(open_file(O_WRONLY), -EPERM);
    KT_EQ(open_file(O_RDWR), -EPERM);
    KT_EQ(open_file(O_RDWR | O_TRUNC), -EPERM);
    KT_EQ(open_file(O_WRONLY | O_CREAT | O_APPEND), -EPERM);
    KT_EQ(fs_link(PATH, PATH "2", NULL), -EPERM);
    KT_EQ(fs_unlink(PATH, NULL), -EPERM);
    KT_EQ(fs_rename(PATH, PATH "2", NULL), -EPERM);
    KT_EQ(fs_rename("/etc/motd", PATH, NULL), -EPERM);
    inode->inode_sealed = false;
    inode_put(inode);
    KT_EQ(fs_unlink(PATH, NULL), 0);
}

KTEST(grant, servers_are_sealed)
{
    struct grant_stat st;
    struct inode *inode;
    unsigned programs = 0;

    for (size_t n = 0; grant_stat(n, &st); n++) {
        const struct grant *found = grant_find(st.stat_server.server_name);

        KT_REQUIRE(found != NULL);
        programs += st.stat_program;
        KT_EQ(found->grant_program != NULL, st.stat_program);
        if (st.stat_program)
            KT_TRUE(found->grant_program->inode_sealed);
    }
    KT_GE(programs, 1);
    KT_REQUIRE(path_lookup("/sbin/init", NULL, &inode) == 0);
    KT_TRUE(inode->inode_sealed);
    inode_put(inode);
}

/* ---- how programs begin ------------------------------------------------- */

static uint32_t fail_nth; /* request for memory when a program is started */
static bool failed;

/* Starts a program and ends it before it runs. Returns its pid, or an error;
 * *privileged: whether the program was. */
static pid_t spawn(struct process_start start, bool *privileged)
{
    static const char *const words[] = {"x", NULL};
    const struct task *t;
    int status = 0;
    pid_t pid;

    start.start_argv = words;
    if (file_open("/dev/null", NULL, O_RDWR, &start.start_console) != 0)
        return -ENODEV;
    kmem_fail_set(fail_nth != 0 ? KMEM_FAIL_SLAB : KMEM_FAIL_NONE, fail_nth);
    pid = process_spawn(&start);
    failed = kmem_fail_fired();
    kmem_fail_set(KMEM_FAIL_NONE, 0);
    object_put(&start.start_console->file_object);
    if (pid < 0)
        return pid;
    spin_lock(&sched_lock);
    t = task_find(pid);
    spin_unlock(&sched_lock);
    *privileged = t->task_privileged;
    KT_TRUE(t->task_grant == start.start_grant);
    if (start.start_grant != NULL)
        KT_TRUE(start.start_grant->grant_in_force);
    KT_SOUND(servers_verify);
    KT_EQ(task_kill(NULL, pid, SIGKILL), 0);
    KT_EQ(task_wait(pid, &status, 0), pid);
    KT_EQ(WTERMSIG(status), SIGKILL);
    return pid;
}

KTEST(grant, privilege_at_the_start)
{
    static const struct {
        const char *path;
        bool privileged, session, wanted;
    } cases[] = {
        {"/bin/true", false, false, false}, {"/bin/true", true, false, true},
        {"/bin/true", false, true, false},  {"/sbin/init", false, false, false},
        {"/sbin/init", false, true, true},  {"/sbin/names", false, true, false},
    };
    bool had;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        pid_t pid = spawn(
            (struct process_start){.start_path = cases[i].path,
                                   .start_privileged = cases[i].privileged,
                                   .start_init = cases[i].session},
            &had);

        KT_GE(pid, 1);
        KT_EQ(had, cases[i].wanted);
    }
}

KTEST(grant, a_server_begins_with_its_grant)
{
    struct grant *names = grant_find("names");
    struct process_start start = {.start_path = "/nowhere",
                                  .start_grant = names};
    bool had = true;

    KT_NEEDS(MIB(1));
    KT_REQUIRE(names != NULL && names->grant_task == NULL);
    KT_GE(spawn(start, &had), 1);
    KT_TRUE(!had && names->grant_task == NULL);
    begin(0);
    KT_EQ(grant_take(names, s.actor_task), 0);
    KT_EQ(spawn(start, &had), -EBUSY);
    KT_TRUE(names->grant_task == s.actor_task);
    grant_drop(s.actor_task);
    actor_end(&s);
    h = actor_grant(&rights_b, NULL);
    start.start_grant = h;
    KT_EQ(spawn(start, &had), -ENOENT);
    actor_end_grant(h);
}

/* After any allocation failure no task has the grant. */
KTEST(grant, a_server_without_memory)
{
    struct grant *names = grant_find("names");
    struct process_start start = {.start_path = "/nowhere",
                                  .start_grant = names};
    bool had;
    pid_t pid;

    KT_REQUIRE(names != NULL && names->grant_task == NULL);
    fail_nth = 0;
    do {
        fail_nth++;
        pid = spawn(start, &had);
        KT_TRUE(failed ? pid == -ENOMEM : pid > 0);
        KT_TRUE(names->grant_task == NULL);
        KT_SOUND(servers_verify);
    } while (failed && fail_nth < 100);
    KT_GE(fail_nth, 6);
    KT_TRUE(!failed);
    fail_nth = 0;
}

/* ---- the manifest ------------------------------------------------------- */

static void forget(const char *name)
{
    struct grant *found = grant_find(name);

    if (found == NULL)
        return;
    if (found->grant_program != NULL)
        inode_put(found->grant_program);
    actor_end_grant(found);
}

static void forget_all(void *unused)
{
    (void)unused;
    forget("test-1");
    forget("test-2");
    forget("test-3");
}

KTEST(grant, from_a_manifest)
{
    static const char text[] = "server test-1\n program /etc/motd x\n irq 5\n"
                               "server test-2\n program /none\n"
                               "server test-3\n program /etc\n"
                               "server test-4\n program /etc/motd\n"
                               " memory 0x200000-0x200fff\n"
                               "server test-1\n program /etc/motd\n"
                               "server test-5\n program /etc/motd\n irq 17\n";
    struct file *f;

    ktest_undo(forget_all, NULL);
    KT_EQ(servers_read(text, sizeof(text) - 1), 3);
    KT_REQUIRE(grant_find("test-1") != NULL && grant_find("test-2") != NULL &&
               grant_find("test-3") != NULL);
    KT_REQUIRE(grant_find("test-1")->grant_program != NULL);
    KT_EQ(grant_find("test-1")->grant_server.server_irqs, 1u << 5);
    KT_TRUE(grant_find("test-2")->grant_program == NULL);
    KT_TRUE(grant_find("test-3")->grant_program == NULL);
    KT_TRUE(grant_find("test-4") == NULL); /* RAM */
    KT_TRUE(grant_find("test-5") == NULL);
    KT_EQ(file_open("/etc/motd", NULL, O_RDWR, &f), -EPERM);
    KT_SOUND(servers_verify);
    grant_find("test-1")->grant_program->inode_sealed = false;
    KT_UNSOUND(servers_verify, "not sealed");
    forget_all(NULL);
}

KTEST(grant, a_manifest_without_memory)
{
    static const char text[] = "server test-1\n program /etc/motd\n";
    struct inode *inode;
    uint32_t refs;

    KT_REQUIRE(path_lookup("/etc/motd", NULL, &inode) == 0);
    refs = inode->inode_refs;
    kmem_fail_set(KMEM_FAIL_SLAB, 1);
    KT_EQ(servers_read(text, sizeof(text) - 1), 1);
    kmem_fail_set(KMEM_FAIL_NONE, 0);
    KT_TRUE(grant_find("test-1") == NULL);
    KT_EQ(inode->inode_refs, refs);
    inode->inode_sealed = false;
    inode_put(inode);
}

/* ---- what verify sees --------------------------------------------------- */

KTEST(grant, verify_sees_broken_grants)
{
    struct task *t;

    begin(1);
    t = s.actor_task;
    g = make(&rights_a);
    h = make(&rights_none);
    KT_SOUND(servers_verify);
    g->grant_in_force = true;
    KT_UNSOUND(servers_verify, "in force without a task");
    g->grant_in_force = false;
    t->task_grant = g;
    KT_UNSOUND(servers_verify, "not its own");
    t->task_grant = NULL;
    give(g, &s);
    KT_SOUND(servers_verify);
    t->task_grant = h;
    KT_UNSOUND(servers_verify, "does not refer to it");
    t->task_grant = g;
    t->task_ports = &h->grant_server;
    KT_UNSOUND(servers_verify, "no grant for");
    t->task_ports = &g->grant_server;
    g->grant_in_force = false;
    KT_UNSOUND(servers_verify, "no grant for");
    g->grant_in_force = true;
    g->grant_program = NULL;
    KT_UNSOUND(servers_verify, "without a program");
    g->grant_program = path_root();
    c.actor_task->task_ports = &g->grant_server;
    KT_UNSOUND(servers_verify, "no grant for");
    c.actor_task->task_ports = NULL;
    take_back(&s, g);
    take_back(&c, h);
}

KTEST(grant, verify_sees_a_broken_map)
{
    begin(0);
    gdt_ports_allow(OUTER, OUTER, true);
    KT_UNSOUND(servers_verify, "other ports than the grant");
    gdt_ports_allow(OUTER, OUTER, false);
    gdt_ports_on(true);
    KT_UNSOUND(servers_verify, "not that of the task that runs");
    gdt_ports_on(false);
    g = make(&rights_a);
    give(g, &s);
    KT_EQ(actor_result(&s, may_use, 0x300, 0, 0), 9);
    gdt_ports_allow(0x301, 0x301, false);
    KT_UNSOUND(servers_verify, "other ports than the grant");
    gdt_ports_allow(0x301, 0x301, true);
    KT_SOUND(servers_verify);
    take_back(&s, g);
}
