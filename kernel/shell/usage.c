/*
 * Comparing words with the usage of commands: see usage.h.
 */
#include "kernel/shell/usage.h"
#include "drivers/console.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/shell/shell.h"
#include "kernel/shell/words.h"

/* ---- the text of a form ------------------------------------------------- */

static bool ends_form(char c)
{
    return c == '\n' || c == '\0';
}

static bool ends(char c)
{
    return c == ' ' || c == ']' || ends_form(c);
}

/* The end of the form at `p`. */
static const char *form_end(const char *p)
{
    while (!ends_form(*p))
        p++;
    return p;
}

/* The next form of a usage, or NULL. */
static const char *next_form(const char *form)
{
    const char *end = form_end(form);

    return *end == '\n' ? end + 1 : NULL;
}

/* The end of the element at `p`. */
static const char *end_of(const char *p)
{
    while (!ends(*p))
        p++;
    return p;
}

/* Whether an option is at `p`: -j, not -SIGNAL. */
static bool is_option(const char *p)
{
    return *p == '-' && (ends(p[2]) || p[2] == '|');
}

/* The value of the option at `p`, or NULL. */
static const char *option_value(const char *p)
{
    return p[2] == ' ' && p[3] != '[' && p[3] != '-' ? p + 3 : NULL;
}

/* The option -letter of a form (0: any), or NULL. */
static const char *find_option(const char *form, char letter)
{
    for (const char *p = form; !ends_form(*p); p++)
        if (is_option(p) && (p[1] == letter || !letter))
            return p;
    return NULL;
}

bool usage_has_option(const struct shell_command *c, char letter)
{
    const char *form = c->command_usage;

    while (form && !find_option(form, letter))
        form = next_form(form);
    return form;
}

static bool has_repetition(const char *form)
{
    while (!ends_form(*form) && *form != '.')
        form++;
    return *form == '.';
}

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

/* A choice of an element: a word, or a kind of words after some characters.
 * The first choice_fixed characters stand for themselves. */
struct choice {
    const char *choice_text;
    size_t choice_fixed;
    size_t choice_length;
};

/* Takes the next choice of the element at *p. False after the last one. */
static bool next_choice(const char **p, struct choice *c)
{
    size_t fixed = 0, n = 0;

    if (ends(**p))
        return false;
    while (!ends((*p)[n]) && (*p)[n] != '|')
        n++;
    while (fixed < n && strchr("-+=", (*p)[fixed]))
        fixed++;
    if (!is_upper((*p)[fixed]) || is_option(*p))
        fixed = n;
    *c = (struct choice){*p, fixed, n};
    *p += n + ((*p)[n] == '|');
    return true;
}

/* Whether a word fits a kind: one of a single letter is a number. */
static bool fits_kind(const struct choice *c, const char *word)
{
    return c->choice_length > c->choice_fixed + 1 ||
           (*word >= '0' && *word <= '9');
}

/* How well a word fits the element at `p`: 0 not, 1 as one of a kind, 2 as that
 * word. */
static int match_of(const char *p, const char *word)
{
    struct choice c;
    int best = 0;

    while (next_choice(&p, &c))
        if (strncmp(word, c.choice_text, c.choice_fixed) != 0)
            continue;
        else if (c.choice_fixed < c.choice_length)
            best = MAX(best, fits_kind(&c, word + c.choice_fixed));
        else if (!word[c.choice_fixed])
            best = 2;
    return best;
}

/* ---- what may stand at a place ------------------------------------------ */

void shell_offer(const struct shell_offer *o, const char *word)
{
    char whole[LINE_MAX + 1];

    snprintf(whole, sizeof(whole), "%.*s%s", (int)o->offer_fixed,
             o->offer_before, word);
    o->offer_add(whole, o->offer_arg);
}

/* Offers the words of a choice. What begins with a dash is offered only after
 * one. */
