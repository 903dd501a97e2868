/*
 * file PATH…: the kind of a file's contents, by its first bytes.
 */
#include "user/lib/ctype.h"
#include "user/lib/err.h"
#include "user/lib/stdio.h"
#include "user/lib/string.h"

static uint8_t head[512];

static bool begins(const char *with, size_t n)
{
    return memcmp(head, with, n) == 0;
}

static bool is_text(size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (head[i] < 0x80 && !isprint(head[i]) && !isspace(head[i]))
            return false;
    return true;
}

static const char *kind_of(size_t n)
{
    if (n == 0)
        return "empty";
    if (n >= 52 && begins("\177ELF\1\1", 6))
        return head[16] == 2 && head[18] == 3 ? "ELF program, 32 bits, i386"
                                              : "ELF file, 32 bits";
    if (n >= 4 && begins("\177ELF", 4))
        return "ELF file of another kind";
    if (n == sizeof(head) && memcmp(head + 257, "ustar", 5) == 0)
        return "tar archive";
    if (n >= 2 && begins("#!", 2))
        return "script";
    return is_text(n) ? "text" : "data";
}

/* NULL and errno if the file cannot be read. */
static const char *kind_of_path(const char *path)
{
    struct stat st;
    ssize_t n;
    int handle;

    if (stat(path, &st) < 0)
        return NULL;
    if (st.st_type == FILE_DIRECTORY)
        return "directory";
    if (st.st_type == FILE_DEVICE)
        return "device";
    handle = open(path, O_RDONLY);
    if (handle < 0)
        return NULL;
    n = read(handle, head, sizeof(head));
    close(handle);
    return n < 0 ? NULL : kind_of((size_t)n);
}

int main(int argc, char **argv)
{
    int status = 0;

    if (getopt(argc, argv, "") != -1 || optind == argc)
        usage("PATH...");
    for (; optind < argc; optind++) {
        const char *kind = kind_of_path(argv[optind]);

        if (kind != NULL) {
            putname(argv[optind]);
            printf(": %s\n", kind);
        } else {
            warn("%s", argv[optind]);
            status = 1;
        }
    }
    return status;
}
