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

SHELL_COMMAND(trace, {"[on|off]", cmd_trace, SHELL_REPORT},
              {"mark [N]", cmd_trace, SHELL_REPORT},
              {"save [NEW-NAME]", cmd_trace, SHELL_REPORT});
