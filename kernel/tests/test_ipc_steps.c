/*
 * Messages and ports in single steps: what happens on another processor, or
 * when sched_lock is released, in the middle of a search for a deadlock or of a
 * snapshot.
 *
 * Tests: kernel/ipc/deadlock.c, kernel/ipc/ipc_verify.c, kernel/object/object.h
 */
#include "kernel/ipc/tests/ipc_cast.h"
#include "kernel/x86/tests/steps.h"

/* ---- in the middle of a search ------------------------------------------ */

/* A call in steps. `meanwhile` is called when the call has released sched_lock
 * `releases` times. */
static syscall_t *stepped;
static int stepped_result;
static unsigned releases;
static void (*meanwhile)(void);
static bool in_hold;

static void call_stepped(void)
{
    const struct trapframe *in = task_frame(task_self());

    stepped_result = stepped(in->ebx, in->ecx, in->edx);
}

static void at_step(const struct trapframe *tf, unsigned n UNUSED)
{
    bool unlocked = (tf->eflags & EFLAGS_IF) != 0;

    if (unlocked && in_hold && releases != 0 && --releases == 0)
        meanwhile();
    in_hold = !unlocked;
}

/* What an actor calls to run `stepped` in steps. */
static int32_t in_steps(uint32_t ebx UNUSED, uint32_t ecx UNUSED,
                        uint32_t edx UNUSED)
{
    in_hold = false;
    steps_run(call_stepped, at_step);
    return stepped_result;
}

/* Makes an actor receive in the middle of another actor's call. */
static void receive_meanwhile(struct actor *a, uint32_t handle)
{
    actor_tell(a, sys_ipc_receive, handle, 0, 0, 0);
    while (a->actor_task->task_ipc.ipc_state != IPC_RECEIVING)
        sched_yield();
}

static void kill_c_and_receive(void)
{
    KT_EQ(task_kill(NULL, c.actor_pid, SIGKILL), 0);
    receive_meanwhile(&s, port_s);
}

/* The search counts handles, since the next receiver is not known: d made the
 * port and left it to the server. */
KTEST(ipc, killed_during_the_search)
{
    uint32_t made;

    if (!steps_work())
        return;
    begin(2);
    made = actor_port(&d);
    port_s = actor_share(&d, made, &s, HANDLE_RECEIVE);
    port_c = actor_share(&d, made, &c, 0);
    port_d = actor_share(&d, made, &d, 0);
    KT_EQ(actor_result(&d, actor_close, made, 0, 0), 0);
    stepped = sys_ipc_call;
    meanwhile = kill_c_and_receive;
    releases = 1;
    KT_EQ(actor_result(&c, in_steps, port_c, 1, 1), -EINTR);
    KT_TRUE(actor_waits(&s));
    KT_TRUE(!call(&d, port_d, 2));
    expect_received(&d, 2); /* so the server is not lost */
}

static uint32_t own_c;

/* c leaves its queue and waits at another port. */
static void kill_c_and_let_it_receive(void)
{
    KT_EQ(task_kill(NULL, c.actor_pid, SIGKILL), 0);
    while (actor_waits(&c))
        sched_yield();
    c.actor_task->task_signal = 0;
    c.actor_task->task_pending &= ~PENDING_KILL;
    receive_meanwhile(&c, own_c);
}

/* The caller has left the cycle during another task's search: the search must
 * not write to the caller's new port. */
KTEST(ipc, a_search_after_its_caller_has_left)
{
    static struct actor closes;
    uint32_t own_d, own_e, from_e, handle;
    struct port *other;

    if (!steps_work())
        return;
    actor_start(&closes, "closes", PAGE_SIZE);
    begin(3);
    handle = actor_share(&s, port_s, &closes, HANDLE_RECEIVE);
    own_d = actor_port(&d);
    own_e = actor_port(&e);
    from_e = actor_port(&c);
    own_c = actor_port(&c);
    other = (struct port *)handle_object(c.actor_task->task_handles, (int)own_c,
                                         &port_type);
    KT_TRUE(!call(&c, port_c, 1));
    KT_TRUE(!call(&e, actor_share(&c, from_e, &e, 0), 1));
    KT_TRUE(!call(&d, actor_share(&e, own_e, &d, 0), 1));
    KT_TRUE(!call(&s, actor_share(&d, own_d, &s, 0), 1));
    other->port_holders_found = 77;
    stepped = actor_close;
    meanwhile = kill_c_and_let_it_receive;
    releases = 3;
    KT_EQ(actor_result(&closes, in_steps, handle, 0, 0), 0);
    KT_EQ(releases, 0);
    KT_EQ(other->port_holders_found, 77);
}

/* ---- snapshots ---------------------------------------------------------- */

static struct port *lone; /* with one reference */
static struct port *found;
static unsigned at; /* the step before which the reference is dropped */
static bool gone;

static void walk_to_lone(void)
{
    struct port_stat stat;

    found = NULL;
    while ((found = port_walk(found, &stat)) != NULL && found != lone)
        ;
}

/* As on another processor, where the port is then freed. */
static void drop_elsewhere(const struct trapframe *tf UNUSED, unsigned n)
{
    uint32_t *refs = &lone->port_object.object_refs;

    if (n == at)
        gone = __atomic_sub_fetch(refs, 1, __ATOMIC_RELAXED) == 0;
}

KTEST(ipc, a_snapshot_while_the_last_reference_is_dropped)
{
    unsigned steps;

    if (!steps_work())
        return;
    lone = port_create();
    KT_REQUIRE(lone != NULL);
    at = 0;
    do {
        at++;
        steps = steps_run(walk_to_lone, drop_elsewhere);
        if (steps >= at && gone != (found == NULL))
            KT_FAIL("at step %u of %u, freed: %d", at, steps, gone);
        lone->port_object.object_refs = 1;
    } while (steps >= at);
    object_put(&lone->port_object);
}
