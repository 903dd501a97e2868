/*
 * From crt0.asm to main, and from main to the end.
 *
 * What a program does not use must not come with it. Streams are flushed and
 * atexit functions run at the end only if something else has pulled them in:
 * the two hooks are weak, and missing unless it has.
 */
#include "user/lib/err.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"
#include "user/lib/unistd.h"

int errno;
char **environ;
const char *program_name = "?";

int main(int argc, char **argv, char **envp);

void start(int argc, char **argv, char **envp) __attribute__((noreturn));

__attribute__((weak)) void atexit_run(void);
__attribute__((weak)) void stdio_flush(void);

void start(int argc, char **argv, char **envp)
{
    environ = envp;
    if (argc > 0)
        program_name = path_name(argv[0]);
    exit(main(argc, argv, envp));
}

void exit(int status)
{
    if (atexit_run != NULL)
        atexit_run();
    if (stdio_flush != NULL)
        stdio_flush();
    _exit(status);
}
