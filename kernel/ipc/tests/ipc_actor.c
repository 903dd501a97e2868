#include "kernel/ipc/tests/ipc_actor.h"
#include "kernel/lib/string.h"
#include "kernel/task/io_map.h"
#include "kernel/vm/commit.h"
#include "kernel/vm/space.h"
#include "kernel/x86/cpu.h"
#include "mm/kmem.h"

#define ACTORS_MAX 8
#define SETTLE_MAX 1000

/* Besides its areas one more actor needs the page of its buffer, the kernel's
 * pages for a task, and those that programs are never promised. */
#define KERNEL_PAGES 8
#define NEEDED       (PAGE_SIZE * (1 + KERNEL_PAGES + COMMIT_KERNEL_SHARE))

static struct actor *actors[ACTORS_MAX]; /* those that exist */

/* ---- the task of an actor ----------------------------------------------- */

/* A space with the three areas, and handles. */
static bool move_in(const struct actor *a)
{
    const struct {
        uaddr_t start, end;
    } areas[] = {{ACTOR_BUFFER, ACTOR_BUFFER + PAGE_SIZE},
                 {ACTOR_SEND, ACTOR_SEND + a->actor_area},
                 {ACTOR_RECEIVE, ACTOR_RECEIVE + a->actor_area}};
    struct task *t = task_self();

    t->task_handles = handle_table_create();
    t->task_space = space_create(NULL);
    if (t->task_handles == NULL || t->task_space == NULL)
        return false;
    for (unsigned i = 0; i < ARRAY_SIZE(areas); i++)
        if (space_add_region(t->task_space, areas[i].start, areas[i].end,
                             PROT_READ | PROT_WRITE, REGION_IMAGE) != 0)
            return false;
    t->task_cr3 = space_cr3(t->task_space);
    t->task_program = true;
    write_cr3(t->task_cr3);
    return true;
}

/* As a process ends. */
static void move_out(uint32_t kernel_cr3)
{
    struct task *t = task_self();
    struct space *s = t->task_space;

    ipc_task_exit(t);
    if (t->task_handles != NULL)
        handle_table_destroy(t->task_handles);
    t->task_handles = NULL;
    t->task_cr3 = kernel_cr3;
    write_cr3(kernel_cr3);
    t->task_space = NULL;
    if (s != NULL)
        space_destroy(s);
}

static void step(struct actor *a)
{
    struct trapframe *frame = task_frame(task_self());

    frame->ebx = a->actor_in[0];
    frame->ecx = a->actor_in[1];
    frame->edx = a->actor_in[2];
    frame->esi = a->actor_in[3];
    frame->edi = a->actor_in[4];
    frame->ebp = a->actor_in[5];
    a->actor_result = a->actor_call(frame->ebx, frame->ecx, frame->edx);
    a->actor_out[0] = frame->ebx;
    a->actor_out[1] = frame->ecx;
    a->actor_out[2] = frame->edx;
    a->actor_out[3] = frame->esi;
    a->actor_out[4] = frame->edi;
}

static void act(void *arg)
{
    struct actor *a = arg;
    uint32_t kernel_cr3 = task_self()->task_cr3;

    a->actor_result = move_in(a) ? 0 : -ENOMEM;
    while (!a->actor_ends) {
        if (a->actor_call != NULL)
            step(a);
        spin_lock(&sched_lock);
        a->actor_call = NULL;
        while (a->actor_call == NULL && !a->actor_ends)
            wait_queue_block(&a->actor_idle, false, 0);
        spin_unlock(&sched_lock);
    }
    move_out(kernel_cr3);
}

/* ---- calls for tests ---------------------------------------------------- */

static bool settled(void)
{
    for (unsigned i = 0; i < ACTORS_MAX; i++)
        if (actors[i] != NULL &&
            actors[i]->actor_task->task_state != TASK_BLOCKED)
            return false;
    return true;
}

void actor_settle(void)
{
    unsigned n = 0;

    do
        sched_yield();
    while (!settled() && n++ < SETTLE_MAX);
    KT_LE(n, SETTLE_MAX);
    KT_SOUND(ipc_verify);
}

static unsigned place_of(const struct actor *a)
{
    unsigned i = 0;

    while (actors[i] != a)
        i++;
    return i;
}

static void end_all(void *unused UNUSED)
{
    for (unsigned i = ACTORS_MAX; i-- > 0;)
        if (actors[i] != NULL)
            actor_end(actors[i]);
}

void actor_start(struct actor *a, const char *name, size_t area)
{
    *a = (struct actor){.actor_area = area};
    wait_queue_init(&a->actor_idle, "next step");
    ktest_finally(end_all, NULL);
    if (!ktest_enough(NEEDED + 2 * area))
        ktest_end();
    a->actor_task = task_create(name, act, a, PRIORITY_KERNEL);
    KT_REQUIRE(a->actor_task != NULL);
    a->actor_pid = a->actor_task->task_pid;
    a->actor_client = a->actor_task->task_ipc.ipc_client;
    actors[place_of(NULL)] = a;
    actor_settle();
    KT_REQUIRE(a->actor_result == 0);
}

