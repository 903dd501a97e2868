/*
 * System calls on handles: open files, pipes, the console.
 *
 * The handle is checked first, then numbers, then pointers. The object of a
 * handle is borrowed during the call: only the caller can close the handle.
 */
#include "kernel/fs/file.h"
#include "kernel/fs/tty.h"
#include "kernel/syscall/path.h"
#include "kernel/syscall/syscall.h"
#include "kernel/object/handle.h"

static inline struct handle_table *handles(void)
{
    return task_self()->task_handles;
}

/* The open file of a handle, or NULL. */
static inline struct file *file_at(uint32_t h)
{
    return (struct file *)handle_object(handles(), (int)h, &file_type);
}

/* The open file of a handle, for a call that moves the bytes of a buffer: 0 or
 * an error. */
static inline int file_and_buffer(uint32_t h, uint32_t buf, uint32_t n,
                                  struct file **f)
{
    *f = file_at(h);
    if (unlikely(*f == NULL))
        return -EBADF;
    if (unlikely(n > INT32_MAX))
        return -EINVAL;
    return likely(user_range((void __user *)buf, n)) ? 0 : -EFAULT;
}

/* ---- bytes -------------------------------------------------------------- */

int32_t sys_read(uint32_t a, uint32_t b, uint32_t c)
{
    struct file *f;
    int error = file_and_buffer(a, b, c, &f);

    return unlikely(error != 0) ? error : file_read(f, (void *)b, c);
}

int32_t sys_write(uint32_t a, uint32_t b, uint32_t c)
{
    struct file *f;
    int error = file_and_buffer(a, b, c, &f);

    return unlikely(error != 0) ? error : file_write(f, (const void *)b, c);
}

int32_t sys_lseek(uint32_t a, uint32_t b, uint32_t c)
{
    struct file *f = file_at(a);

    return f == NULL ? -EBADF : file_seek(f, (off_t)b, (int)c);
}

int32_t sys_ftruncate(uint32_t a, uint32_t b, NO_C)
{
    struct file *f = file_at(a);

    return f == NULL ? -EBADF : file_truncate(f, b);
}

int32_t sys_getdents(uint32_t a, uint32_t b, uint32_t c)
{
    struct file *f;
    int error = file_and_buffer(a, b, c, &f);

    return unlikely(error != 0) ? error : file_getdents(f, (void *)b, c);
}

/* A port has no other attributes than its type. */
int32_t sys_fstat(uint32_t a, uint32_t b, NO_C)
{
    struct object *o = handle_object(handles(), (int)a, NULL);
    struct stat st = {.st_type = FILE_PORT};
    int error = 0;

    if (o == NULL)
        return -EBADF;
    if (o->object_type == &file_type)
        error = file_stat((struct file *)o, &st);
    return error != 0 ? error : copy_to_user((void __user *)b, &st, sizeof(st));
}

/* ---- handles ------------------------------------------------------------ */

int32_t sys_open(uint32_t a, uint32_t b, NO_C)
{
    struct file *f;
    char *path;
    int error = handle_reserve(handles(), 1);

    if (error != 0)
        return error;
    error = path_copy_in(a, &path);
    if (error != 0)
        return error;
    error = file_open(path, task_self()->task_cwd, b, &f);
    path_free(path);
    if (error != 0)
        return error;
    return handle_install(handles(), &f->file_object,
                          b & O_CLOEXEC ? HANDLE_CLOEXEC : 0);
}

int32_t sys_close(uint32_t a, NO_BC)
{
    return handle_close(handles(), (int)a);
}

/* The new handle survives exec even if the old one does not. */
int32_t sys_dup(uint32_t a, NO_BC)
{
    const struct handle *slot = handle_slot(handles(), (int)a);

    if (slot == NULL)
        return -EBADF;
    return handle_add(handles(), object_get(slot->handle_object),
                      slot->handle_flags & ~HANDLE_CLOEXEC);
}

int32_t sys_dup2(uint32_t a, uint32_t b, NO_C)
{
    const struct handle *slot = handle_slot(handles(), (int)a);
    struct object *o;
    int error;

    if (slot == NULL)
        return -EBADF;
    if (a == b)
        return (int32_t)b;
    o = object_get(slot->handle_object);
    error = handle_install_at(handles(), (int)b, o,
                              slot->handle_flags & ~HANDLE_CLOEXEC);
    if (error != 0) {
        object_put(o);
        return error;
    }
    return (int32_t)b;
}

int32_t sys_pipe(uint32_t a, NO_BC)
{
    struct handle_table *t = handles();
    struct file *read_end, *write_end;
    int32_t fd[2];
    int error;

    if (!user_range((void __user *)a, sizeof(fd)))
        return -EFAULT;
    error = handle_reserve(t, 2);
    if (error == 0)
        error = pipe_create(&read_end, &write_end);
    if (error != 0)
        return error;
    fd[0] = handle_install(t, &read_end->file_object, 0);
    fd[1] = handle_install(t, &write_end->file_object, 0);
    error = user_copy((void *)a, fd, sizeof(fd));
    if (unlikely(error != 0)) {
        handle_close(t, fd[0]);
        handle_close(t, fd[1]);
    }
    return error;
}

/* ---- the console -------------------------------------------------------- */

/* 0, or the error for a handle that is not the console's. */
static int check_console(uint32_t h)
{
    const struct file *f = file_at(h);

    if (f == NULL)
        return -EBADF;
    return tty_is(f) ? 0 : -ENOTTY;
}

int32_t sys_ttymode(uint32_t a, uint32_t b, NO_C)
{
    int error = check_console(a);

    return error != 0 ? error : tty_set_mode((int)b);
}

int32_t sys_tcsetpgrp(uint32_t a, uint32_t b, NO_C)
{
    int error = check_console(a);

    return error != 0 ? error : tty_set_group((pid_t)b);
}
