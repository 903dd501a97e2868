/*
 * What the tests of the kernel shell share: a command is run as if it had been
 * typed, and what it printed is kept.
 */
#pragma once

/* Runs a line. Returns its status; shell_test_said is what it printed, as far
 * back as the console remembers. */
int shell_test_run(const char *line);
extern const char *shell_test_said;
