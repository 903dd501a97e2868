/*
 * The line editor. Keys are those of Emacs and readline.
 *
 * A line uses one row of the screen, whatever its length. If it is too wide, a
 * window that follows the cursor is shown, with `<` and `>` where it continues.
 * So the way in which a terminal wraps lines does not matter.
 *
 *     slate> <ger line, of which the middle is sho>
 *            ^ line_left                ^ cursor
 *
 * Typing at the end, the usual case, sends just the character; any other change
 * sends the row.
 */
#include "kernel/lib/line.h"
#include "kernel/lib/key.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"

/* ---- drawing ------------------------------------------------------------ */

static void draw(const struct line *l, const char *s)
{
    l->line_write(s, strlen(s));
}

static unsigned window(const struct line *l)
{
    return LINE_COLUMNS - (unsigned)strlen(l->line_prompt);
}

/* Moves the window if the cursor would leave it or cover its `<` or `>`; true
 * if it moved. */
static bool follow_cursor(struct line *l)
{
    unsigned width = window(l);
    unsigned left = l->line_left;

    if (l->line_pos < left + width - (l->line_len > left + width) &&
        l->line_pos >= left + (left > 0))
        return false;
    l->line_left = l->line_pos < width - 1 ? 0 : l->line_pos - width / 2;
    return l->line_left != left;
}

/* In one write, because each write also moves the display's cursor. */
static void redraw(struct line *l)
{
    char row[LINE_COLUMNS + 16];
    unsigned prompt = (unsigned)strlen(l->line_prompt);
    unsigned left, shown, before, after;

    follow_cursor(l);
    left = l->line_left;
    shown = MIN(l->line_len - left, window(l));
    before = left > 0;
    after = left + shown < l->line_len;
    snprintf(row, sizeof(row), "\r%s%s%.*s%s\033[K\r\033[%uC", l->line_prompt,
             before ? "<" : "", (int)(shown - before - after),
             l->line_text + left + before, after ? ">" : "",
             prompt + l->line_pos - left);
    draw(l, row);
}

static void bell(const struct line *l)
{
    draw(l, "\a");
}

/* ---- changing the text -------------------------------------------------- */

static void insert(struct line *l, char c)
{
    unsigned at = l->line_pos;

    if (l->line_len == LINE_MAX) {
        l->line_overflow = true;
        bell(l);
        return;
    }
    memmove(l->line_text + at + 1, l->line_text + at, l->line_len - at + 1);
    l->line_text[at] = c;
    l->line_len++;
    l->line_pos++;
    if (l->line_pos == l->line_len && !follow_cursor(l))
        l->line_write(&c, 1);
    else
        redraw(l);
}

/* Deletes the characters from `from` to `to`; the cursor ends there. */
static void cut(struct line *l, unsigned from, unsigned to)
{
    if (from == to)
        return;
    l->line_overflow = false;
    memmove(l->line_text + from, l->line_text + to, l->line_len - to + 1);
    l->line_len -= to - from;
    l->line_pos = from;
    redraw(l);
}

static unsigned word_start(const struct line *l)
{
    unsigned at = l->line_pos;

    while (at > 0 && l->line_text[at - 1] == ' ')
        at--;
    while (at > 0 && l->line_text[at - 1] != ' ')
        at--;
    return at;
}

static void move_cursor(struct line *l, unsigned to)
{
    if (to > l->line_len) /* also one left of 0 */
        return;
    l->line_pos = to;
    redraw(l);
}

/* ---- history ------------------------------------------------------------ */

static unsigned remembered(const struct line *l)
{
    return MIN(l->line_count, LINE_HISTORY);
}

/* The line `back` (1 …) lines ago. */
static char *past_line(struct line *l, unsigned back)
{
    return l->line_history[(l->line_count - back) % LINE_HISTORY];
}

static void remember(struct line *l)
{
    const char *s = l->line_text;

    while (*s == ' ')
        s++;
    if (*s == 0 ||
        (l->line_count > 0 && strcmp(past_line(l, 1), l->line_text) == 0))
        return;
    l->line_count++;
    strlcpy(past_line(l, 1), l->line_text, sizeof(l->line_text));
}

static void recall(struct line *l, unsigned back)
{
    const char *text = back ? past_line(l, back) : l->line_present;

    if (back > remembered(l)) /* also one later than the present */
        return;
    if (l->line_recall == 0)
        strlcpy(l->line_present, l->line_text, sizeof(l->line_present));
    l->line_recall = back;
    l->line_len = (unsigned)strlcpy(l->line_text, text, sizeof(l->line_text));
    l->line_pos = l->line_len;
    l->line_overflow = false;
    redraw(l);
}

const char *line_remembered(const struct line *l, unsigned n)
{
    unsigned first = l->line_count - remembered(l);

    if (n >= remembered(l))
        return NULL;
    return l->line_history[(first + n) % LINE_HISTORY];
}

/* ---- completion --------------------------------------------------------- */

/* The words come in any order, some twice; they are taken in that of ASCII. */
struct completion {
    unsigned comp_command, comp_start; /* of the command and of the word */
    unsigned comp_width;               /* of the longest match and two blanks */
    bool comp_found;
    const struct line *comp_line;
    char comp_word[LINE_MAX + 1]; /* the word taken last; "": none yet */
    char comp_next[LINE_MAX + 1]; /* if found, the one after it */
};

static unsigned typed(const struct completion *c)
{
    return c->comp_line->line_pos - c->comp_start;
}

/* Whether a shell takes the word as one word that means itself. A file's name
 * may have any character in it, also those that end a line. */
