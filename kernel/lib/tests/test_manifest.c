/*
 * The parser of the manifest (kernel/lib/manifest.c): valid input, errors and
 * their lines, and random text.
 */
#include "tools/workshop/ktest/ktest.h"
#include "kernel/lib/manifest.h"
#include "kernel/lib/string.h"

#define SEEN_MAX 4

static struct manifest_server seen[SEEN_MAX];
static unsigned seen_count;
static unsigned last_line;
static char last_error[160];
static const char *objection; /* returned by the callback */

static const char *take(const struct manifest_server *s, void *arg)
{
    KT_TRUE(arg == seen);
    if (seen_count < SEEN_MAX)
        seen[seen_count] = *s;
    seen_count++;
    return objection;
}

static void error(unsigned line, const char *what, void *arg)
{
    KT_TRUE(arg == seen);
    last_line = line;
    strlcpy(last_error, what, sizeof(last_error));
}

static unsigned read_bytes(const char *text, size_t n)
{
    static const struct manifest_reader reader = {take, error, seen};

    seen_count = 0;
    last_line = 0;
    last_error[0] = '\0';
    objection = NULL;
    memset(seen, 0, sizeof(seen));
    return manifest_read(text, n, &reader);
}

static unsigned read(const char *text)
{
    return read_bytes(text, strlen(text));
}

/* ---- what is right ------------------------------------------------------ */

KTEST(manifest, a_whole_stanza)
{
    const struct manifest_server *s = seen;

    KT_EQ(read("# comment\n"
               "server ata # another\n"
               "  program  /sbin/ata  -v   two#not a comment\n"
               "\tports    0x1f0-0x1f7 0x3F6 1014-1015x#\n"),
          1);
    KT_EQ(read("# comment\n"
               "\n"
               "server ata # another\n"
               "  program  /sbin/ata  -v   two#part of a word\n"
               "\tports    0x1f0-0x1F7 0X3f6\r\n"
               "\tports 1000 # and more\n"
               "irq 14 3\n"
               "memory 0xb8000-0xb8fff 4096-8191\n"
               "dma 4\n"
               "needs names\n"
               "needs uart rtc\n"
               "start demand\n"
               "restart never"),
          0);
    KT_REQUIRE(seen_count == 1);
    KT_TRUE(strcmp(s->server_name, "ata") == 0);
    KT_TRUE(strcmp(s->server_command, "/sbin/ata -v two#part of a word") == 0);
    KT_EQ(manifest_path_length(s), 9);
    KT_EQ(s->server_ports, 3);
    KT_EQ(s->server_port[0].range_first, 0x1f0);
    KT_EQ(s->server_port[0].range_last, 0x1f7);
    KT_EQ(s->server_port[1].range_first, 0x3f6);
    KT_EQ(s->server_port[1].range_last, 0x3f6);
    KT_EQ(s->server_port[2].range_first, 1000);
    KT_EQ(s->server_irqs, 1u << 14 | 1u << 3);
    KT_EQ(s->server_memories, 2);
    KT_EQ(s->server_memory[0].range_first, 0xb8000);
    KT_EQ(s->server_memory[0].range_last, 0xb8fff);
    KT_EQ(s->server_memory[1].range_first, 4096);
    KT_EQ(s->server_dma, 4);
    KT_TRUE(strcmp(s->server_needs, "names uart rtc") == 0);
    KT_TRUE(s->server_demand && s->server_once);
}

KTEST(manifest, a_small_stanza)
{
    KT_EQ(read("server a\nprogram /a\nstart boot\nrestart always"), 0);
    KT_REQUIRE(seen_count == 1);
    KT_EQ(seen->server_ports + seen->server_memories + seen->server_irqs +
              seen->server_dma,
          0);
    KT_TRUE(!seen->server_demand && !seen->server_once);
    KT_EQ(manifest_path_length(seen), 2);
}

KTEST(manifest, stanzas_in_their_order)
{
    KT_EQ(read("server a\nprogram /a\nserver b\nprogram /b\nirq 1\n\n\n"
               "server c\nprogram /c\n"),
          0);
    KT_EQ(seen_count, 3);
    KT_TRUE(strcmp(seen[1].server_name, "b") == 0);
    KT_EQ(seen[0].server_irqs, 0);
    KT_EQ(seen[1].server_irqs, 2);
    KT_EQ(seen[2].server_irqs, 0);
}

