/*
 * The manifest, /etc/servers: which programs are servers and drivers, and which
 * parts of the machine each may use.
 *
 *     server ata                      # a stanza begins
 *         program  /sbin/ata          # path and arguments
 *         ports    0x1f0-0x1f7 0x3f6
 *         irq      14
 *         memory   0xb8000-0xb8fff    # physical, whole pages
 *         dma      4                  # pages
 *         needs    names              # what follows is for init alone
 *         mounts   /disk              # ready when this is a mount point
 *         start    boot               # or demand
 *         restart  always             # or never
 *
 * The kernel parses it once at boot and init at the start of a session, both
 * with this parser. `#` begins a comment; numbers are decimal or 0x….
 */
#pragma once

#include "kernel/lib/types.h"

#define MANIFEST_NAME_MAX    15 /* characters */
#define MANIFEST_COMMAND_MAX 95
#define MANIFEST_NEEDS_MAX   63
#define MANIFEST_MOUNTS_MAX  63
#define MANIFEST_PORTS       8 /* ranges */
#define MANIFEST_MEMORY      4
#define MANIFEST_LINES       16   /* interrupt lines of the machine */
#define MANIFEST_DMA_MAX     1024 /* pages in one run */

/* Includes both ends. */
struct manifest_range {
    uint32_t range_first;
    uint32_t range_last;
};

/* A stanza. Ranges are in the order of the file; they do not overlap. */
struct manifest_server {
    char server_name[MANIFEST_NAME_MAX + 1];
    char server_command[MANIFEST_COMMAND_MAX + 1]; /* path and arguments,
                                                      separated by blanks */
    char server_needs[MANIFEST_NEEDS_MAX + 1];     /* names, likewise */
    char server_mounts[MANIFEST_MOUNTS_MAX + 1];   /* a path, or "" */
    uint8_t server_ports;                          /* number of ranges */
    uint8_t server_memories;
    uint16_t server_irqs; /* a bit for each line */
    uint16_t server_dma;  /* pages */
    bool server_demand;   /* init starts it on demand */
    bool server_once;     /* init does not restart it */
    struct manifest_range server_port[MANIFEST_PORTS];
    struct manifest_range server_memory[MANIFEST_MEMORY];
};

/* Length of the program's path at the start of its command. */
static inline int manifest_path_length(const struct manifest_server *s)
{
    int n = 0;

    while (s->server_command[n] != '\0' && s->server_command[n] != ' ')
        n++;
    return n;
}

/* The parser's callbacks. A stanza with an error is not passed to
 * reader_server; every error is reported with its line number. */
struct manifest_reader {
    /* Takes a stanza that begins on that line. Returns NULL or what is wrong
     * with it. Called in the order of the file. */
    const char *(*reader_server)(const struct manifest_server *s, void *arg);
    /* `what` is one line of text without a full stop. */
    void (*reader_error)(unsigned line, const char *what, void *arg);
    void *reader_arg;
};

/* Parses `n` bytes of any content. Returns the number of errors. */
unsigned manifest_read(const char *text, size_t n,
                       const struct manifest_reader *reader);
