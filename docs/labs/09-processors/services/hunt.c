/*
 * The hunt for races: see hunt.h.
 *
 * The first part runs with the trap flag set (Intel SDM volume 3, 17.3.1.4), so
 * the processor traps after each instruction. The trap's handler counts, and at
 * the wanted instruction lets the task on the other processor go.
 */
#include "docs/labs/09-processors/services/hunt.h"
#include "kernel/lib/string.h"
#include "kernel/task/task.h"
#include "kernel/x86/trap.h"

#define EFLAGS_TF 0x100u

/* In a counted run one turn of the loop in which a processor waits lets the
 * other run, until that waits itself. */
#define TURNS 200

static struct {
    const struct hunt *hunt;
    unsigned at;    /* after so many instructions the other comes in */
    unsigned steps; /* of the first part so far */
    bool stepping;  /* in the first part */
    bool came;
    bool waited; /* until the first part went on */
    uintptr_t next;
    trap_handler_t before;
    uint32_t wanted; /* runs of the other part */
    uint32_t done;
    bool over;
} state;

/* ---- the other processor ------------------------------------------------ */

static void others_task(void *unused UNUSED)
{
    sched_move_self((uint8_t)(1u << (cpu_count - 1)));
    while (!__atomic_load_n(&state.over, __ATOMIC_ACQUIRE)) {
        if (__atomic_load_n(&state.wanted, __ATOMIC_ACQUIRE) == state.done) {
            sched_yield();
            continue;
        }
        state.hunt->hunt_other();
        __atomic_store_n(&state.done, state.done + 1, __ATOMIC_RELEASE);
    }
}

static bool is_done(void)
{
    return __atomic_load_n(&state.done, __ATOMIC_ACQUIRE) == state.wanted;
}

/* Lets it run its part, and waits for the end, or for TURNS. */
static void let_other_run(void)
{
    __atomic_store_n(&state.wanted, state.wanted + 1, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < TURNS && !is_done(); i++)
        cpu_relax();
}

/* ---- this processor ----------------------------------------------------- */

static bool on_step(struct trapframe *tf)
{
    if (state.hunt == NULL)
        return state.before != NULL && state.before(tf);
    if (state.came) { /* a lock has restored the flag */
        tf->eflags &= ~EFLAGS_TF;
        return true;
    }
    if (state.steps++ != state.at) {
        if (state.stepping) /* whatever flags a lock has restored */
            tf->eflags |= EFLAGS_TF;
        return true;
    }
    state.came = true;
    state.next = tf->eip;
    tf->eflags &= ~EFLAGS_TF;
    let_other_run();
    state.waited = !is_done();
    return true;
}

/* The first part, with the trap flag set. */
static __attribute__((noinline)) void step_first(void)
{
    state.stepping = true;
    __asm__ volatile("pushfl; orl %0, (%%esp); popfl"
                     :
                     : "i"(EFLAGS_TF)
                     : "memory", "cc");
    state.hunt->hunt_first();
    state.stepping = false;
    __asm__ volatile("pushfl; andl %0, (%%esp); popfl"
                     :
                     : "i"(~EFLAGS_TF)
                     : "memory", "cc");
}

/* Once, with the other after state.at instructions, or after all. False: there
 * is no memory. */
static bool hunt_once(struct hunt_result *out)
{
    const struct hunt *h = state.hunt;

    state.steps = 0;
    state.came = state.waited = false;
    if (!h->hunt_begin())
        return false;
    step_first();
    if (!state.came)
        let_other_run();
    while (!is_done())
        cpu_relax();
    out->result_waits += state.waited;
    out->result_wrong = h->hunt_wrong();
    h->hunt_end();
    return true;
}

static void hunt_all(struct hunt_result *out)
{
    for (state.at = 0; out->result_wrong == NULL; state.at++) {
        out->result_memory = hunt_once(out);
        if (!out->result_memory || !state.came)
            break;
        out->result_after = state.at + 1;
        out->result_next = state.next;
    }
    out->result_steps = state.steps;
}

void hunt_run(const struct hunt *h, struct hunt_result *out)
{
    struct task *other;
    int status;
    pid_t pid;

    *out = (struct hunt_result){.result_memory = false};
    state.over = false;
    other = task_create("hunt", others_task, NULL, PRIORITY_KERNEL);
    if (other == NULL)
        return;
    pid = other->task_pid;
    sched_move_self(1);
    state.hunt = h;
    state.before = trap_set_handler(TRAP_DEBUG, on_step);
    hunt_all(out);
    trap_set_handler(TRAP_DEBUG, state.before);
    state.hunt = NULL;
    __atomic_store_n(&state.over, true, __ATOMIC_RELEASE);
    sched_move_self((uint8_t)((1u << cpu_count) - 1));
    task_wait(pid, &status, 0);
}

const struct hunt *hunt_find(const char *name)
{
    for (size_t i = 0; i < hunts_count; i++)
        if (strcmp(hunts[i].hunt_name, name) == 0)
            return &hunts[i];
    return NULL;
}