static bool is_plain(const char *word)
{
    for (; *word; word++)
        if (*word <= ' ' || *word > '~' ||
            strchr("\"#$&'()*;<>?[\\]`{|}", *word))
            return false;
    return true;
}

static void find_next(const char *word, void *arg)
{
    struct completion *c = arg;

    if (is_plain(word) &&
        strncmp(word, c->comp_line->line_text + c->comp_start, typed(c)) == 0 &&
        strcmp(word, c->comp_word) > 0 &&
        (!c->comp_found || strcmp(word, c->comp_next) < 0)) {
        c->comp_found = true;
        strlcpy(c->comp_next, word, sizeof(c->comp_next));
    }
}

/* Takes the next word that matches, in comp_word. */
static bool next_match(struct completion *c)
{
    c->comp_found = false;
    c->comp_line->line_words(c->comp_line, c->comp_command, c->comp_start,
                             find_next, c);
    if (c->comp_found)
        memcpy(c->comp_word, c->comp_next, sizeof(c->comp_word));
    return c->comp_found;
}

/* Shortens `common` to what all matches begin with. Returns how many there
 * are. */
static unsigned count_matches(struct completion *c, char *common)
{
    unsigned n = 0;

    for (c->comp_word[0] = 0; next_match(c); n++) {
        size_t same = 0;

        c->comp_width = MAX(c->comp_width, (unsigned)strlen(c->comp_word) + 2);
        if (n == 0)
            strlcpy(common, c->comp_word, LINE_MAX + 1);
        while (common[same] && common[same] == c->comp_word[same])
            same++;
        common[same] = 0;
    }
    return n;
}

static void list_matches(struct line *l, struct completion *c)
{
    unsigned width = MIN(c->comp_width, LINE_COLUMNS);
    unsigned column = 0;

    draw(l, "\n");
    for (c->comp_word[0] = 0; next_match(c);) {
        if (column > 0 && column + width > LINE_COLUMNS) {
            draw(l, "\n");
            column = 0;
        }
        draw(l, c->comp_word);
        for (size_t i = strlen(c->comp_word); i < width; i++)
            draw(l, " ");
        column += width;
    }
    draw(l, "\n");
    redraw(l);
}

/* Finds where the word before the cursor and its command begin. False inside
 * and after quotes, where nothing is completed. */
static bool find_context(struct completion *c)
{
    c->comp_command = c->comp_start = 0;
    for (unsigned i = 0; i < c->comp_line->line_pos; i++) {
        char at = c->comp_line->line_text[i];

        if (at == '"' || at == '\'')
            return false;
        if (strchr(";|& <>", at))
            c->comp_start = i + 1;
        if (strchr(";|&", at))
            c->comp_command = i + 1;
    }
    return true;
}

static void complete(struct line *l)
{
    struct completion c = {.comp_line = l};
    char common[LINE_MAX + 1];
    unsigned n;

    if (!l->line_words || !find_context(&c))
        return;
    n = count_matches(&c, common);
    if (n == 0) {
        bell(l);
        return;
    }
    if (n > 1 && strlen(common) == typed(&c)) {
        list_matches(l, &c);
        return;
    }
    for (const char *s = common + typed(&c); *s; s++)
        insert(l, *s);
    /* No blank is added after the name of a directory. */
    if (n == 1 && l->line_text[l->line_pos] != ' ' &&
        l->line_text[l->line_pos - 1] != '/')
        insert(l, ' ');
}

/* ---- keys --------------------------------------------------------------- */

void line_begin(struct line *l, const char *prompt)
{
    l->line_prompt = prompt;
    l->line_len = 0;
    l->line_pos = 0;
    l->line_left = 0;
    l->line_overflow = false;
    l->line_text[0] = 0;
    l->line_recall = 0;
    draw(l, prompt);
}

static void edit(struct line *l, int key)
{
    switch (key_character(key)) {
    case CTRL('B'):
        move_cursor(l, l->line_pos - 1);
        break;
    case CTRL('F'):
        move_cursor(l, l->line_pos + 1);
        break;
    case CTRL('A'):
        move_cursor(l, 0);
        break;
    case CTRL('E'):
        move_cursor(l, l->line_len);
        break;
    case CTRL('P'):
        recall(l, l->line_recall + 1);
        break;
    case CTRL('N'):
        recall(l, l->line_recall - 1);
        break;
    case '\b':
        if (l->line_pos > 0)
            cut(l, l->line_pos - 1, l->line_pos);
        break;
    case CTRL('D'):
        if (l->line_pos < l->line_len)
            cut(l, l->line_pos, l->line_pos + 1);
        break;
    case CTRL('K'):
        cut(l, l->line_pos, l->line_len);
        break;
    case CTRL('U'):
        cut(l, 0, l->line_pos);
        break;
    case CTRL('W'):
        cut(l, word_start(l), l->line_pos);
        break;
    case CTRL('L'):
        draw(l, "\033[H\033[2J");
        redraw(l);
        break;
    case CTRL('R'):
        redraw(l);
        break;
    case '\t':
        complete(l);
        break;
    }
}

enum line_result line_key(struct line *l, int key)
{
    if (key == '\n') {
        draw(l, "\n");
        if (l->line_overflow)
            return LINE_TOO_LONG;
        remember(l);
        return LINE_DONE;
    }
    if (key == CTRL('C')) {
        draw(l, "^C\n");
        return LINE_CANCELLED;
    }
    if (key == CTRL('D') && l->line_len == 0)
        return LINE_EOF;
    if (key >= ' ' && key <= '~')
        insert(l, (char)key);
    else
        edit(l, key);
    return LINE_MORE;
}