void actor_end(struct actor *a)
{
    int status;

    actor_kill(a);
    actors[place_of(a)] = NULL;
    a->actor_ends = true;
    wait_queue_wake(&a->actor_idle);
    KT_EQ(task_wait(a->actor_pid, &status, 0), a->actor_pid);
    actor_settle();
}

void actor_kill(struct actor *a)
{
    KT_EQ(task_kill(NULL, a->actor_pid, SIGKILL), 0);
    actor_settle();
}

void actor_tell(struct actor *a, syscall_t *call, uint32_t ebx, uint32_t ecx,
                uint32_t edx, uint32_t ebp)
{
    const uint32_t in[6] = {ebx, ecx, edx, edx + 1, edx + 2, ebp};

    KT_TRUE(!actor_waits(a));
    memcpy(a->actor_in, in, sizeof(in));
    a->actor_call = call;
    wait_queue_wake(&a->actor_idle);
}

bool actor_do_buffer(struct actor *a, syscall_t *call, uint32_t ebx,
                     uint32_t ecx, uint32_t edx, uint32_t ebp)
{
    actor_tell(a, call, ebx, ecx, edx, ebp);
    actor_settle();
    return !actor_waits(a);
}

bool actor_do(struct actor *a, syscall_t *call, uint32_t ebx, uint32_t ecx,
              uint32_t edx)
{
    return actor_do_buffer(a, call, ebx, ecx, edx, 0);
}

int actor_result(struct actor *a, syscall_t *call, uint32_t ebx, uint32_t ecx,
                 uint32_t edx)
{
    KT_TRUE(actor_do(a, call, ebx, ecx, edx));
    return a->actor_result;
}

int32_t actor_close(uint32_t handle, uint32_t b, uint32_t c)
{
    (void)b;
    (void)c;
    return handle_close(task_self()->task_handles, (int)handle);
}

uint32_t actor_port(struct actor *a)
{
    int handle = actor_result(a, sys_port_create, 0, 0, 0);

    KT_REQUIRE(handle >= 0);
    return (uint32_t)handle;
}

uint32_t actor_share(const struct actor *from, uint32_t h, struct actor *to,
                     uint32_t flags)
{
    struct object *o =
        handle_object(from->actor_task->task_handles, (int)h, NULL);
    int handle;

    KT_REQUIRE(o != NULL);
    handle = handle_install(to->actor_task->task_handles, object_get(o), flags);
    KT_REQUIRE(handle >= 0);
    return (uint32_t)handle;
}

void actor_run_elsewhere(const struct actor *a, void (*fn)(void))
{
    uint32_t flags = irq_save();

    KT_EQ(a->actor_task->task_state, TASK_BLOCKED);
    a->actor_task->task_state = TASK_RUNNING;
    fn();
    a->actor_task->task_state = TASK_BLOCKED;
    irq_restore(flags);
}

static void end_grants(void *name)
{
    struct grant *g;

    while ((g = grant_find(name)) != NULL)
        actor_end_grant(g);
}

struct grant *actor_grant(const struct manifest_server *rights,
                          struct inode *program)
{
    struct grant *g = grant_create(rights, program);

    KT_REQUIRE(g != NULL);
    ktest_undo(end_grants, (void *)rights->server_name);
    return g;
}

void actor_end_grant(struct grant *g)
{
    static const struct manifest_server no_ports;
    static const struct task other = {.task_ports = &no_ports};

    if (g->grant_task != NULL)
        grant_drop(g->grant_task);
    spin_lock(&sched_lock);
    list_remove(&g->grant_link);
    io_map_load(&other); /* so the map of ports is not that of g */
    io_map_load(task_self());
    spin_unlock(&sched_lock);
    kmem_cache_free(kmem_cache_find("grant"), g);
}

void *actor_memory(const struct actor *a, uaddr_t at)
{
    int error;
    void *p = space_touch(a->actor_task->task_space, at, true, &error);

    KT_REQUIRE(p != NULL);
    return p;
}

struct ipc_buffer *actor_buffer(const struct actor *a, uint32_t send,
                                uint32_t room, int handle)
{
    struct ipc_buffer *b = actor_memory(a, ACTOR_BUFFER);

    *b = (struct ipc_buffer){
        .ipc_send = (const void *)ACTOR_SEND,
        .ipc_send_size = send,
        .ipc_receive = (void *)ACTOR_RECEIVE,
        .ipc_receive_max = room,
        .ipc_received = 0xdead,
        .ipc_send_handle = handle,
        .ipc_received_handle = 0xdead,
    };
    return b;
}
