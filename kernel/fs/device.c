/*
 * Devices without state: null, zero and the debug port.
 */
#include "kernel/fs/device.h"
#include "drivers/debugcon.h"
#include "kernel/abi/errno.h"
#include "kernel/fs/tty.h"
#include "kernel/vm/user.h"

static ssize_t read_nothing(struct file *f UNUSED, void *buf UNUSED,
                            size_t n UNUSED)
{
    return 0;
}

static ssize_t write_nothing(struct file *f UNUSED, const void *buf UNUSED,
                             size_t n)
{
    return (ssize_t)n;
}

static ssize_t read_zeroes(struct file *f UNUSED, void *buf, size_t n)
{
    size_t done = 0;
    int error = 0;

    while (error == 0 && done < n && !task_killed()) {
        size_t part = MIN(n - done, PAGE_SIZE);

        error = user_zero((uint8_t *)buf + done, part);
        if (error == 0)
            done += part;
    }
    return done > 0 ? (ssize_t)done : error;
}

/* ---- the debug port ----------------------------------------------------- */

/* Writes each line, up to a newline or the end of the text, as a unit, so that
 * lines of the kernel do not split it. */
static ssize_t write_debug(struct file *f UNUSED, const void *buf, size_t n)
{
    char text[DEBUGCON_LINE_MAX + 1];
    size_t done = 0;

    while (done < n && !task_killed()) {
        size_t have = MIN(n - done, sizeof(text));
        int error = user_copy(text, (const uint8_t *)buf + done, have);
        size_t len = 0;

        while (error == 0 && len < have && text[len] != '\n')
            len++;
        if (len == sizeof(text))
            error = -EMSGSIZE;
        if (error != 0)
            return done > 0 ? (ssize_t)done : error;
        debugcon_line(text, len);
        done += MIN(len + 1, n - done);
    }
    return (ssize_t)done;
}

/* ---- the devices -------------------------------------------------------- */

static const struct file_ops null_ops = {read_nothing, write_nothing, file_free,
                                         NULL};
static const struct file_ops zero_ops = {read_zeroes, write_nothing, file_free,
                                         NULL};
static const struct file_ops debug_ops = {read_nothing, write_debug, file_free,
                                          NULL};

static const struct {
    const char *name;
    const struct file_ops *ops;
} devices[] = {
    [DEVICE_CONSOLE] = {"console", &tty_ops},
    [DEVICE_NULL] = {"null", &null_ops},
    [DEVICE_ZERO] = {"zero", &zero_ops},
    [DEVICE_DEBUG] = {"debug", &debug_ops},
};

const char *device_name(uint32_t device)
{
    return device < ARRAY_SIZE(devices) ? devices[device].name : NULL;
}

int device_open(struct file *f)
{
    uint32_t device = f->file_inode->inode_device;

    if (device_name(device) == NULL)
        return -ENODEV;
    f->file_ops = devices[device].ops;
    return 0;
}
