/*
 * serial: uses the second serial line, through the driver uart.
 *
 *     serial echo WORD …      sends the words and a newline
 *     serial put              sends its standard input
 *     serial cat [-n BYTES]   prints received bytes, at most BYTES
 *     serial set BAUD [loop]  sets the speed; loop: sent bytes come back
 *     serial status           prints the driver's counts
 *     serial test [BYTES]     sends bytes to itself and compares them
 */
#include "user/lib/copy.h"
#include "user/lib/err.h"
#include "user/lib/number.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"
#include "user/lib/uart.h"

static int port;

/* Reports input errors. */
static void complain(uint32_t errors)
{
    if (errors != 0)
        warnx("%s%s%s%slost or damaged",
              errors & UART_OVERRUN ? "overrun: " : "",
              errors & UART_PARITY ? "parity: " : "",
              errors & UART_FRAMING ? "framing: " : "",
              errors & UART_BREAK ? "break: " : "");
}

static uint8_t *receive(size_t n, size_t *came)
{
    static uint8_t buf[UART_MAX];
    uint32_t errors;
    ssize_t got = uart_read(port, buf, n, &errors);

    if (got < 0)
        err(1, "read");
    complain(errors);
    *came = (size_t)got;
    return buf;
}

static void send(const void *bytes, size_t n)
{
    if (uart_write(port, bytes, n) < 0)
        err(1, "write");
}

/* ---- commands ----------------------------------------------------------- */

static int cmd_echo(int argc, char **argv)
{
    char line[1024];
    size_t n = 0;

    line[0] = 0;
    for (int i = 0; i < argc; i++) {
        n = strlcat(line, argv[i], sizeof(line));
        n = strlcat(line, i + 1 < argc ? " " : "\n", sizeof(line));
    }
    if (argc == 0 || n >= sizeof(line))
        errx(2, "echo: words of at most %zu characters are expected",
             sizeof(line) - 2);
    send(line, n);
    return 0;
}

static int cmd_put(int argc, char **argv)
{
    static char buf[UART_MAX];
    ssize_t n;

    (void)argv;
    if (argc != 0)
        errx(2, "put: no arguments are expected");
    while ((n = read(STDIN_FILENO, buf, sizeof(buf))) > 0)
        send(buf, (size_t)n);
    if (n < 0)
        err(1, "stdin");
    return 0;
}

static int cmd_cat(int argc, char **argv)
{
    size_t left = SIZE_MAX;

    if (argc == 2 && strcmp(argv[0], "-n") == 0)
        left = size_between(argv[1], 1, UINT32_MAX);
    else if (argc != 0)
        errx(2, "cat: only -n BYTES is expected");
    while (left > 0) {
        size_t n;
        const uint8_t *bytes = receive(left, &n);

        put_bytes(bytes, n);
        left -= n;
    }
    return 0;
}

static int cmd_set(int argc, char **argv)
{
    bool loop = argc == 2 && strcmp(argv[1], "loop") == 0;
    uint32_t baud;

    if (argc < 1 || argc != 1 + loop)
        errx(2, "set: BAUD or BAUD loop is expected");
    baud = number_between(argv[0], 1, UINT32_MAX);
    if (uart_setup(port, baud, loop ? UART_LOOPBACK : 0) < 0)
        err(1, "%s baud", argv[0]);
    return 0;
}

static int cmd_status(int argc, char **argv)
{
    struct uart_status s;

    (void)argv;
    if (argc != 0)
        errx(2, "status: no arguments are expected");
    if (uart_status(port, &s) < 0)
        err(1, "status");
    printf("%u baud%s\n", (unsigned)s.uart_baud,
           s.uart_flags & UART_LOOPBACK ? ", loop" : "");
    printf("sent %u, received %u, waiting %u\n", (unsigned)s.uart_sent,
           (unsigned)s.uart_received, (unsigned)s.uart_waiting);
    printf("interrupts %u, spurious %u, overruns %u, errors %u\n",
           (unsigned)s.uart_interrupts, (unsigned)s.uart_spurious,
           (unsigned)s.uart_overruns, (unsigned)s.uart_errors);
    return 0;
}

/* Sends `n` bytes and receives as many; false after a message. */
static bool loop_back(uint32_t seed, size_t n)
{
    static uint8_t sent[UART_RING];

    for (size_t i = 0; i < n; i++)
        sent[i] = (uint8_t)((seed + i) * 167 + ((seed + i) >> 8));
    send(sent, n);
    for (size_t done = 0, came; done < n; done += came) {
        const uint8_t *bytes = receive(n - done, &came);

        for (size_t i = 0; i < came; i++)
            if (bytes[i] != sent[done + i]) {
                warnx("byte %u was received as 0x%02x, not 0x%02x",
                      (unsigned)(seed + done + i), (unsigned)bytes[i],
                      (unsigned)sent[done + i]);
                return false;
            }
    }
    return true;
}

static int cmd_test(int argc, char **argv)
{
    uint32_t all = argc == 1 ? size_between(argv[0], 1, UINT32_MAX) : 4096;
    struct uart_status s;
    bool good = true;

    if (argc > 1)
        errx(2, "test: only the number of bytes is expected");
    if (uart_status(port, &s) < 0 ||
        uart_setup(port, s.uart_baud, UART_LOOPBACK) < 0)
        err(1, "set-up");
    for (uint32_t done = 0, n; good && done < all; done += n) {
        n = MIN(all - done, UART_RING);
        good = loop_back(done, n);
    }
    if (uart_setup(port, s.uart_baud, s.uart_flags) < 0)
        err(1, "set-up");
    if (good)
        printf("%u bytes received as sent\n", (unsigned)all);
    return !good;
}

static const struct command {
    const char *cmd_name;
    int (*cmd_run)(int argc, char **argv);
} commands[] = {
    {"echo", cmd_echo}, {"put", cmd_put},       {"cat", cmd_cat},
    {"set", cmd_set},   {"status", cmd_status}, {"test", cmd_test},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < ARRAY_SIZE(commands); i++) {
        if (strcmp(argv[1], commands[i].cmd_name) != 0)
            continue;
        port = uart_open();
        if (port < 0)
            err(1, "uart%s",
                errno == ENOENT ? " (`run -b -s uart` starts it)" : "");
        return commands[i].cmd_run(argc - 2, argv + 2);
    }
    usage("echo WORD... | put | cat [-n BYTES] | set BAUD [loop] |\n"
          "              status | test [BYTES]");
}
