/*
 * A list of free nodes for all processors: see shared.h.
 *
 * With a lock. A compare-and-swap of stack_top alone is not enough to pop: that
 * the top is the same node again does not mean that its next one is.
 */
#include "docs/labs/09-processors/services/shared.h"
#include "kernel/x86/spinlock.h"

static struct spinlock stack_lock = SPINLOCK_INIT("stack", LOCK_RANK_CACHE);

void stack_push(struct stack *s, struct node *n)
{
    spin_lock(&stack_lock);
    n->node_next = s->stack_top;
    s->stack_top = n;
    spin_unlock(&stack_lock);
}

struct node *stack_pop(struct stack *s)
{
    struct node *top;

    spin_lock(&stack_lock);
    top = s->stack_top;
    if (top != NULL)
        s->stack_top = top->node_next;
    spin_unlock(&stack_lock);
    return top;
}
