/*
 * In the kernel: the end of a run that needs an unwritten task of a lab.
 */
#include "tools/workshop/labs/missing.h"
#include "drivers/debugcon.h"
#include "kernel/x86/panic.h"

void lab_missing(const char *task, const char *page)
{
    debugcon_event("{\"event\":\"lab-missing\",\"task\":\"%s\"}", task);
    panic("lab task %s is yours to write: see %s", task, page);
}
