/*
 * Program start and exit: from crt0.asm to main, and from main to the end.
 *
 * A program links only what it uses. Flushing streams and running atexit
 * functions at exit are weak hooks, present only if the program links the files
 * that define them.
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
__attribute__((weak)) int stdio_end(int status);

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
    if (stdio_end != NULL)
        status = stdio_end(status);
    _exit(status);
}
