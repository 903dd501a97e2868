/*
 * Contexts, processes and printing.
 */
#include "kernel/task/tests/wakes/host.h"

#include <stdio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define CONTEXTS    3
#define STACK_BYTES KIB(64)

static ucontext_t scheduler;
static ucontext_t contexts[CONTEXTS];
static uint8_t stacks[CONTEXTS][STACK_BYTES];

void host_say(const char *text)
{
    fputs(text, stdout);
    fflush(stdout);
}

void host_fail(void)
{
    _exit(1);
}

bool host_apart(void (*fn)(unsigned arg), unsigned arg)
{
    int status = 1;
    pid_t pid = fork();

    if (pid == 0) {
        fn(arg);
        _exit(0);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

void host_context(unsigned number, void (*fn)(void))
{
    ucontext_t *c = &contexts[number];

    getcontext(c);
    c->uc_stack.ss_sp = stacks[number];
    c->uc_stack.ss_size = STACK_BYTES;
    c->uc_link = NULL;
    makecontext(c, fn, 0);
}

void host_resume(unsigned number)
{
    swapcontext(&scheduler, &contexts[number]);
}

void host_leave(unsigned number)
{
    swapcontext(&contexts[number], &scheduler);
}

bool host_below(unsigned number, uintptr_t addr, uintptr_t esp)
{
    return addr >= (uintptr_t)stacks[number] &&
           addr < MIN(esp, (uintptr_t)stacks[number] + STACK_BYTES);
}