static void offer_choice(struct shell_offer o, const struct choice *c)
{
    const char *kind = c->choice_text + c->choice_fixed;
    size_t length = c->choice_length - c->choice_fixed;

    if (*c->choice_text == '-' && *o.offer_typed != '-')
        return;
    o.offer_before = c->choice_text;
    o.offer_fixed = c->choice_fixed;
    if (length == 0)
        shell_offer(&o, "");
    if (strncmp(o.offer_typed, c->choice_text, c->choice_fixed) == 0)
        o.offer_typed += c->choice_fixed;
    for (const struct shell_kind *k = __start_shell_kinds;
         k < __stop_shell_kinds; k++)
        if (strlen(k->kind_name) == length &&
            strncmp(k->kind_name, kind, length) == 0)
            k->kind_words(&o);
}

static void offer(const struct shell_offer *o, const char *p)
{
    struct choice c;

    while (next_choice(&p, &c))
        offer_choice(*o, &c);
}

/* ---- options ------------------------------------------------------------ */

/* The words of a command, compared with one of its forms. */
struct comparison {
    const char *comp_form;
    char *comp_words[SHELL_ARGS_MAX + 1]; /* without options */
    struct usage_options comp_options;
    const char *comp_value; /* of the form: what an option at the end wants */
    bool comp_more;         /* options could follow */
    bool comp_complete;     /* no option is missing, none excludes another */
    bool comp_reached;      /* all words fit, others could follow */
    int comp_fitting;       /* how well operands fit; -1: options do not */
    const struct shell_offer *comp_offer; /* gets what may follow, or NULL */
};

/* Takes the letters of word *i; a value may be in the next word. */
static bool take_letters(struct comparison *c, int argc, int *i)
{
    for (const char *at = c->comp_words[*i] + 1; *at; at++) {
        const char *option = find_option(c->comp_form, *at);
        const char **value = &c->comp_options.use_value[usage_index(*at)];

        if (!option)
            return false;
        *value = "";
        if (!option_value(option))
            continue;
        if (!at[1] && *i + 1 == argc) {
            c->comp_value = option_value(option);
            return true;
        }
        *value = at[1] ? at + 1 : c->comp_words[++*i];
        return match_of(option_value(option), *value) > 0;
    }
    return true;
}

static bool is_dashed(const char *word)
{
    return word[0] == '-' && is_upper(word[1] & ~0x20);
}

/* Takes the options off the words. Those after `--` are operands. */
static bool take_options(struct comparison *c, int argc)
{
    int kept = 1;

    c->comp_more = find_option(c->comp_form, 0);
    for (int i = 1; i < argc; i++) {
        if (c->comp_more && strcmp(c->comp_words[i], "--") == 0) {
            c->comp_more = false;
        } else if (c->comp_more && is_dashed(c->comp_words[i])) {
            if (!take_letters(c, argc, &i))
                return false;
        } else {
            c->comp_words[kept++] = c->comp_words[i];
            c->comp_more = c->comp_more && !has_repetition(c->comp_form);
        }
    }
    c->comp_words[kept] = NULL;
    return true;
}

/* How many of the options at `p`, which exclude each other, were given. */
static unsigned count_given(const struct comparison *c, const char *p)
{
    unsigned n = c->comp_options.use_value[usage_index(p[1])] != NULL;

    return p[2] == '|' ? n + count_given(c, p + 3) : n;
}

/* Whether no option is missing, none excludes another. Offers those that could
 * follow to `o`, if not NULL. */
static bool check_options(const struct comparison *c,
                          const struct shell_offer *o)
{
    bool complete = true;

    for (const char *p = c->comp_form; !ends_form(*p); p++) {
        char before = p == c->comp_form ? ' ' : p[-1];
        unsigned n;

        if (!is_option(p) || before == '|')
            continue;
        n = count_given(c, p);
        if (n > 1 || (n == 0 && before != '['))
            complete = false;
        if (n == 0 && o)
            offer(o, p);
    }
    return complete;
}

/* ---- operands ----------------------------------------------------------- */

static const char *next_operand(const char *p)
{
    for (;;)
        if (*p == ' ' || *p == ']' || (*p == '[' && is_option(p + 1)))
            p++;
        else if (is_option(p))
            p = end_of(option_value(p) ?: p);
        else
            return p;
}

static const char *group_end(const char *p)
{
    int depth = 0;

    do
        depth += (*p == '[') - (*p == ']');
    while (p++, depth > 0);
    return p;
}

/* Whether `words` fit a form from `p` on. Offers what may follow them. In a
 * form without options a word that looks like one is of no kind, unless it is
 * among words that repeat. */
