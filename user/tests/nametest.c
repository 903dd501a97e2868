/*
 * nametest: tries to take what belongs to others from the name server.
 *
 *     nametest steal NAME   removes a name, and registers it anew
 *     nametest fill         registers names until that fails; keeps them for
 *                           a minute
 *     nametest find NAME    looks a name up
 *     nametest own NAME     registers a name, which is kept for a minute
 *     nametest serve        becomes the name server
 *
 * Each attempt prints a line: what it is, and "done" or the error.
 */
#include "user/lib/err.h"
#include "user/lib/ipc.h"
#include "user/lib/stdio.h"
#include "user/lib/string.h"

#define NAMES_TRIED 300

static int result(const char *what, int error)
{
    printf("%s: %s\n", what, error < 0 ? strerror(errno) : "done");
    return error < 0;
}

static int keep(void)
{
    fflush(stdout);
    sleep_ms(60000);
    return 0;
}

static int steal(const char *name, int port)
{
    int failed = result("remove", name_remove(name));

    return result("register", name_register(name, port)) + failed;
}

static int fill(int port)
{
    char name[16];
    int n = 0;

    do
        snprintf(name, sizeof(name), "name-%d", n);
    while (name_register(name, port) == 0 && ++n < NAMES_TRIED);
    printf("%d names, then: %s\n", n, strerror(errno));
    return keep();
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int port = port_create();

    if (argc == 3 && strcmp(what, "steal") == 0)
        return steal(argv[2], port);
    if (argc == 2 && strcmp(what, "fill") == 0)
        return fill(port);
    if (argc == 3 && strcmp(what, "find") == 0)
        return result("find", name_lookup(argv[2]));
    if (argc == 3 && strcmp(what, "own") == 0)
        return result("own", name_register(argv[2], port)) ?: keep();
    if (argc == 2 && strcmp(what, "serve") == 0)
        return result("serve", name_server(NAME_SERVER_SET, port));
    usage("steal NAME | fill | find NAME | own NAME | serve");
}
