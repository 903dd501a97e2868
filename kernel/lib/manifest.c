/*
 * The parser of /etc/servers (kernel/lib/manifest.h): one pass, line by line
 * and word by word; the only memory is for one stanza.
 *
 *     line ──> first word ──> its entry in `entries` ──> takes the other words
 *     `server`, or the end ──> the stanza before goes to the callback
 */
#include "kernel/lib/manifest.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"

#define WORD_MAX 79 /* characters */
#define TEXT_MAX 120

struct reading {
    const char *at;
    const char *end;
    unsigned line;   /* of `at` */
    unsigned stanza; /* the line where it begins, 0: none has begun */
    bool broken;     /* the stanza has an error */
    unsigned errors;
    const struct manifest_reader *reader;
    char word[WORD_MAX + 1]; /* the one read last */
    struct manifest_server server;
};

static void PRINTF_LIKE(3, 4)
    error_at(struct reading *r, unsigned line, const char *fmt, ...)
{
    char text[TEXT_MAX];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    make_printable(text);
    r->errors++;
    r->broken = true;
    r->reader->reader_error(line, text, r->reader->reader_arg);
}

#define WRONG(r, ...) error_at(r, (r)->line, __VA_ARGS__)

/* ---- words -------------------------------------------------------------- */

static bool is_separator(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static bool at_end_of_line(const struct reading *r)
{
    return r->at == r->end || *r->at == '\n';
}

static void skip_blanks(struct reading *r)
{
    while (!at_end_of_line(r) && is_separator(*r->at))
        r->at++;
    if (r->at < r->end && *r->at == '#')
        while (!at_end_of_line(r))
            r->at++;
}

/* Reads the next word of the line into r->word; false: no more. */
static bool next_word(struct reading *r)
{
    size_t n = 0;

    skip_blanks(r);
    if (at_end_of_line(r))
        return false;
    for (; !at_end_of_line(r) && !is_separator(*r->at); r->at++)
        if (n < WORD_MAX)
            r->word[n++] = *r->at == '\0' ? '?' : *r->at;
        else
            n = WORD_MAX + 1;
    r->word[MIN(n, (size_t)WORD_MAX)] = '\0';
    if (n > WORD_MAX)
        WRONG(r, "a word of more than %d characters", WORD_MAX);
    return true;
}

/* Appends the word to a text of words. */
static void add_word(struct reading *r, char *text, size_t size)
{
    size_t n = strlen(text);

    if (n != 0 && n + 1 < size)
        text[n++] = ' ';
    if (strlcpy(text + n, r->word, size - n) >= size - n)
        WRONG(r, "more than %u characters", (unsigned)size - 1);
}

/* ---- numbers ------------------------------------------------------------ */

/* The whole word as a number of at most `most`. */
static bool whole_number(const char *s, uint32_t most, uint32_t *value)
{
    return scan_u32(&s, value) && *s == '\0' && *value <= most;
}

/* The whole word as FIRST-LAST or as one number. */
static bool whole_range(const char *s, struct manifest_range *range)
{
    if (!scan_u32(&s, &range->range_first))
        return false;
    range->range_last = range->range_first;
    if (*s == '-') {
        s++;
        if (!scan_u32(&s, &range->range_last))
            return false;
    }
    return *s == '\0' && range->range_first <= range->range_last;
}

static bool overlaps(const struct manifest_range *a, size_t n,
                     const struct manifest_range *b)
{
    for (size_t i = 0; i < n; i++)
        if (a[i].range_first <= b->range_last &&
            b->range_first <= a[i].range_last)
            return true;
    return false;
}

/* Adds the range in r->word to the stanza's ranges. */
static void add_range(struct reading *r, struct manifest_range *to, uint8_t *n,
                      unsigned most, struct manifest_range range)
{
    if (*n == most)
        WRONG(r, "more than %u ranges", most);
    else if (overlaps(to, *n, &range))
        WRONG(r, "'%s' overlaps one before it", r->word);
    else
        to[(*n)++] = range;
}

/* ---- one function per first word ---------------------------------------- */

static void take_program(struct reading *r)
{
    struct manifest_server *s = &r->server;

    if (s->server_command[0] != '\0')
        WRONG(r, "a second program");
    else if (r->word[0] != '/')
        WRONG(r, "'%s' is not an absolute path", r->word);
    else
        do
            add_word(r, s->server_command, sizeof(s->server_command));
        while (next_word(r));
}

static void take_ports(struct reading *r)
{
    struct manifest_server *s = &r->server;
    struct manifest_range range;

    do {
        if (!whole_range(r->word, &range) || range.range_last > 0xffff)
            WRONG(r, "'%s' is not a range of ports; they are 0x0-0xffff",
                  r->word);
        else
            add_range(r, s->server_port, &s->server_ports, MANIFEST_PORTS,
                      range);
    } while (next_word(r));
}

static void take_irq(struct reading *r)
{
    uint32_t line;

    do {
        if (!whole_number(r->word, MANIFEST_LINES - 1, &line))
            WRONG(r, "'%s' is not an interrupt line; they are 0 to %d", r->word,
                  MANIFEST_LINES - 1);
        else
            r->server.server_irqs |= (uint16_t)(1u << line);
    } while (next_word(r));
}

static void take_memory(struct reading *r)
{
    struct manifest_server *s = &r->server;
    struct manifest_range range;

    do {
        if (!whole_range(r->word, &range) ||
            (range.range_first & PAGE_MASK) != 0 ||
            (range.range_last & PAGE_MASK) != PAGE_MASK)
            WRONG(r, "'%s' is not a range of whole pages, like 0xb8000-0xb8fff",
                  r->word);
        else
            add_range(r, s->server_memory, &s->server_memories, MANIFEST_MEMORY,
                      range);
    } while (next_word(r));
}

static void take_dma(struct reading *r)
{
    uint32_t pages;

    if (!whole_number(r->word, MANIFEST_DMA_MAX, &pages))
        WRONG(r, "'%s' is not a number of pages up to %d", r->word,
              MANIFEST_DMA_MAX);
    else
        r->server.server_dma = (uint16_t)pages;
}

static void take_needs(struct reading *r)
{
    do
        add_word(r, r->server.server_needs, sizeof(r->server.server_needs));
    while (next_word(r));
}

static void take_mounts(struct reading *r)
{
    struct manifest_server *s = &r->server;

    if (r->word[0] != '/')
        WRONG(r, "'%s' is not an absolute path", r->word);
    else if (s->server_mounts[0] != '\0')
        WRONG(r, "a second mount point");
    else
        add_word(r, s->server_mounts, sizeof(s->server_mounts));
}

/* The word is one of two; the second one sets the flag. */
static void take_choice(struct reading *r, const char *off, const char *on,
                        bool *flag)
{
    *flag = strcmp(r->word, on) == 0;
    if (!*flag && strcmp(r->word, off) != 0)
        WRONG(r, "'%s' is neither %s nor %s", r->word, off, on);
}

static void take_start(struct reading *r)
{
    take_choice(r, "boot", "demand", &r->server.server_demand);
}

static void take_restart(struct reading *r)
{
    take_choice(r, "always", "never", &r->server.server_once);
}

/* ---- stanzas ------------------------------------------------------------ */

/* Ends the current stanza. */
static void finish_stanza(struct reading *r)
{
    const char *wrong;

    if (r->stanza == 0)
        return;
    if (!r->broken && r->server.server_command[0] == '\0')
        error_at(r, r->stanza, "server %s has no program",
                 r->server.server_name);
    if (r->broken)
        return;
    wrong = r->reader->reader_server(&r->server, r->reader->reader_arg);
    if (wrong != NULL)
        error_at(r, r->stanza, "server %s: %s", r->server.server_name, wrong);
}

static bool is_name(const char *s)
{
    for (; *s != '\0'; s++)
        if (*s <= ' ' || *s > '~' || *s == '/' || *s == '"' || *s == '\\')
            return false;
    return true;
}

static void take_server(struct reading *r)
{
    finish_stanza(r);
    r->server = (struct manifest_server){.server_ports = 0};
    r->stanza = r->line;
    r->broken = false;
    if (strlen(r->word) > MANIFEST_NAME_MAX || !is_name(r->word))
        WRONG(r, "'%s' is not a name of at most %d characters", r->word,
              MANIFEST_NAME_MAX);
    else
        strlcpy(r->server.server_name, r->word, sizeof(r->server.server_name));
}

/* Each is called with the second word of its line in r->word. */
static const struct entry {
    const char *entry_name;
    void (*entry_take)(struct reading *r);
} entries[] = {
    {"server", take_server},   {"program", take_program}, {"ports", take_ports},
    {"irq", take_irq},         {"memory", take_memory},   {"dma", take_dma},
    {"needs", take_needs},     {"mounts", take_mounts},   {"start", take_start},
    {"restart", take_restart},
};

static void read_manifest_line(struct reading *r)
{
    const struct entry *e = entries;
    const struct entry *end = entries + ARRAY_SIZE(entries);

    if (!next_word(r))
        return;
    while (e < end && strcmp(e->entry_name, r->word) != 0)
        e++;
    if (e == end)
        WRONG(r,
              "'%s' is none of server, program, ports, irq, memory, dma, "
              "needs, mounts, start, restart",
              r->word);
    else if (r->stanza == 0 && e->entry_take != take_server)
        WRONG(r, "'%s' precedes the first server", r->word);
    else if (!next_word(r))
        WRONG(r, "nothing follows '%s'", r->word);
    else {
        e->entry_take(r);
        if (next_word(r))
            WRONG(r, "'%s' is one word too many", r->word);
    }
}

unsigned manifest_read(const char *text, size_t n,
                       const struct manifest_reader *reader)
{
    struct reading r = {.at = text, .end = text + n, .reader = reader};

    for (r.line = 1; r.at < r.end; r.line++) {
        read_manifest_line(&r);
        while (!at_end_of_line(&r))
            r.at++;
        if (r.at < r.end)
            r.at++;
    }
    finish_stanza(&r);
    return r.errors;
}