KTEST(manifest, nothing)
{
    KT_EQ(read(""), 0);
    KT_EQ(read("\n\n  \n#"), 0);
    KT_EQ(read_bytes(NULL, 0), 0);
    KT_EQ(seen_count, 0);
}

KTEST(manifest, the_largest_of_everything)
{
    KT_EQ(read("server 123456789012345\nprogram /a\n"
               "ports 0-65535\nmemory 0-4294967295\ndma 1024\n"
               "irq 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 15\n"),
          0);
    KT_EQ(seen_count, 1);
    KT_EQ(seen->server_irqs, 0xffff);
    KT_EQ(seen->server_port[0].range_last, 0xffff);
    KT_EQ(seen->server_memory[0].range_last, UINT32_MAX);
    KT_EQ(seen->server_dma, MANIFEST_DMA_MAX);
    KT_EQ(read("server a\nprogram /a\nports 1 2 3 4\nports 5 6 7 8\n"
               "memory 0-0xfff 0x1000-0x1fff 0x2000-0x2fff 0x3000-0x3fff\n"),
          0);
    KT_EQ(seen->server_ports, MANIFEST_PORTS);
    KT_EQ(seen->server_memories, MANIFEST_MEMORY);
}

/* ---- errors ------------------------------------------------------------- */

#define WORD40 "1234567890123456789012345678901234567890"

static const struct {
    unsigned line;
    const char *text; /* after the lines "server x", "program /x" */
    const char *what; /* is part of the message */
} mistakes[] = {
    {3, "port 1", "'port' is none of server"},
    {3, "ports", "nothing follows 'ports'"},
    {3, "ports # 1", "nothing follows 'ports'"},
    {3, "ports x", "'x' is not a range of ports"},
    {3, "ports 0x10000", "not a range of ports"},
    {3, "ports 65536", "not a range of ports"},
    {3, "ports 0-65536", "not a range of ports"},
    {3, "ports 4294967297", "not a range of ports"},
    {3, "ports 0x100000001", "not a range of ports"},
    {3, "ports 99999999999999999999999999999999", "not a range of ports"},
    {3, "ports 0x", "not a range of ports"},
    {3, "ports 1-", "not a range of ports"},
    {3, "ports -1", "not a range of ports"},
    {3, "ports 1-2-3", "not a range of ports"},
    {3, "ports 1f0", "not a range of ports"},
    {3, "ports 2-1", "not a range of ports"},
    {3, "ports 1-5 5-6", "'5-6' overlaps"},
    {3, "ports 5-6 1-5", "'1-5' overlaps"},
    {4, "ports 0-65535\nports 3", "'3' overlaps"},
    {3, "ports 1 2 3 4 5 6 7 8 9", "more than 8 ranges"},
    {3, "irq 16", "'16' is not an interrupt line"},
    {3, "irq 1 x", "'x' is not an interrupt line"},
    {3, "irq 4294967296", "not an interrupt line"},
    {3, "memory 0xb8000", "not a range of whole pages"},
    {3, "memory 0xb8000-0xb8ffe", "not a range of whole pages"},
    {3, "memory 0xb8001-0xb8fff", "not a range of whole pages"},
    {3,
     "memory 0-0xfff 0x1000-0x1fff 0x2000-0x2fff 0x3000-0x3fff "
     "0x4000-0x4fff",
     "more than 4 ranges"},
    {3, "memory 0-0x1fff 0x1000-0x1fff", "overlaps"},
    {3, "dma 1025", "'1025' is not a number of pages"},
    {3, "dma 1 2", "'2' is one word too many"},
    {3, "program /y", "a second program"},
    {4, "mounts /a\nmounts /b", "a second mount point"},
    {3, "start soon", "'soon' is neither boot nor demand"},
    {3, "start boot demand", "one word too many"},
    {3, "restart maybe", "neither always nor never"},
    {3, "needs " WORD40 " " WORD40, "more than 63 characters"},
    {4, "server y\nprogram /" WORD40 WORD40,
     "a word of more than 79 characters"},
    {4, "\nports \001", "'?' is not a range"},
    {3, "server y", "server y has no program"},
    {3, "server y\nirq 1", "server y has no program"},
    {3, "server", "nothing follows 'server'"},
    {3, "server 1234567890123456\nprogram /y", "not a name of at most 15"},
    {3, "server a/b\nprogram /y", "not a name of at most 15"},
    {3, "server a\"b\nprogram /y", "not a name of at most 15"},
    {4, "server y\nprogram y", "'y' is not an absolute path"},
    {4, "server y\nprogram /" WORD40 " " WORD40 " " WORD40,
     "more than 95 characters"},
};

