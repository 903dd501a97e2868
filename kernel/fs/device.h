/*
 * Devices that are files: what a device node's number means.
 */
#pragma once

#include "kernel/fs/file.h"

enum device {
    DEVICE_CONSOLE = 1, /* kernel/fs/tty.h */
    DEVICE_NULL,        /* takes everything, has nothing */
    DEVICE_ZERO,        /* takes everything, is full of zeroes */
    DEVICE_DEBUG,       /* each line written goes to the debug port, for tools
                           on the host to read; nothing can be read */
};

/* Prepares a file that was opened from a device node. 0 or -ENODEV. */
int device_open(struct file *f);
