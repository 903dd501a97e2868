/*
 * trace: says which kernel records what clients request of the allocator. That
 * one has another file in the place of this one.
 */
#include "kernel/shell/shell.h"

static int cmd_trace(char **argv UNUSED)
{
    return shell_error("this kernel does not record; `make trace CMD=...` "
                       "boots one that does");
}

SHELL_COMMAND(trace, cmd_trace,
              "[on|off]\n"
              "mark [N]\n"
              "save [NEW-NAME]",
              SHELL_REPORT);
