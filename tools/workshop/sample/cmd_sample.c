/*
 * sample: memory by cache over time, for tools (sample.h).
 */
#include "drivers/debugcon.h"
#include "kernel/lib/string.h"
#include "tools/workshop/sample/sample.h"
#include "kernel/shell/shell.h"

#define MS_MAX 3600000

static int cmd_sample(char **argv)
{
    uint32_t ms = 0;

    if (strcmp(argv[1], "off") != 0 &&
        (!parse_u32(argv[1], &ms) || ms < 10 || ms > MS_MAX))
        return shell_error("'%.16s' is no period; 10 to %u milliseconds are, "
                           "and off",
                           argv[1], MS_MAX);
    if (!debugcon_present())
        return shell_error("samples go to the debug port 0xE9, which this "
                           "machine has not");
    sample_every(ms);
    return 0;
}

SHELL_COMMAND(sample, {"MS|off", cmd_sample, SHELL_ACTION});
