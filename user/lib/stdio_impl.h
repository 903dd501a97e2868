/*
 * A stream, shared by the files of stdio: stdio.c (the standard streams,
 * reading and writing) and fopen.c (other streams, which need malloc).
 */
#pragma once

#include "user/lib/stdio.h"

#define STREAM_READ    1u   /* may be read */
#define STREAM_WRITE   2u   /* may be written */
#define STREAM_EOF     4u   /* end of file was reached */
#define STREAM_ERROR   8u   /* a read or write failed */
#define STREAM_LINE    16u  /* written at the end of each line */
#define STREAM_NOW     32u  /* written at once */
#define STREAM_WRITING 64u  /* the buffer holds output */
#define STREAM_UNSURE  128u /* STREAM_LINE is not determined yet */

/*
 * The buffer, while reading and while writing:
 *
 *     | read already | to be read |      |    | to be written |      |
 *                    ^ pos        ^ end                       ^ pos
 */
struct file {
    int file_handle;
    uint32_t file_flags;
    char *file_buf; /* BUFSIZ bytes */
    size_t file_pos;
    size_t file_end;
    FILE *file_next; /* the next stream of fopen */
};

/* Streams of fopen, for fflush(NULL). */
extern FILE *stdio_opened;

/* Called by exit(). */
void stdio_flush(void);
