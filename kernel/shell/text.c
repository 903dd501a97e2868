/*
 * Texts in sections: see text.h.
 */
#include "kernel/shell/text.h"
#include "drivers/console.h"
#include "kernel/lib/string.h"

bool text_empty(struct text t)
{
    return t.text_from >= t.text_end;
}

bool text_is(struct text t, const char *s)
{
    size_t n = (size_t)(t.text_end - t.text_from);

    return strlen(s) == n && memcmp(t.text_from, s, n) == 0;
}

void text_print(struct text t)
{
    console_write(t.text_from, (size_t)(t.text_end - t.text_from));
}

bool text_line(struct text *t, struct text *line)
{
    const char *end = t->text_from;

    if (text_empty(*t))
        return false;
    while (end < t->text_end && *end != '\n')
        end++;
    *line = (struct text){t->text_from, MIN(end + 1, t->text_end)};
    t->text_from = line->text_end;
    return true;
}

struct text text_after(struct text line, const char *mark)
{
    size_t n = strlen(mark);

    if ((size_t)(line.text_end - line.text_from) <= n ||
        memcmp(line.text_from, mark, n) != 0)
        return (struct text){line.text_end, line.text_end};
    return (struct text){line.text_from + n, line.text_end - 1};
}

struct text text_word(struct text t)
{
    const char *end = t.text_from;

    while (end < t.text_end && *end != ' ' && *end != '\n')
        end++;
    return (struct text){t.text_from, end};
}

struct text text_section(struct text t, const char *name, struct text *head)
{
    struct text line, section, after = {NULL, NULL};
    bool found = false;

    while (!found && text_line(&t, &line)) {
        after = text_after(line, "= ");
        found = !text_empty(after) && text_is(text_word(after), name);
    }
    section = (struct text){t.text_from, t.text_from};
    if (head)
        *head = found ? after : section;
    while (text_line(&t, &line) && *line.text_from != '=')
        section.text_end = line.text_end;
    return section;
}
