/*
 * Messages.
 *
 * A message is a tag and three words, which travel in registers, and on demand
 * a run of bytes and a handle, which a struct ipc_buffer describes:
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
 * The client is a number that names a caller until it has been answered. 0
 * means a notification: then word 0 has the bits, and nobody waits for an
 * answer. ipc_reply_receive answers the caller that the last receive of this
 * task delivered, if it did and that has not been answered yet, and receives in
 * the same call.
 *
 * A handle stays with its sender, who gives a copy. A port's may only call:
 * the right to receive is passed on by fork alone.
 *
 * Errors of a call: EBADF (no port; no such handle to send), EPIPE (nobody
 * receives there any more, or the server died before it answered), EDEADLK (the
 * server waits, over any number of others, for the caller), EMSGSIZE (the other
 * side has less room, or no buffer), EFAULT, EMFILE (no room for the handle),
 * ENOMEM, EINTR. Nothing has been delivered then.
 *
 * Of a receive: EBADF (no port that this task may receive on), EFAULT (its own
 * buffer; the caller waits on), EINTR.
 *
 * Of a reply: ESRCH (nobody of that number waits for this task's answer);
 * EMSGSIZE, EFAULT, EMFILE, ENOMEM and EBADF (no such handle to send) then go
 * to both sides: the call has ended.
 */
#pragma once

#include "kernel/abi/types.h"

#define IPC_LABEL(tag) ((tag)&0xffff) /* what is asked: the server defines it */
#define IPC_DATA       0x10000u       /* bytes come along */
#define IPC_HANDLE     0x20000u       /* a handle comes along */

#define IPC_DATA_MAX 65536u /* bytes in one message */

struct ipc_buffer {
    const void *ipc_send; /* sent if the tag has IPC_DATA */
    uint32_t ipc_send_size;
    void *ipc_receive; /* where received bytes go */
    uint32_t ipc_receive_max;
    uint32_t ipc_received;       /* out: how many came */
    int32_t ipc_send_handle;     /* sent if the tag has IPC_HANDLE */
    int32_t ipc_received_handle; /* out: the new handle, or -1 */
};

/* names(): the port under which the name server is found. */
#define NAME_SERVER_GET                                                        \
    0 /* returns a new handle to it; ENOENT if there is none */
#define NAME_SERVER_SET 1 /* from now on it is the port of this handle */
