/*
 * What the tests of the debugging modes share; debug_test.h says what for.
 */
#include "mm/debug/tests/debug_test.h"

unsigned test_modes(const char *letters)
{
    unsigned modes = 0;
    char bad;

    KT_TRUE(kmem_debug_letters(letters, NULL, &modes, &bad));
    return modes;
}

void test_switch(struct kmem_cache *cp, const char *letters)
{
    KT_REQUIRE(kmem_debug_set(cp, test_modes(letters)) == 0);
}

struct kmem_cache *test_debug(const char *letters, size_t size, size_t align,
                              bool constructed)
{
    struct kmem_cache *cp = kmem_cache_create("t_debug", size, align,
                                              constructed ? test_ctor : NULL,
                                              constructed ? test_dtor : NULL);

    KT_REQUIRE(cp != NULL);
    test_constructed_reset();
    test_switch(cp, letters);
    return cp;
}

struct kmem_bufctl_debug *test_bufctl(struct kmem_cache *cp, const void *buf)
{
    struct kmem_buf_stat stat;

    if (!kmem_buf_stat(buf, &stat) || stat.stat_cache != cp)
        return NULL;
    return (struct kmem_bufctl_debug *)stat.stat_bufctl;
}

void test_accept_damage(struct kmem_cache *cp, void *buf)
{
    struct kmem_bufctl_debug *bdp = test_bufctl(cp, buf);
    size_t front = MIN(cp->cache_colour_min, (size_t)KMEM_GUARD_FRONT);

    if (bdp == NULL || bdp->bufctl_state != KMEM_BUF_BUSY) {
        KT_FAIL("%p is not being allocated or freed", buf);
        return;
    }
    if (bdp->bufctl_size == 0)
        bdp->bufctl_size = (uint32_t)cp->cache_size;
    if (kmem_debug_modes(cp) & KMF_REDZONE) {
        kmem_pattern_fill((char *)buf + bdp->bufctl_size,
                          cp->cache_redzone_end - bdp->bufctl_size,
                          KMEM_GUARD_WORD);
        kmem_pattern_fill((char *)buf - front, front, KMEM_GUARD_WORD);
    }
    if (cp->cache_ctor != NULL)
        test_ctor(buf, cp->cache_size);
    bdp->bufctl_state = KMEM_BUF_USED;
    kmem_cache_free(cp, buf);
}

#ifdef MM_HOST
void test_error_begin(void)
{
    kmem_last_error.error_kind = KMERR_NONE;
    host_print_clear();
    host_events[0] = '\0';
}

void test_error_check(const char *file, int line, enum kmem_error kind)
{
    enum kmem_error last = kmem_last_error.error_kind;

    kmem_log_stopped = false;
    if (last != kind)
        ktest_fail(file, line, "error \"%s\", expected \"%s\"",
                   kmem_error_name(last), kmem_error_name(kind));
}

const char *test_says(const char *file, int line, const char *from,
                      const char *text)
{
    for (const char *p = from; *p != '\0'; p++)
        if (strncmp(p, text, strlen(text)) == 0)
            return p + strlen(text);
    ktest_fail(file, line, "\"%s\" is not said after here: %s", text, from);
    return from;
}
#endif
