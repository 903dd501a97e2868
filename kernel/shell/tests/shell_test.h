/*
 * Shared by the tests of the kernel shell: run a command as if it had been
 * typed, and keep its output.
 */
#pragma once

/* Runs a line. Returns its status; shell_test_said is what it printed, as far
 * back as the console remembers. */
int shell_test_run(const char *line);
extern const char *shell_test_said;
