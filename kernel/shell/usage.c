/*
 * Comparing words with the usage of commands: see usage.h.
 */
#include "kernel/shell/usage.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/shell/words.h"
#include "kernel/x86/panic.h"

/* ---- the text of a usage ------------------------------------------------ */

static bool ends_element(char c)
{
    return c == ' ' || c == ']' || c == '\0';
}

static void add_element(struct form *f, const struct element *e)
{
    if (f->form_elements == ELEMENTS_MAX)
        panic("a usage has more than %d elements", ELEMENTS_MAX);
    f->form_element[f->form_elements++] = *e;
    f->form_options |= e->element_letter != '\0';
}

static void read_form(const char *p, struct form *f)
{
    *f = (struct form){0};
    while (*p != '\0') {
        struct element e = {0};

        for (; *p == ' ' || *p == '[' || *p == ']'; p++)
            e.element_optional |= *p == '[';
        if (*p == '-' && ends_element(p[2])) {
            e.element_letter = p[1];
            p += p[2] == ' ' && p[3] != '[' ? 3 : 2;
        }
        if (!ends_element(*p))
            e.element_text = p;
        while (!ends_element(*p))
            p++;
        e.element_repeats = strncmp(p, " ...", 4) == 0;
        p += e.element_repeats ? 4 : 0;
        while (*p == ']')
            p++;
        add_element(f, &e);
    }
}

void usage_show(const struct shell_command *command)
{
    const char *before = "usage:";

    for (const struct shell_form *s = command->command_forms; s->form_usage;
         s++) {
        kprintf("%-7s%s%s%s\n", before, command->command_name,
                *s->form_usage ? " " : "", s->form_usage);
        before = "";
    }
}

/* The option -letter of a form, or NULL. */
static struct element *find_option(struct form *f, char letter)
{
    for (unsigned i = 0; i < f->form_elements; i++)
        if (f->form_element[i].element_letter == letter)
            return &f->form_element[i];
    return NULL;
}

/* ---- the choices of an element ------------------------------------------ */

/* A word, or a kind of words after some characters. The first choice_fixed
 * characters stand for themselves. */
struct choice {
    const char *choice_text;
    size_t choice_fixed;
    size_t choice_length;
};

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

/* Takes the next choice off the text at *p. False after the last one. */
static bool next_choice(const char **p, struct choice *c)
{
    size_t fixed = 0, n = 0;

    if (ends_element(**p))
        return false;
    while (!ends_element((*p)[n]) && (*p)[n] != '|')
        n++;
    while (fixed < n && strchr("-+=", (*p)[fixed]))
        fixed++;
    *c = (struct choice){*p, is_upper((*p)[fixed]) ? fixed : n, n};
    *p += n + ((*p)[n] == '|');
    return true;
}

/* Whether a word is one of the choices. A kind of one letter is a number. */
static bool is_choice(const char *text, const char *word)
{
    struct choice c;

    while (next_choice(&text, &c)) {
        const char *rest = word + c.choice_fixed;
        size_t kind = c.choice_length - c.choice_fixed;

        if (strncmp(word, c.choice_text, c.choice_fixed) == 0 &&
            (kind == 0   ? *rest == '\0'
             : kind == 1 ? *rest >= '0' && *rest <= '9'
                         : true))
            return true;
    }
    return false;
}

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

static void offer_choices(const struct shell_offer *o, const char *text)
{
    struct choice c;

    while (next_choice(&text, &c))
        offer_choice(*o, &c);
}

/* ---- the words of a command and a form ---------------------------------- */

/* Two dashes begin a literal word, such as --merged. */
static bool is_dashed(const char *word)
{
    return word[0] == '-' && (word[1] == '-' || is_upper(word[1] & ~0x20));
}

/* Takes the letters of word *i; a value may be in the next word. */
static bool take_letters(struct form *f, char **argv, int *i)
{
    for (const char *at = argv[*i] + 1; *at; at++) {
        struct element *e = find_option(f, *at);

        if (!e)
            return false;
        e->element_value = "";
        if (!e->element_text)
            continue;
        if (!at[1] && !argv[*i + 1]) {
            f->form_open = e;
            return true;
        }
        e->element_value = at[1] ? at + 1 : argv[++*i];
        return is_choice(e->element_text, e->element_value);
    }
    return true;
}

/* The element of the next operand, or NULL. */
static struct element *next_operand(struct form *f)
{
    while (f->form_next < f->form_elements &&
           f->form_element[f->form_next].element_letter)
        f->form_next++;
    return f->form_next < f->form_elements ? &f->form_element[f->form_next]
                                           : NULL;
}

/* Options come before words that repeat, which are a form's last ones. Of other
 * kinds no word looks like an option. */
static bool take_operand(struct form *f, char *word)
{
    struct element *e = next_operand(f);

    if (!e || !is_choice(e->element_text, word) ||
        (is_dashed(word) && is_upper(*e->element_text) && !e->element_repeats))
        return false;
    e->element_value = f->form_argv[f->form_argc++] = word;
    f->form_next += !e->element_repeats;
    f->form_options &= !f->form_element[f->form_elements - 1].element_repeats;
    return true;
}

/* False at the first word that does not fit the form. */
static bool take_words(struct form *f, char **argv)
{
    bool fit = true;

    f->form_argv[f->form_argc++] = argv[0];
    for (int i = 1; fit && argv[i]; i++)
        if (f->form_options && is_dashed(argv[i]))
            fit = take_letters(f, argv, &i);
        else
            fit = take_operand(f, argv[i]);
    return fit;
}

/* Whether no option is missing that a form requires; with `all`, nothing. */
static bool is_complete(const struct form *f, bool all)
{
    for (unsigned i = 0; i < f->form_elements; i++) {
        const struct element *e = &f->form_element[i];

        if (!e->element_value && !e->element_optional &&
            (e->element_letter || all))
            return false;
    }
    return !f->form_open;
}

const struct shell_form *usage_take(const struct shell_command *command,
                                    char **argv, struct form *f)
{
    for (const struct shell_form *s = command->command_forms; s->form_usage;
         s++) {
        read_form(s->form_usage, f);
        if (take_words(f, argv) && is_complete(f, true)) {
            memcpy(argv, f->form_argv, sizeof(f->form_argv));
            return s;
        }
    }
    usage_show(command);
    return NULL;
}

const char *usage_value(struct form *f, char letter)
{
    struct element *e = find_option(f, letter);

    return e ? e->element_value : NULL;
}

/* Offers what may follow the words. */
static void offer_next(const struct shell_offer *o, struct form *f)
{
    struct element *operand = next_operand(f);

    if (f->form_open) {
        offer_choices(o, f->form_open->element_text);
        return;
    }
    for (unsigned i = 0; f->form_options && i < f->form_elements; i++) {
        char letter = f->form_element[i].element_letter;

        if (letter && !f->form_element[i].element_value)
            offer_choice(*o, &(struct choice){(char[]){'-', letter}, 2, 2});
    }
    if (operand && is_complete(f, false))
        offer_choices(o, operand->element_text);
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
    struct form f;
    int argc;

    strlcpy(before, l->line_text + command, word - command + 1);
    strlcpy(typed, l->line_text + word, l->line_pos - word + 1);
    if (words_next(&at, &argc, argv) != WORDS_OK)
        return;
    if (argc == 0) {
        offer_choices(&o, "COMMAND");
        return;
    }
    c = shell_find(argv[0]);
    if (!c)
        return;
    for (const struct shell_form *s = c->command_forms; s->form_usage; s++) {
        read_form(s->form_usage, &f);
        if (take_words(&f, argv))
            offer_next(&o, &f);
    }
}
