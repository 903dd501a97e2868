/*
 * Interrupts as notifications, for drivers in ring 3.
 *
 *     line raises ──> mask it, OR the bit into the port ──> driver is woken
 *     driver has served the device ──> irq_ack unmasks the line
 *
 * The line stays masked in between, so that a device that raises it
 * continuously does not keep the driver from running.
 */
#include "drivers/pic.h"
#include "kernel/abi/errno.h"
#include "kernel/ipc/ipc_impl.h"
#include "kernel/lib/string.h"
#include "kernel/x86/trap.h"

/* Guarded by sched_lock. An interrupt needs only the first, which is short so
 * that finding a line takes one instruction. */
static struct {
    struct port *line_port; /* NULL: not bound */
    uint32_t line_bits;
} lines[PIC_LINES];
static const struct task *line_task[PIC_LINES]; /* the task that bound it */

/* The port may have been freed while this processor waited for the lock. */
static void handle_line(struct trapframe *tf)
{
    unsigned irq = tf->vector - TRAP_IRQ_BASE;

    spin_lock(&sched_lock);
    pic_mask((int)irq);
    if (lines[irq].line_port != NULL)
        ipc_notify_locked(lines[irq].line_port, lines[irq].line_bits);
    spin_unlock(&sched_lock);
}

int ipc_irq_bind(struct port *port, unsigned irq, unsigned bit)
{
    int result = 0;

    if (irq >= PIC_LINES || bit >= 32)
        return -EINVAL;
    spin_lock(&sched_lock);
    if (irq_taken((int)irq)) {
        result = -EBUSY;
    } else {
        lines[irq].line_port = port;
        line_task[irq] = task_self();
        lines[irq].line_bits = 1u << bit;
        irq_set_handler((int)irq, handle_line);
        pic_unmask((int)irq);
    }
    spin_unlock(&sched_lock);
    return result;
}

int ipc_irq_ack(unsigned irq)
{
    int result = -EINVAL;

    spin_lock(&sched_lock);
    if (irq < PIC_LINES && lines[irq].line_port != NULL &&
        line_task[irq] == task_self()) {
        pic_unmask((int)irq);
        result = 0;
    }
    spin_unlock(&sched_lock);
    return result;
}

static void unbind(unsigned irq)
{
    pic_mask((int)irq);
    irq_set_handler((int)irq, NULL);
    lines[irq].line_port = NULL;
}

void ipc_irq_release(const struct port *port)
{
    spin_assert_held(&sched_lock);
    for (unsigned irq = 0; irq < PIC_LINES; irq++)
        if (lines[irq].line_port == port)
            unbind(irq);
}

void ipc_irq_drop(const struct task *t)
{
    spin_lock(&sched_lock);
    for (unsigned irq = 0; irq < PIC_LINES; irq++)
        if (lines[irq].line_port != NULL && line_task[irq] == t)
            unbind(irq);
    spin_unlock(&sched_lock);
}

uint32_t ipc_irq_lines(const struct port *port)
{
    uint32_t bits = 0;

    spin_assert_held(&sched_lock);
    for (unsigned irq = 0; irq < PIC_LINES; irq++)
        bits |= (uint32_t)(lines[irq].line_port == port) << irq;
    return bits;
}

void ipc_irq_stat(unsigned irq, struct ipc_irq_stat *out)
{
    *out = (struct ipc_irq_stat){.stat_port = 0};
    spin_lock(&sched_lock);
    if (lines[irq].line_port != NULL) {
        out->stat_port = lines[irq].line_port->port_number;
        out->stat_task = line_task[irq]->task_pid;
        memcpy(out->stat_name, line_task[irq]->task_name,
               sizeof(out->stat_name));
    }
    spin_unlock(&sched_lock);
}
