/*
 * Client functions of the driver uart.
 */
#include "user/lib/uart.h"
#include "user/lib/errno.h"
#include "user/lib/ipc.h"

int uart_open(void)
{
    return name_lookup("uart");
}

/* One request; the reply is in *m. */
static int ask(int port, struct message *m)
{
    if (ipc_call(port, m) < 0)
        return -1;
    if (m->msg_word[0] == 0)
        return 0;
    errno = -(int)m->msg_word[0];
    return -1;
}

ssize_t uart_write(int port, const void *buf, size_t n)
{
    const char *bytes = buf;

    for (size_t done = 0; done < n;) {
        struct ipc_buffer b = {
            .ipc_send = bytes + done,
            .ipc_send_size = (uint32_t)MIN(n - done, UART_MAX),
        };
        struct message m = {.msg_tag = UART_WRITE | IPC_DATA, .msg_buffer = &b};

        if (ask(port, &m) < 0)
            return -1;
        done += b.ipc_send_size;
    }
    return (ssize_t)n;
}

ssize_t uart_read(int port, void *buf, size_t n, uint32_t *errors)
{
    struct ipc_buffer b = {
        .ipc_receive = buf,
        .ipc_receive_max = (uint32_t)MIN(n, UART_MAX),
    };
    struct message m = {
        .msg_tag = UART_READ,
        .msg_word = {b.ipc_receive_max},
        .msg_buffer = &b,
    };

    if (ask(port, &m) < 0)
        return -1;
    if (errors != NULL)
        *errors = m.msg_word[1];
    return (ssize_t)b.ipc_received;
}

int uart_setup(int port, uint32_t baud, uint32_t flags)
{
    struct message m = {.msg_tag = UART_SETUP, .msg_word = {baud, flags}};

    return ask(port, &m);
}

int uart_status(int port, struct uart_status *status)
{
    struct ipc_buffer b = {
        .ipc_receive = status,
        .ipc_receive_max = sizeof(*status),
    };
    struct message m = {.msg_tag = UART_STATUS, .msg_buffer = &b};

    return ask(port, &m);
}
