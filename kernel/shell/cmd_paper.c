/*
 * explain: a cache in the words of the paper. Its sentences are in explain.txt.
 * paper: the commands, the code and a test of each section, from paper.txt.
 */
#include "drivers/console.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/shell/cmd_kmem.h"
#include "kernel/shell/shell.h"
#include "kernel/shell/text.h"
#include "mm/debug/debug.h"

#define WIDTH    78
#define WORD_MAX 40

/* ---- filled paragraphs -------------------------------------------------- */

/* The text that replaces {key} in a sentence. */
struct value {
    const char *value_key;
    char value_text[WORD_MAX];
};

struct paragraph {
    const struct value *par_values;
    size_t par_count;
    size_t par_column;
    size_t par_length; /* of the word that is not finished */
    char par_word[WORD_MAX + 1];
};

static void end_word(struct paragraph *p)
{
    if (p->par_length == 0)
        return;
    p->par_word[p->par_length] = 0;
    if (p->par_column + 1 + p->par_length > WIDTH) {
        kprintf("\n");
        p->par_column = 0;
    }
    kprintf("%s%s", p->par_column ? " " : "", p->par_word);
    p->par_column += p->par_length + (p->par_column > 0);
    p->par_length = 0;
}

static void paragraph_put(struct paragraph *p, char c)
{
    if (c == ' ' || c == '\n')
        end_word(p);
    else if (p->par_length < WORD_MAX)
        p->par_word[p->par_length++] = c;
}

/* The value for the key that begins at `key` and ends with a brace. */
static const char *paper_value(const struct paragraph *p, const char *key)
{
    for (size_t i = 0; i < p->par_count; i++) {
        size_t n = strlen(p->par_values[i].value_key);

        if (memcmp(p->par_values[i].value_key, key, n) == 0 && key[n] == '}')
            return p->par_values[i].value_text;
    }
    return "?";
}

extern const char __start_shell_explain[], __stop_shell_explain[];

/* Adds the sentences of a section. */
static void say(struct paragraph *p, const char *name)
{
    struct text all = {__start_shell_explain, __stop_shell_explain};
    struct text t = text_section(all, name, NULL);

    for (const char *c = t.text_from; c < t.text_end; c++) {
        if (*c != '{') {
            paragraph_put(p, *c);
            continue;
        }
        for (const char *v = paper_value(p, c + 1); *v; v++)
            paragraph_put(p, *v);
        while (*c != '}')
            c++;
    }
}

static void end_paragraph(struct paragraph *p)
{
    end_word(p);
    kprintf("\n");
    p->par_column = 0;
}

/* ---- explain ------------------------------------------------------------ */

static void say_modes(struct paragraph *p, const char *modes)
{
    char section[] = "mode-?";

    if (strcmp(modes, "-") == 0)
        return;
    say(p, "modes");
    for (; *modes; modes++) {
        section[5] = *modes;
        say(p, section);
    }
    end_paragraph(p);
}

static uintptr_t first_slab(struct kmem_cache *cp)
{
    struct kmem_slab_stat slab;

    for (size_t n = 0; kmem_slab_stat(cp, n, &slab); n++)
        if (slab.stat_freelist)
            return slab.stat_slab;
    return 0;
}

static void explain(const struct kmem_cache_stat *st, uintptr_t first,
                    struct paragraph *p, const char *modes)
{
    say(p, "cache");
    say(p, st->stat_flags & KMEM_STAT_CTOR ? "constructor" : "no-constructor");
    end_paragraph(p);
    say(p, st->stat_flags & KMEM_STAT_LARGE ? "large" : "small");
    if (!(st->stat_flags & KMEM_STAT_LARGE) &&
        st->stat_flags & (KMEM_STAT_CTOR | KMEM_STAT_DTOR))
        say(p, "extra-word");
    end_paragraph(p);
    say(p, "slab");
    end_paragraph(p);
    say_modes(p, modes);
    say(p, "slabs");
    say(p, first ? "first" : "no-first");
    end_paragraph(p);
    say(p, "reap");
    end_paragraph(p);
}

static void set_count(struct value *v, const char *key, size_t n,
                      const char *noun)
{
    v->value_key = key;
    snprintf(v->value_text, WORD_MAX, "%zu%s%s%s", n, *noun ? " " : "", noun,
             *noun && n != 1 ? "s" : "");
}

static int cmd_explain(char **argv)
{
    struct kmem_cache *cp;
    struct kmem_cache_stat st;
    uintptr_t first;

    cp = heap_cache_named(argv[1]);
    if (!cp)
        return 1;
    kmem_cache_stat(cp, &st);
    first = first_slab(cp);

    const struct {
        const char *key;
        size_t n;
        const char *noun;
    } counts[] = {
        {"size", st.stat_size, ""},
        {"pages", st.stat_slab_pages, "page"},
        {"inuse", st.stat_inuse, ""},
        {"buckets", st.stat_hash_size, ""},
        {"objects", st.stat_slab_objects, "object"},
        {"chunk", st.stat_chunk, ""},
        {"unused", st.stat_slab_left, ""},
        {"colours", heap_colours(&st), "colour"},
        {"slabs", st.stat_slabs, "slab"},
        {"full", st.stat_full_slabs, ""},
        {"partial", st.stat_partial_slabs, ""},
        {"free", st.stat_free_slabs, ""},
        {"reapable", st.stat_reapable, ""},
    };
    struct value values[ARRAY_SIZE(counts) + 3] = {
        {"name", ""}, {"modes", ""}, {"first", ""}};
    struct paragraph p = {.par_values = values,
                          .par_count = ARRAY_SIZE(values)};

    strlcpy(values[0].value_text, st.stat_name, WORD_MAX);
    kmem_debug_text(st.stat_modes, values[1].value_text);
    snprintf(values[2].value_text, WORD_MAX, "0x%08lx", (unsigned long)first);
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
        set_count(&values[3 + i], counts[i].key, counts[i].n, counts[i].noun);
    explain(&st, first, &p, values[1].value_text);
    return 0;
}

SHELL_COMMAND(explain, cmd_explain, SHELL_REPORT);

/* ---- paper -------------------------------------------------------------- */

extern const char __start_shell_paper[], __stop_shell_paper[];

static const struct text paper = {__start_shell_paper, __stop_shell_paper};

static void list_sections(void)
{
    struct text t = paper, line, number = {NULL, NULL};

    while (text_line(&t, &line)) {
        if (!text_empty(number)) {
            kprintf("%-6.*s", (int)(number.text_end - number.text_from),
                    number.text_from);
            text_print(line);
        }
        number = text_after(line, "= ");
    }
}

static int cmd_paper(char **argv)
{
    struct text section;

    if (!argv[1]) {
        list_sections();
        return 0;
    }
    section = text_section(paper, argv[1], NULL);
    if (text_empty(section)) {
        shell_error("no section %.32s; there are:", argv[1]);
        list_sections();
        return 1;
    }
    kprintf("%s ", argv[1]);
    text_print(section);
    return 0;
}

static void offer_sections(const struct shell_offer *o)
{
    struct text t = paper, line, number;
    char word[8];

    while (text_line(&t, &line)) {
        number = text_after(line, "= ");
        snprintf(word, sizeof(word), "%.*s",
                 (int)(number.text_end - number.text_from), number.text_from);
        shell_offer(o, word);
    }
}

SHELL_COMMAND(paper, cmd_paper, SHELL_REPORT);
SHELL_WORDS(SECTION, offer_sections);
