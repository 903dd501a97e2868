/*
 * Messages.
 *
 * A message is a tag and three words, in registers. It may also carry bytes and
 * a handle, which a struct ipc_buffer describes:
 *
 *                 ipc_call     ipc_receive  ipc_reply    ipc_reply_receive
 *     in   EBX    port         port         client       port
 *          ECX    tag          -            tag          tag
 *          EDX    word 0       -            word 0       word 0
 *          ESI    word 1       -            word 1       word 1
 *          EDI    word 2       -            word 2       word 2
 *          EBP    buffer or 0  buffer or 0  buffer or 0  buffer or 0
 *     out  EAX    0 or -errno  0 or -errno  0 or -errno  0 or -errno
 *          EBX    -            client       -            client
 *          ECX    reply's tag  tag          -            tag
 *          EDX …  its words    words        -            words
 *
 * The client is a number that identifies a caller: the low bits are its pid,
 * the others count how often pids had wrapped around when it was created. So a
 * late reply to a killed caller does not reach a new task with the same pid.
 * Client 0 means a notification: word 0 has the bits; no reply is expected.
 * ipc_reply_receive replies to the caller that this task received last, if that
 * still waits, and receives in the same call.
 *
 * The sender keeps a handle that it sends; the receiver gets a copy. A copied
 * handle of a port may only call: only fork passes on the right to receive.
 *
 * Errors of a call: EBADF (no port; no such handle to send), EPIPE (the port
 * has no receiver any more, or the server died before it replied), EDEADLK (the
 * server waits, perhaps through other servers, for the caller), EMSGSIZE (the
 * other side has less room, or no buffer), EFAULT, EMFILE (no room for the
 * handle), ENOMEM, EINTR. Nothing has been delivered then.
 *
 * Of a receive: EBADF (no port that this task may receive on), EFAULT (the
 * receiver's buffer; the caller still waits), EINTR.
 *
 * Of a reply: ESRCH (no client of that number waits for a reply from this
 * task). EMSGSIZE, EFAULT, EMFILE, ENOMEM and EBADF (no such handle to send) go
 * to both sides, and the call has ended.
 */
#pragma once

#include "kernel/abi/types.h"

#define IPC_PID_BITS    18
#define IPC_PID(client) ((client) & ((1u << IPC_PID_BITS) - 1))
#define IPC_LABEL(tag)  ((tag)&0xffff) /* the request; defined by the server */
#define IPC_DATA        0x10000u       /* the message has bytes */
#define IPC_HANDLE      0x20000u       /* the message has a handle */

#define IPC_DATA_MAX 65536u /* bytes in one message */

struct ipc_buffer {
    const void *ipc_send; /* sent if the tag has IPC_DATA */
    uint32_t ipc_send_size;
    void *ipc_receive; /* where received bytes go */
    uint32_t ipc_receive_max;
    uint32_t ipc_received;       /* out: bytes received */
    int32_t ipc_send_handle;     /* sent if the tag has IPC_HANDLE */
    int32_t ipc_received_handle; /* out: the new handle, or -1 */
    uint32_t ipc_session; /* out, of a received call: the caller's session; 0:
                             none, a server */
};

/* Operations of name_server(), about the name server's port. */
#define NAME_SERVER_GET 0 /* returns a new handle to it; ENOENT: none */
#define NAME_SERVER_SET                                                        \
    1 /* sets it to the port of this handle; EPERM: not with
                             the grant of `names`, nor privileged */
