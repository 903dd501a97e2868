/*
 * Servers and drivers: their grants from the manifest.
 */
#pragma once

#include "kernel/lib/types.h"

struct inode;

/* Reads /etc/servers, seals the programs it names and /sbin/init, creates the
 * grants and prints errors. After fs_init. Boot only. */
void servers_init(void);

/* /sbin/init as it was at boot, borrowed; NULL: there was none. */
const struct inode *servers_init_program(void);

/* The same with any manifest; returns the number of errors. For tests. */
unsigned servers_read(const char *text, size_t n);

/* grant_verify, and whether the programs are sealed. */
const char *servers_verify(const char **where);