KTEST(manifest, every_mistake_has_its_line)
{
    char text[400];

    for (size_t i = 0; i < ARRAY_SIZE(mistakes); i++) {
        unsigned errors;

        strlcpy(text, "server x\nprogram /x\n", sizeof(text));
        strlcpy(text + strlen(text), mistakes[i].text, 300);
        errors = read(text);
        if (errors == 0 || strstr(last_error, mistakes[i].what) == NULL ||
            last_line != mistakes[i].line)
            KT_FAIL("%s: %u errors, line %u: %s", mistakes[i].text, errors,
                    last_line, last_error);
        /* Only a stanza without a mistake counts: x, where another follows. */
        KT_EQ(seen_count, strncmp(mistakes[i].text, "server ", 7) == 0);
    }
}

KTEST(manifest, a_mistake_takes_its_stanza_alone)
{
    KT_EQ(read("irq 3\nserver a\nprogram /a\nserver b\nprogram /b\nirq 99\n"
               "irq 98\nserver c\nprogram /c"),
          3);
    KT_EQ(seen_count, 2);
    KT_TRUE(strcmp(seen[0].server_name, "a") == 0);
    KT_TRUE(strcmp(seen[1].server_name, "c") == 0);
    KT_EQ(last_line, 7);
}

static const char *object_to(const struct manifest_server *s, void *arg)
{
    (void)s;
    (void)arg;
    return "not today";
}

KTEST(manifest, the_reader_may_refuse_a_stanza)
{
    static const struct manifest_reader reader = {object_to, error, seen};
    const char *text = "\n\nserver a\nprogram /a\n\nserver b\nprogram /b";

    KT_EQ(manifest_read(text, strlen(text), &reader), 2);
    KT_EQ(last_line, 6);
    KT_TRUE(strcmp(last_error, "server b: not today") == 0);
}

/* ---- anything ----------------------------------------------------------- */

static uint32_t seed;

static uint32_t below(uint32_t n)
{
    seed = seed * 1103515245 + 12345;
    return (seed >> 16) % n;
}

/* Half words of the language, half bytes. */
static size_t make_text(char *text, size_t size)
{
    static const char *const words[] = {
        "server ", "program ", "ports ", "irq ",  "memory ", "dma ",   "needs ",
        "start ",  "restart ", "boot",   "never", "0x1f0",   "-",      "9",
        "/sbin/a", " ",        "\n",     "\n",    "#",       "0xb8000"};
    size_t n = 0;

    if (below(4) != 0)
        n = strlcpy(text, "server a\nprogram /a\n", size);
    while (n + 10 < size && below(100) != 0) {
        if (below(8) == 0) {
            text[n++] = (char)below(256);
        } else {
            const char *word = words[below(ARRAY_SIZE(words))];

            memcpy(text + n, word, strlen(word));
            n += strlen(word);
        }
    }
    return n;
}

static bool plausible(const struct manifest_server *s)
{
    for (unsigned i = 0; i < s->server_ports; i++)
        if (s->server_port[i].range_first > s->server_port[i].range_last ||
            s->server_port[i].range_last > 0xffff)
            return false;
    return s->server_ports <= MANIFEST_PORTS &&
           s->server_memories <= MANIFEST_MEMORY &&
           s->server_dma <= MANIFEST_DMA_MAX && s->server_command[0] == '/' &&
           s->server_name[0] != '\0' &&
           strnlen(s->server_name, MANIFEST_NAME_MAX + 1) <= MANIFEST_NAME_MAX;
}

KTEST(manifest, any_text_is_read_to_its_end)
{
    static char text[600];
    unsigned good = 0, bad = 0;

    for (seed = 1; seed < 4000;) {
        uint32_t next = seed + 1;
        size_t n = make_text(text, sizeof(text));

        bad += read_bytes(text, n);
        good += seen_count;
        for (unsigned i = 0; i < MIN(seen_count, (unsigned)SEEN_MAX); i++)
            KT_TRUE(plausible(&seen[i]));
        seed = next;
    }
    KT_GE(good, 100);
    KT_GE(bad, 1000);
}
