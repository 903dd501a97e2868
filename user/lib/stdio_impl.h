/*
 * A stream, shared by the files of stdio: stdio.c (the standard streams,
 * reading and writing) and fopen.c (other streams, which need malloc).
 */
#pragma once

#include "user/lib/stdio.h"

#define STREAM_READ    1u  /* may be read */
#define STREAM_WRITE   2u  /* may be written */
#define STREAM_EOF     4u  /* end of file was reached */
#define STREAM_LINE    8u  /* written at the end of each line */
#define STREAM_NOW     16u /* written at once */
#define STREAM_WRITING 32u /* the buffer holds output */
#define STREAM_UNSURE  64u /* STREAM_LINE is not determined yet */

/*
 * The buffer, while reading and while writing:
 *
 *     | read already | to be read |      |    | to be written |      |
 *                    ^ pos        ^ end                       ^ pos
 */
struct file {
    int file_handle;
    uint32_t file_flags;
    int file_error; /* errno of the first read or write that failed, or 0 */
    char *file_buf; /* BUFSIZ bytes */
    size_t file_pos;
    size_t file_end;
    FILE *file_next; /* the next stream of fopen */
};

/* Streams of fopen, for fflush(NULL). */
extern FILE *stdio_opened;

/* Notes errno as the stream's error, unless it has one. */
void stdio_failed(FILE *f);

/* Called by exit(): flushes all streams. Returns the status to exit with: if
 * standard output could not be written, 1 after a message instead of 0. */
int stdio_end(int status);
