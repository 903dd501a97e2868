/*
 * Actors: tasks that make one step at a time, when a test requests it.
 *
 * An actor is a task with an address space and handles of its own that stays
 * in ring 0 and makes system calls through its trap frame, as a program would.
 * The test gives it a call to make and waits until every actor has settled:
 * each has either returned or waits. So every order of calls, replies and
 * deaths can be written down as a sequence of steps.
 *
 * Memory of an actor: a page at ACTOR_BUFFER, for a struct ipc_buffer; an area
 * at ACTOR_SEND and one at ACTOR_RECEIVE; nothing at ACTOR_HOLE.
 */
#pragma once

#include "kernel/ipc/port.h"
#include "tools/workshop/ktest/ktest.h"
#include "kernel/object/grant.h"
#include "kernel/object/handle.h"
#include "kernel/syscall/syscall.h"
#include "kernel/task/sync.h"

#define ACTOR_BUFFER  0x00400000u
#define ACTOR_SEND    0x00500000u
#define ACTOR_RECEIVE 0x00600000u
#define ACTOR_HOLE    0x00700000u

struct actor {
    struct task *actor_task;
    pid_t actor_pid;
    uint32_t actor_client; /* its number as a client */
    struct wait_queue actor_idle;
    syscall_t *actor_call; /* what it does now; NULL: nothing */
    bool actor_ends;
    size_t actor_area;    /* bytes at ACTOR_SEND, and at ACTOR_RECEIVE */
    uint32_t actor_in[6]; /* EBX ECX EDX ESI EDI EBP */
    int actor_result;
    uint32_t actor_out[5]; /* EBX ECX EDX ESI EDI: client, tag, words */
};

/* A new actor, which waits for its first step, with `area` bytes (of whole
 * pages) at ACTOR_SEND and as many at ACTOR_RECEIVE. It ends with the case at
 * the latest, so it is a static variable. Without enough memory the case
 * ends. */
void actor_start(struct actor *a, const char *name, size_t area);

/* Has it die as a process does, waits for that and ends it. */
void actor_end(struct actor *a);

/* Kills it: what it waits for ends. It goes on taking steps. */
void actor_kill(struct actor *a);

/* Has it make a call; the words are 1, 2 and 3 more than `edx`. Returns whether
 * it has returned; if so, actor_result and actor_out hold the results. */
bool actor_do(struct actor *a, syscall_t *call, uint32_t ebx, uint32_t ecx,
              uint32_t edx);

/* Only makes it READY, ahead of tasks that become READY later. */
void actor_tell(struct actor *a, syscall_t *call, uint32_t ebx, uint32_t ecx,
                uint32_t edx, uint32_t ebp);

/* actor_do with a buffer at `ebp`. */
bool actor_do_buffer(struct actor *a, syscall_t *call, uint32_t ebx,
                     uint32_t ecx, uint32_t edx, uint32_t ebp);

/* Has it make a call that does not wait; returns its result. */
int actor_result(struct actor *a, syscall_t *call, uint32_t ebx, uint32_t ecx,
                 uint32_t edx);

/* Calls fn while the actor, which waits, is RUNNING, as if on another
 * processor. Interrupts are disabled. */
void actor_run_elsewhere(const struct actor *a, void (*fn)(void));

/* Whether a step is not over yet. */
static inline bool actor_waits(const struct actor *a)
{
    return a->actor_call != NULL;
}

/* Steps that are no system call of messages. */
int32_t actor_close(uint32_t handle, uint32_t b, uint32_t c);

/* Lets every actor run until it waits; checks all invariants. */
void actor_settle(void);

/* A grant of a test's. Its program, which may be NULL, stays the caller's. */
struct grant *actor_grant(const struct manifest_server *rights,
                          struct inode *program);

/* Drops and ends it; the kernel's own stay for ever. */
void actor_end_grant(struct grant *g);

/* A new port of an actor's: the handle. */
uint32_t actor_port(struct actor *a);

/* Gives `to` a handle to the object of handle `h` of `from`. */
uint32_t actor_share(const struct actor *from, uint32_t h, struct actor *to,
                     uint32_t flags);

/* Where the test finds an actor's byte; good to the end of the page. */
void *actor_memory(const struct actor *a, uaddr_t at);

/* Writes the actor's struct ipc_buffer: sends `send` bytes, has room for
 * `room`, sends the handle. Returns it, to be changed. */
struct ipc_buffer *actor_buffer(const struct actor *a, uint32_t send,
                                uint32_t room, int handle);
