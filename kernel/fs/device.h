/*
 * Device files: what a device node's number means.
 */
#pragma once

#include "kernel/fs/file.h"

enum device {
    DEVICE_CONSOLE = 1, /* kernel/fs/tty.h */
    DEVICE_NULL,        /* discards writes, reads as empty */
    DEVICE_ZERO,        /* discards writes, reads as zeroes */
    DEVICE_DEBUG,       /* writes lines to the debug port, for tools on the
                           host; reads as empty */
};

/* "console", …; NULL: there is no such device. */
const char *device_name(uint32_t device);

/* Prepares a file opened from a device node. 0 or -ENODEV. */
int device_open(struct file *f);
