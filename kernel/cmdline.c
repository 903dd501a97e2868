/*
 * Kernel options: the line is read here, and the options of the heap and of
 * memory are registered here.
 *
 * The line is a row of words. run= takes all that follows it, spaces and
 * semicolons included, so it comes last; quotes around its value are dropped.
 * A word may be in quotes as a whole, with \ before quotes inside: GRUB quotes
 * arguments with blanks like this; a quoted run= ends with its word. The first
 * word may be the kernel's own file name, which boot loaders put there.
 */
#include "kernel/cmdline.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/edit_distance.h"
#include "kernel/lib/string.h"
#include "mm/debug/debug.h"
#include "mm/inspect/kmem_stat.h"

#define LINE_MAX 512

static char line[LINE_MAX];
static size_t mem_limit = SIZE_MAX;

size_t cmdline_mem_limit(void)
{
    return mem_limit;
}

/* ---- the options -------------------------------------------------------- */

static bool set_mem(char *value)
{
    uint32_t mib;

    if (!parse_u32(value, &mib) || mib == 0 || mib > 4095)
        return false;
    mem_limit = MIB(mib);
    return true;
}

static bool set_ws(char *value)
{
    uint32_t seconds;

    if (strcmp(value, "inf") == 0) {
        kmem_ws_interval = KMEM_WS_INFINITE;
        return true;
    }
    if (!parse_u32(value, &seconds) || seconds > 1000000)
        return false;
    kmem_ws_interval = seconds * 1000;
    return true;
}

static struct {
    unsigned modes;
    const char *names; /* NULL: all caches */
} debug;

/* LETTERS or LETTERS,cache,cache … */
static bool set_debug(char *value)
{
    const char *comma = strchr(value, ',');
    unsigned modes;
    char bad;

    if (!kmem_debug_letters(value, comma, &modes, &bad) || modes == 0 ||
        (comma != NULL && comma[1] == '\0'))
        return false;
    debug.modes = modes;
    debug.names = comma == NULL ? NULL : comma + 1;
    kmem_debug_boot(modes, debug.names);
    return true;
}

/* A cache whose name was probably meant by `name`, or NULL. */
static struct kmem_cache *nearest_cache(const char *name)
{
    struct kmem_cache_stat st;

    for (unsigned edits = 1; edits <= edit_distance_most(name); edits++)
        for (struct kmem_cache *cp = kmem_cache_first(); cp != NULL;
             cp = kmem_cache_next(cp)) {
            kmem_cache_stat(cp, &st);
            if (edit_distance_within(name, st.stat_name, edits))
                return cp;
        }
    return NULL;
}

/* Says what becomes of a name in kmem.debug=; nothing if its cache has all
 * modes. */
static void report_debugged(const char *name)
{
    struct kmem_cache *cp = kmem_cache_find(name);
    unsigned has = cp == NULL ? 0 : kmem_debug_modes(cp);
    struct kmem_cache_stat st;
    char text[8];

    if (cp != NULL && has == debug.modes)
        return;
    if (cp != NULL) {
        kprintf("kmem.debug=: the cache %s is without modes %s\n", name,
                kmem_debug_text(debug.modes & ~has, text));
        return;
    }
    kprintf("kmem.debug=: no cache is called %s yet; it takes effect when one "
            "is created",
            name);
    cp = nearest_cache(name);
    if (cp != NULL) {
        kmem_cache_stat(cp, &st);
        kprintf("; did you mean %s?", st.stat_name);
    }
    kprintf("\n");
}

/* After boot has created its caches. */
static void report_names(const void *arg UNUSED)
{
    char name[LINE_MAX];

    for (const char *p = debug.names; p != NULL && *p != '\0';) {
        size_t n = strlen(p);
        const char *comma = strchr(p, ',');

        if (comma != NULL)
            n = (size_t)(comma - p);
        strlcpy(name, p, n + 1);
        report_debugged(name);
        p += n + (comma != NULL);
    }
}

HOOK(HOOK_PROMPT, report_names);

bool cmdline_debugs(void)
{
#ifdef CONFIG_DEBUG
    return true;
#else
    return debug.modes != 0;
#endif
}

BOOT_OPTION(debug, "kmem.debug=", "kmem.debug=LETTERS[,...]",
            "debugging modes: FPZUTSG; of which caches (all)", set_debug);
BOOT_OPTION(mem, "mem=", "mem=MIB", "use no more than this much memory",
            set_mem);
BOOT_OPTION(ws, "ws=", "ws=SECONDS|inf",
            "working-set interval of the slab caches (default 15)", set_ws);

/* ---- the line ----------------------------------------------------------- */

static bool apply(const struct boot_option *o, char *word)
{
    char *value = word + strlen(o->option_name);

    if (o->option_set(value))
        return true;
    kprintf("option %s: %s is not a value for it, ignored; it is %s\n",
            o->option_name, value[0] != '\0' ? value : "nothing",
            o->option_form);
    return false;
}

/* Drops one pair of quotes around the whole of `s`, which ends the line. */
static void unquote(char *s)
{
    size_t n = strlen(s);

    while (n > 0 && s[n - 1] == ' ')
        s[--n] = '\0';
    if (n >= 2 && (s[0] == '"' || s[0] == '\'') && s[n - 1] == s[0]) {
        s[n - 1] = '\0';
        memmove(s, s + 1, n - 1);
    }
}

/* The word in quotes at `word`, without them; *p moves past it. */
static char *quoted_word(char *word, char **p)
{
    char quote = *word;
    char *in = word + 1;
    char *out = word;

    for (; *in != quote && *in != '\0'; in++) {
        if (*in == '\\' && in[1] != '\0')
            in++;
        *out++ = *in;
    }
    *p = *in == '\0' ? in : in + 1;
    *out = '\0';
    return word;
}

/* The word at *p, ended with a NUL; *p moves past it. NULL at the end. */
static char *cut_word(char **p)
{
    char *word = *p;

    while (*word == ' ')
        word++;
    if (*word == '\0')
        return NULL;
    if (*word == '"' || *word == '\'')
        return quoted_word(word, p);
    *p = word;
    if (strncmp(word, "run=", 4) == 0) {
        unquote(word + 4);
        *p += strlen(word);
        return word;
    }
    while (**p != ' ' && **p != '\0')
        (*p)++;
    if (**p == ' ')
        *(*p)++ = '\0';
    return word;
}

unsigned cmdline_read(char *text, const struct boot_option *table, size_t n)
{
    unsigned ignored = 0;
    bool first = true;
    char *p = text;
    char *word;

    for (; (word = cut_word(&p)) != NULL; first = false) {
        bool file_name = first && strchr(word, '=') == NULL &&
                         (strchr(word, '/') || strstr(word, ".elf"));
        const struct boot_option *o = table;

        while (o < table + n &&
               strncmp(word, o->option_name, strlen(o->option_name)) != 0)
            o++;
        if (o < table + n) {
            ignored += !apply(o, word);
        } else if (!file_name) {
            kprintf("option %s is not known, ignored; there are", word);
            for (o = table; o < table + n; o++)
                kprintf(" %s", o->option_form);
            kprintf("\n");
            ignored++;
        }
    }
    return ignored;
}

void cmdline_parse(const char *text)
{
    if (strlcpy(line, text, sizeof(line)) >= sizeof(line))
        kprintf("the kernel's command line is cut after %u characters\n",
                LINE_MAX - 1);
    cmdline_read(line, __start_boot_options, boot_option_count());
}
