/*
 * Parses a line by recursive descent:
 *
 *     line      list ((';' | '&') list)* [';' | '&']
 *     list      pipeline (('&&' | '||') pipeline)*
 *     pipeline  command ('|' command)*
 *     command   (NAME=value | word | redirection)+
 *
 * A word is kept as typed; quotes only determine its end. `#` at the start of a
 * word begins a comment.
 */
#include "user/bin/sh/sh.h"
#include "user/lib/ctype.h"
#include "user/lib/stdio.h"
#include "user/lib/string.h"

enum token {
    TOKEN_END,
    TOKEN_WORD,
    TOKEN_REDIRECT,
    TOKEN_PIPE,
    TOKEN_AND_IF,
    TOKEN_OR_IF,
    TOKEN_AND,
    TOKEN_SEMI,
};

static const char *const token_text[] = {
    [TOKEN_END] = "the end", [TOKEN_WORD] = "a word", [TOKEN_REDIRECT] = "<>",
    [TOKEN_PIPE] = "|",      [TOKEN_AND_IF] = "&&",   [TOKEN_OR_IF] = "||",
    [TOKEN_AND] = "&",       [TOKEN_SEMI] = ";",
};

struct parser {
    const char *at;          /* after the token */
    const char *token_at;    /* its first character */
    enum token token;        /* the next token */
    enum redirect_kind kind; /* of TOKEN_REDIRECT */
    int handle;
    const char *error; /* the first, or NULL */
};

static const char too_long[] = "the line is too long";

static void fail(struct parser *p, const char *error)
{
    if (p->error == NULL)
        p->error = error;
    p->token = TOKEN_END;
}

/* ---- tokens ------------------------------------------------------------- */

/* The position after the closing quote of the one at s; NULL: none. */
static const char *skip_quoted(const char *s)
{
    char quote = *s++;

    while (*s != 0 && *s != quote) {
        if (quote == '"' && *s == '\\' && s[1] != 0)
            s++;
        s++;
    }
    return *s == 0 ? NULL : s + 1;
}

static void scan_word(struct parser *p)
{
    const char *s = p->at;

    p->token = TOKEN_WORD;
    while (*s != 0 && strchr(" \t\n|&;<>", *s) == NULL) {
        if (*s == '\'' || *s == '"') {
            s = skip_quoted(s);
            if (s == NULL) {
                fail(p, "a quote is not closed");
                return;
            }
        } else if (strchr("()`", *s) != NULL) {
            fail(p, "( ) and ` are not supported; quote them");
            return;
        } else if (*s == '\\' && s[1] == 0) {
            fail(p, "nothing follows the \\");
            return;
        } else {
            s += *s == '\\' ? 2 : 1;
        }
    }
    p->at = s;
}

/* One or two characters: `two` if the second equals the first, else `one`. */
static void scan_pair(struct parser *p, enum token one, enum token two)
{
    bool pair = p->at[0] == p->at[1];

    p->token = pair ? two : one;
    p->at += pair ? 2 : 1;
}

static void scan_redirect(struct parser *p, int handle)
{
    bool in = *p->at++ == '<';

    p->token = TOKEN_REDIRECT;
    p->handle = handle >= 0 ? handle : !in;
    p->kind = in ? REDIRECT_READ : REDIRECT_WRITE;
    if (*p->at == '&')
        p->kind = REDIRECT_DUP;
    else if (!in && *p->at == '>')
        p->kind = REDIRECT_APPEND;
    else
        return;
    p->at++;
}

static void scan(struct parser *p)
{
    while (*p->at == ' ' || *p->at == '\t' || *p->at == '\n')
        p->at++;
    p->token_at = p->at;
    switch (*p->at) {
    case 0:
    case '#':
        p->token = TOKEN_END;
        break;
    case '|':
        scan_pair(p, TOKEN_PIPE, TOKEN_OR_IF);
        break;
    case '&':
        scan_pair(p, TOKEN_AND, TOKEN_AND_IF);
        break;
    case ';':
        p->token = TOKEN_SEMI;
        p->at++;
        break;
    case '<':
    case '>':
        scan_redirect(p, -1);
        break;
    default:
        if (isdigit(p->at[0]) && (p->at[1] == '<' || p->at[1] == '>')) {
            p->at++;
            scan_redirect(p, p->token_at[0] - '0');
        } else {
            scan_word(p);
        }
    }
}

/* "a command is missing before |": room for one message. */
static void missing(struct parser *p, const char *where, enum token token)
{
    static char text[48];

    snprintf(text, sizeof(text), "a command is missing %s %s", where,
             token_text[token]);
    fail(p, text);
}

