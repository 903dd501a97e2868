/*
 * Servers and drivers: what the manifest in the archive grants them.
 */
#pragma once

#include "kernel/lib/types.h"

struct inode;

/* Reads /etc/servers, seals the programs it names, and /sbin/init, and makes
 * the grants; tells the console what is wrong. After fs_init. Boot only. */
void servers_init(void);

/* The program of sessions, /sbin/init as it was at boot; NULL: there was none.
 * Borrowed. */
const struct inode *servers_session(void);

/* The same with any manifest; returns the number of errors. For tests. */
unsigned servers_read(const char *text, size_t n);

/* grant_verify, and whether the programs are sealed. */
const char *servers_verify(const char **where);