static bool check_operands(struct comparison *c, const char *p, char **words,
                           int before)
{
    const char *end;
    bool fit = false, repeats;

    p = next_operand(p);
    if (*p == '[') {
        fit = check_operands(c, group_end(p), words, before);
        return check_operands(c, p + 1, words, before) || fit;
    }
    c->comp_fitting = MAX(c->comp_fitting, before);
    if (!*words) {
        c->comp_reached = true;
        if (c->comp_offer && c->comp_complete && !c->comp_value)
            offer(c->comp_offer, p);
        return ends_form(*p);
    }
    end = end_of(p);
    repeats = strncmp(end, " ...", 4) == 0;
    if (!match_of(p, *words) || (is_dashed(*words) && is_upper(*p) &&
                                 !repeats && !find_option(c->comp_form, 0)))
        return false;
    before += 1 + match_of(p, *words);
    if (repeats) {
        fit = check_operands(c, p, words + 1, before);
        end += 4;
    }
    return check_operands(c, end, words + 1, before) || fit;
}

/* Compares the words with a form; offers what may follow them to `o`, if not
 * NULL. */
static bool compare_form(struct comparison *c, const char *form, int argc,
                         char **argv, const struct shell_offer *o)
{
    bool fit;

    *c = (struct comparison){
        .comp_form = form, .comp_fitting = -1, .comp_offer = o};
    memcpy(c->comp_words, argv, ((size_t)argc + 1) * sizeof(*argv));
    if (!take_options(c, argc))
        return false;
    c->comp_complete = check_options(c, NULL);
    fit = check_operands(c, c->comp_form, c->comp_words + 1, 0);
    if (o && c->comp_reached && c->comp_value)
        offer(o, c->comp_value);
    else if (o && c->comp_reached && c->comp_more)
        check_options(c, o);
    return fit && c->comp_complete && !c->comp_value;
}

/* ---- all forms of a command --------------------------------------------- */

/* How well the words fit the forms that they fit best. */
static int best_fit(const char *form, int argc, char **argv)
{
    struct comparison c;
    int best = -1;

    for (; form; form = next_form(form)) {
        compare_form(&c, form, argc, argv, NULL);
        best = MAX(best, c.comp_fitting);
    }
    return best;
}

void usage_show(const struct shell_command *command, int argc, char **argv,
                const struct shell_offer *o)
{
    const char *form = command->command_usage;
    int best = best_fit(form, argc, argv);
    const char *before = "usage:";
    struct comparison c;

    for (; form; form = next_form(form)) {
        compare_form(&c, form, argc, argv, NULL);
        if (c.comp_fitting < best)
            continue;
        if (o) {
            compare_form(&c, form, argc, argv, o);
            continue;
        }
        kprintf("%-7s%s%s%.*s\n", before, command->command_name,
                ends_form(*form) ? "" : " ", (int)(form_end(form) - form),
                form);
        before = "";
    }
}

bool usage_take(const struct shell_command *command, int argc, char **argv,
                struct usage_options *options)
{
    const char *form = command->command_usage;
    struct comparison c;

    for (; form; form = next_form(form))
        if (compare_form(&c, form, argc, argv, NULL)) {
            memcpy(argv, c.comp_words, sizeof(c.comp_words));
            *options = c.comp_options;
            return true;
        }
    usage_show(command, argc, argv, NULL);
    return false;
}

void usage_complete(const struct line *l, unsigned command, unsigned word,
                    line_add_t *add, void *arg)
{
    char before[LINE_MAX + 1], typed[LINE_MAX + 1];
    char *argv[SHELL_ARGS_MAX + 1];
    char *at = before;
    const struct shell_command *c;
    const struct shell_offer o = {.offer_typed = typed,
                                  .offer_before = "",
                                  .offer_add = add,
                                  .offer_arg = arg};
    int argc;

    strlcpy(before, l->line_text + command, word - command + 1);
    strlcpy(typed, l->line_text + word, l->line_pos - word + 1);
    if (words_next(&at, &argc, argv) != WORDS_OK)
        return;
    if (argc == 0)
        offer(&o, "COMMAND");
    else if ((c = shell_find(argv[0])) != NULL)
        usage_show(c, argc, argv, &o);
}
