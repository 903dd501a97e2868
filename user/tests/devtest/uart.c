/*
 * Tests of the driver uart, on a line in loopback mode.
 */
#include "user/lib/uart.h"
#include "user/lib/err.h"
#include "user/lib/string.h"
#include "user/tests/devtest/devtest.h"

#define FIFO 16u

static int line;

static struct uart_status status(void)
{
    struct uart_status s = {0};

    if (uart_status(line, &s) < 0)
        err(1, "status");
    return s;
}

static bool fails(ssize_t result, int error)
{
    return result == -1 && errno == error;
}

/* ---- bytes -------------------------------------------------------------- */

static uint8_t pattern(uint32_t i)
{
    return (uint8_t)(i * 167 + (i >> 8));
}

static void send(uint32_t first, uint32_t n)
{
    static uint8_t bytes[2 * UART_RING];

    for (uint32_t i = 0; i < n; i++)
        bytes[i] = pattern(first + i);
    if (uart_write(line, bytes, n) != (ssize_t)n)
        err(1, "write");
}

/* Receives `n` bytes: whether they are right; *errors gets all reported
 * errors. */
static bool receive(uint32_t first, uint32_t n, uint32_t *errors)
{
    static uint8_t bytes[UART_MAX];
    bool good = true;

    *errors = 0;
    for (uint32_t done = 0; done < n;) {
        uint32_t some;
        ssize_t came = uart_read(line, bytes, n - done, &some);

        if (came <= 0)
            return false;
        *errors |= some;
        for (ssize_t i = 0; i < came; i++)
            good = good && bytes[i] == pattern(first + done++);
    }
    return good;
}

static bool loop(uint32_t n)
{
    uint32_t errors;

    send(n, n);
    return receive(n, n, &errors) && errors == 0;
}

static void interrupts(void)
{
    struct uart_status before = status();
    struct uart_status after;

    check(loop(1) && loop(FIFO) && loop(FIFO + 1) && loop(1000),
          "bytes come back as sent");
    after = status();
    check(after.uart_sent - before.uart_sent == 1034 &&
              after.uart_received - before.uart_received == 1034,
          "bytes are counted");
    /* Each FIFO full is sent by one interrupt and received by the next, which
     * sends the one after it. */
    check(after.uart_interrupts - before.uart_interrupts ==
              1 + 1 + 1 + 1 + 2 + 1 + 63 + 1,
          "each interrupt fills the FIFO once");
    check(after.uart_spurious == 0 && after.uart_overruns == 0 &&
              after.uart_errors == 0,
          "there are no errors");
}

/* ---- waiting clients ---------------------------------------------------- */

/* Reads a byte and exits with it as status. */
static int read_one(void)
{
    uint8_t byte;

    return uart_read(line, &byte, 1, NULL) == 1 ? byte : -1;
}

static pid_t killed; /* a reader of one byte */

/* In a task with the pid `killed`: reads two bytes and exits with the count. */
static int read_as_killed(void)
{
    uint8_t bytes[2];

    return getpid() == killed ? (int)uart_read(line, bytes, 2, NULL) : 0;
}

static void readers(void)
{
    pid_t a = begin(read_one);
    pid_t b = begin(read_one);
    uint8_t byte = 0;

    uart_write(line, "123", 3);
    check(ended(a) == '1' && ended(b) == '2', "readers are served in order");
    check(uart_read(line, &byte, 1, NULL) == 1 && byte == '3',
          "unread bytes remain for others");
    a = begin(read_one);
    b = begin(read_one);
    kill(a, SIGKILL);
    ended(a);
    uart_write(line, "45", 2);
    check(ended(b) == '4', "a reader that was killed consumes nothing");
    check(uart_read(line, &byte, 1, NULL) == 1 && byte == '5',
          "and the next reader consumes one byte");
    killed = begin(read_one);
    kill(killed, SIGKILL);
    for (ended(killed); (a = child(read_as_killed)) != killed;)
        ended(a);
    sleep_ms(50);
    uart_write(line, "67", 2);
    check(ended(a) == 2, "a reader may have the number of one that was killed");
}

/* ---- lost bytes --------------------------------------------------------- */

static void overrun(void)
{
    struct uart_status s;
    uint32_t errors;

    send(0, UART_RING + FIFO);
    s = status();
    check(s.uart_waiting == UART_RING && s.uart_overruns == 0,
          "the ring and the FIFO are full");
    send(0, 5 * FIFO);
    check(status().uart_overruns > 0, "bytes without room are counted");
    check(receive(0, UART_RING + FIFO, &errors) && errors == UART_OVERRUN,
          "the reader gets the error");
    check(loop(100), "and only once");
}

static void tricks(void)
{
    struct uart_status before = status();
    bool good = true;

    for (unsigned i = 0; i < 3; i++)
        good = good && notify(line, 1) == 0 && loop(20);
    check(good, "a notification without an interrupt does no harm");
    check(status().uart_spurious - before.uart_spurious == 3,
          "it is counted as spurious");
}

/* ---- bad requests ------------------------------------------------------- */

/* Whether the driver closes a handle that it did not request. */
static bool closes_handle(void)
{
    struct ipc_buffer b = {0};
    int ends[2];
    char c;

    if (pipe(ends) < 0)
        err(1, "pipe");
    b.ipc_send_handle = ends[1];
    if (request(line, 99 | IPC_HANDLE, 0, &b) != -EINVAL)
        return false;
    close(ends[1]);
    return read(ends[0], &c, 1) == 0 && close(ends[0]) == 0;
}

static void requests(void)
{
    static uint8_t many[UART_MAX + 1];
    struct ipc_buffer b = {.ipc_send = many, .ipc_send_size = sizeof(many)};
    uint8_t byte;

    check(request(line, 0, 0, NULL) == -EINVAL &&
              request(line, 99, 0, NULL) == -EINVAL,
          "unknown requests are refused");
    check(request(line, UART_WRITE, 0, NULL) == -EINVAL &&
              request(line, UART_WRITE | IPC_DATA, 0, &b) == -EMSGSIZE,
          "writes of no bytes and of too many are refused");
    check(fails(uart_read(line, &byte, 0, NULL), EINVAL),
          "a read without a buffer is refused");
    check(fails(uart_setup(line, 0, 0), EINVAL) &&
              fails(uart_setup(line, 115201, 0), EINVAL) &&
              fails(uart_setup(line, 230400, 0), EINVAL) &&
              fails(uart_setup(line, 1, 0), EINVAL) &&
              fails(uart_setup(line, 9600, 2), EINVAL),
          "invalid speeds and flags are refused");
    check(closes_handle(), "handles that it does not need are closed");
    check(uart_setup(line, 9600, UART_LOOPBACK) == 0 &&
              status().uart_baud == 9600 && loop(50),
          "after all that the driver works");
}

static void death(void)
{
    pid_t pid = begin(read_one);

    end_task("uart");
    check(ended(pid) == EPIPE,
          "a client of a driver that is killed gets EPIPE");
    check(fails(uart_open(), ENOENT), "its name is gone");
}

void test_uart(void)
{
    line = uart_open();
    if (line < 0 || uart_setup(line, UART_BAUD, UART_LOOPBACK) < 0)
        err(1, "uart");
    interrupts();
    readers();
    overrun();
    tricks();
    requests();
    death();
}