/* Refuses a command whose name is a word of POSIX's compound commands: what
 * follows it would be run as if it were not there. */
static void refuse_reserved(struct parser *p, const char *name)
{
    static const char *const reserved[] = {
        "!",    "{",  "}",   "case",     "do", "done", "elif",  "else",
        "esac", "fi", "for", "function", "if", "then", "until", "while",
    };
    static char text[80];

    for (size_t i = 0; i < ARRAY_SIZE(reserved); i++) {
        if (strcmp(name, reserved[i]) != 0)
            continue;
        snprintf(text, sizeof(text),
                 "%s is not supported: no loops, no conditions but && and ||",
                 name);
        fail(p, text);
    }
}

/* ---- grammar ------------------------------------------------------------ */

static void *node(struct parser *p, size_t size)
{
    void *n = arena_alloc(size);

    if (n == NULL) {
        fail(p, too_long);
        return NULL;
    }
    return memset(n, 0, size);
}

static struct word *take_word(struct parser *p)
{
    size_t n = (size_t)(p->at - p->token_at);
    struct word *w = node(p, sizeof(*w) + n + 1);

    if (w != NULL) {
        memcpy(w->word_text, p->token_at, n);
        scan(p);
    }
    return w;
}

static struct redirect *take_redirect(struct parser *p)
{
    struct redirect *r = node(p, sizeof(*r));
    struct word *target;

    if (r == NULL)
        return NULL;
    r->redirect_kind = p->kind;
    r->redirect_handle = p->handle;
    scan(p);
    if (p->token != TOKEN_WORD) {
        fail(p, "a file name is missing after < or >");
        return NULL;
    }
    target = take_word(p);
    r->redirect_target = target != NULL ? target->word_text : NULL;
    return r;
}

static struct command *parse_command(struct parser *p)
{
    struct command *c = node(p, sizeof(*c));
    struct redirect **redirects;
    struct word **assigns, **words;

    if (c == NULL)
        return NULL;
    redirects = &c->command_redirects;
    assigns = &c->command_assigns;
    words = &c->command_words;
    while (p->token == TOKEN_WORD || p->token == TOKEN_REDIRECT) {
        if (p->token == TOKEN_REDIRECT) {
            *redirects = take_redirect(p);
            if (*redirects != NULL)
                redirects = &(*redirects)->redirect_next;
        } else {
            bool assign =
                c->command_words == NULL && is_assignment(p->token_at);
            struct word ***list = assign ? &assigns : &words;

            **list = take_word(p);
            if (**list != NULL)
                *list = &(**list)->word_next;
        }
    }
    if (c->command_words != NULL)
        refuse_reserved(p, c->command_words->word_text);
    return c;
}

static bool starts_command(const struct parser *p)
{
    return p->token == TOKEN_WORD || p->token == TOKEN_REDIRECT;
}

static struct pipeline *parse_pipeline(struct parser *p, enum join join)
{
    struct pipeline *line = node(p, sizeof(*line));
    struct command **next;

    if (line == NULL)
        return NULL;
    line->pipeline_join = join;
    next = &line->pipeline_commands;
    for (;;) {
        *next = parse_command(p);
        if (p->token != TOKEN_PIPE)
            return line;
        next = &(*next)->command_next;
        scan(p);
        if (!starts_command(p) && p->error == NULL)
            missing(p, "after", TOKEN_PIPE);
    }
}

static struct list *parse_list(struct parser *p)
{
    struct list *l = node(p, sizeof(*l));
    struct pipeline **next;
    enum join join = JOIN_ALWAYS;

    if (l == NULL)
        return NULL;
    next = &l->list_pipelines;
    for (;;) {
        enum token token;

        *next = parse_pipeline(p, join);
        token = p->token;
        if (token != TOKEN_AND_IF && token != TOKEN_OR_IF)
            return l;
        join = token == TOKEN_AND_IF ? JOIN_AND : JOIN_OR;
        next = &(*next)->pipeline_next;
        scan(p);
        if (!starts_command(p) && p->error == NULL)
            missing(p, "after", token);
    }
}

struct list *parse_line(const char *line, const char **error)
{
    struct parser p = {.at = line};
    struct list *first = NULL;
    struct list **next = &first;

    scan(&p);
    while (p.token != TOKEN_END) {
        if (!starts_command(&p)) {
            missing(&p, "before", p.token);
            break;
        }
        *next = parse_list(&p);
        if (p.error != NULL)
            break;
        (*next)->list_background = p.token == TOKEN_AND;
        next = &(*next)->list_next;
        if (p.token == TOKEN_AND || p.token == TOKEN_SEMI)
            scan(&p);
    }
    *error = p.error;
    return p.error == NULL ? first : NULL;
}
