/*
 * exec: reads arguments and loads a program into a new address space.
 *
 * The new program's stack, from the top, as in figure 3-31 of the System V ABI
 * for the i386:
 *
 *     0x00500000  strings of the environment and the arguments
 *                 NULL
 *                 pointers to the environment
 *                 NULL
 *                 pointers to the arguments
 *     esp ──────> argc
 */
#include "kernel/abi/errno.h"
#include "kernel/fs/inode.h"
#include "kernel/lib/string.h"
#include "kernel/syscall/process.h"
#include "kernel/vm/elf.h"
#include "mm/kmem.h"

/* ---- arguments ---------------------------------------------------------- */

/* Appends one string to the text; the pointers must fit on the stack too. */
static int add_string(struct exec_args *args, const char *s, bool user)
{
    size_t pointers = (args->args_argc + args->args_envc + 4) * sizeof(char *);
    size_t room = ARG_MAX - args->args_used;
    char *to = args->args_text + args->args_used;
    int n;

    if (room <= pointers)
        return -E2BIG;
    room -= pointers;
    if (user)
        n = copy_string_from_user(to, s, room);
    else
        n = strlcpy(to, s, room) >= room ? -ENAMETOOLONG : (int)strlen(s);
    if (n < 0)
        return n == -ENAMETOOLONG ? -E2BIG : n;
    args->args_used += (uint32_t)n + 1;
    return 0;
}

static int add_strings(struct exec_args *args, const char *const array[],
                       bool user, uint32_t *count)
{
    const char *s;
    int error = 0;

    for (; error == 0 && array != NULL; ++*count) {
        const char *const *at = &array[*count];

        if (user && !user_range(at, sizeof(s)))
            return -EFAULT;
        error = user_copy(&s, at, sizeof(s));
        if (error != 0 || s == NULL)
            break;
        error = add_string(args, s, user);
    }
    return error;
}

int exec_args_copy(struct exec_args *args, const char *const argv[],
                   const char *const envp[], bool user)
{
    int error;

    *args = (struct exec_args){.args_text = kmem_alloc(ARG_MAX, KM_NOSLEEP)};
    if (args->args_text == NULL)
        return -ENOMEM;
    error = add_strings(args, argv, user, &args->args_argc);
    if (error == 0)
        error = add_strings(args, envp, user, &args->args_envc);
    if (error != 0)
        exec_args_free(args);
    return error;
}

void exec_args_free(struct exec_args *args)
{
    kmem_free(args->args_text, ARG_MAX);
}

/* ---- the new stack ------------------------------------------------------ */

/* Copies from the kernel into a space in which no task runs yet. */
static int copy_to_space(struct space *s, uaddr_t to, const void *from,
                         size_t n)
{
    return space_transfer(s, to, NULL, (uaddr_t)from, n);
}

/* The words are made after the strings, where add_string left room. */
static int put_args(struct space *s, const struct exec_args *args,
                    uint32_t *esp)
{
    uaddr_t text = (SPACE_STACK_TOP - args->args_used) & ~15u;
    uint32_t words = args->args_argc + args->args_envc + 3;
    uint32_t used = args->args_used;
    uint32_t *word = (uint32_t *)(args->args_text + ROUND_UP(used, 4));
    int error = copy_to_space(s, text, args->args_text, used);

    *esp = (text - words * sizeof(*word)) & ~15u;
    word[0] = args->args_argc;
    used = 0;
    for (uint32_t i = 1; i < words; i++) {
        bool end = i == args->args_argc + 1 || i == words - 1;

        word[i] = end ? 0 : text + used;
        if (!end)
            used += (uint32_t)strlen(args->args_text + used) + 1;
    }
    return error != 0 ? error
                      : copy_to_space(s, *esp, word, words * sizeof(*word));
}

/* ---- loading ------------------------------------------------------------ */

const char *exec_name(const char *path)
{
    const char *name = path;

    for (; *path != '\0'; path++)
        if (path[0] == '/' && path[1] != '\0')
            name = path + 1;
    return name;
}

static ssize_t read_program(void *arg, uint32_t offset, void *buf, size_t n)
{
    return inode_read(arg, offset, buf, n);
}

struct space *exec_load(struct inode *program, const struct exec_args *args,
                        struct session *session, uint32_t *entry, uint32_t *esp,
                        int *error)
{
    struct space *s = space_create(session);

    if (s == NULL) {
        *error = -ENOMEM;
        return NULL;
    }
    if (program->inode_type == FILE_DIRECTORY)
        *error = -EISDIR;
    else if (program->inode_type != FILE_REGULAR ||
             program->inode_fs->fs_ops->fs_read == NULL)
        *error = -EACCES;
    else
        *error = elf_load(s, read_program, program, entry);
    if (*error == 0)
        *error = put_args(s, args, esp);
    if (*error == 0)
        return s;
    space_destroy(s);
    return NULL;
}
