/*
 * Running commands, and reading their output from the history of the
 * console.
 */
#include "kernel/shell/tests/shell_test.h"
#include "drivers/console.h"
#include "kernel/fs/tests/fs_test.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/shell/shell.h"

static char *const history = fs_test_bytes; /* of the console */

const char *shell_test_said = fs_test_bytes;

int shell_test_run(const char *line)
{
    static unsigned number;
    char copy[SHELL_LINE_MAX + 1];
    char mark[SHELL_LINE_MAX + 16];
    uint32_t at = 0;
    size_t used = 0;
    size_t n;
    int result;

    snprintf(mark, sizeof(mark), "# %u: %s\n", ++number, line);
    kprintf("%s", mark);
    strlcpy(copy, line, sizeof(copy));
    result = shell_execute(copy);
    while ((n = console_history(&at, history + used,
                                sizeof(fs_test_bytes) - 1 - used)) > 0)
        used += n;
    history[used] = '\0';
    shell_test_said = strstr(history, mark);
    if (shell_test_said == NULL)
        shell_test_said = "";
    else
        shell_test_said += strlen(mark);
    return result;
}
