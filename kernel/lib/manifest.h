/*
 * The manifest of servers, /etc/servers: which programs are servers and
 * drivers, and what each of them may have of the machine.
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
 * The kernel reads it once at boot and init at the beginning of a session, both
 * with this reader. `#` begins a comment; numbers are decimal or 0x….
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

/* Both ends belong to it. */
struct manifest_range {
    uint32_t range_first;
    uint32_t range_last;
};

/* A stanza. Ranges are in the order of the file; they do not overlap. */
struct manifest_server {
    char server_name[MANIFEST_NAME_MAX + 1];
    char server_command[MANIFEST_COMMAND_MAX + 1]; /* path and arguments, one
                                                      blank between them */
    char server_needs[MANIFEST_NEEDS_MAX + 1];     /* names, the same way */
    char server_mounts[MANIFEST_MOUNTS_MAX + 1];   /* a path, or "" */
    uint8_t server_ports;                          /* ranges in use … */
    uint8_t server_memories;
    uint16_t server_irqs; /* a bit for each line */
    uint16_t server_dma;  /* pages */
    bool server_demand;   /* init waits until it is asked for */
    bool server_once;     /* init does not start it again */
    struct manifest_range server_port[MANIFEST_PORTS];
    struct manifest_range server_memory[MANIFEST_MEMORY];
};

/* Characters of the program's path, with which its command begins. */
static inline int manifest_path_length(const struct manifest_server *s)
{
    int n = 0;

    while (s->server_command[n] != '\0' && s->server_command[n] != ' ')
        n++;
    return n;
}

/* Who wants to know. A stanza with an error in it is not given to
 * reader_server; every error is told with the number of its line. */
struct manifest_reader {
    /* A stanza that begins on that line. What comes back (NULL: nothing) is
     * wrong with it. Called in the order of the file. */
    const char *(*reader_server)(const struct manifest_server *s, void *arg);
    /* `what` is one line of text without a full stop. */
    void (*reader_error)(unsigned line, const char *what, void *arg);
    void *reader_arg;
};

/* Reads `n` bytes, which may be anything. Returns the number of errors. */
unsigned manifest_read(const char *text, size_t n,
                       const struct manifest_reader *reader);
