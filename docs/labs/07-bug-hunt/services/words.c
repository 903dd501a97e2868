/*
 * Words: texts by name. A text is an object of its own; the entry of the name
 * has the only pointer to it.
 */
#include "docs/labs/07-bug-hunt/services/services.h"
#include "kernel/lib/string.h"
#include "mm/kmem.h"

struct text {
    uint32_t text_length;
    char text_bytes[WORD_TEXT];
};

struct word {
    const char *word_name; /* NULL: this entry is free */
    struct text *word_text;
};

static struct kmem_cache *cache;
static struct word words[WORDS_MAX];

bool words_open(void)
{
    if (cache == NULL)
        cache = kmem_cache_create("words", sizeof(struct text), 0, NULL, NULL);
    return cache != NULL;
}

bool words_close(void)
{
    for (size_t i = 0; i < WORDS_MAX; i++)
        if (words[i].word_name != NULL)
            words_remove(words[i].word_name);
    if (kmem_cache_destroy(cache) != 0)
        return false;
    cache = NULL;
    return true;
}

static struct word *find(const char *name)
{
    for (size_t i = 0; i < WORDS_MAX; i++)
        if (words[i].word_name != NULL && strcmp(words[i].word_name, name) == 0)
            return &words[i];
    return NULL;
}

/* The entry of this name; a new one has no text yet. */
static struct word *entry(const char *name)
{
    struct word *w = find(name);

    for (size_t i = 0; w == NULL && i < WORDS_MAX; i++)
        if (words[i].word_name == NULL) {
            w = &words[i];
            w->word_name = name;
        }
    return w;
}

bool words_set(const char *name, const char *text)
{
    uint32_t length = MIN(strlen(text), (size_t)WORD_TEXT - 1);
    struct word *w = entry(name);
    struct text *t;

    if (w == NULL)
        return false;
    t = w->word_text;
    if (t == NULL)
        t = kmem_cache_alloc(cache, KM_SLEEP);
    t->text_length = length;
    strlcpy(t->text_bytes, text, sizeof(t->text_bytes));
    w->word_text = t;
    return true;
}

const char *words_get(const char *name)
{
    const struct word *w = find(name);

    return w == NULL ? NULL : w->word_text->text_bytes;
}

void words_remove(const char *name)
{
    struct word *w = find(name);

    if (w == NULL)
        return;
    kmem_cache_free(cache, w->word_text);
    w->word_text = NULL;
    w->word_name = NULL;
}
