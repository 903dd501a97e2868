/*
 * Lists.
 *
 * Tests: kernel/lib/list.h
 */
#include "tools/workshop/ktest/ktest.h"
#include "kernel/lib/list.h"

struct item {
    int item_value;
    struct list item_link;
};

/* Checks values and both directions of links against `want`. */
static void expect_list(int line, const struct list *head, const int *want,
                        int n)
{
    int i = 0;

    list_for_each (l, head) {
        int value = list_entry(l, struct item, item_link)->item_value;

        if (i < n && value != want[i])
            ktest_fail(__FILE__, line, "item %d is %d, want %d", i, value,
                       want[i]);
        if (l->prev->next != l || l->next->prev != l)
            ktest_fail(__FILE__, line, "item %d: links disagree", i);
        if (++i > n)
            break;
    }
    if (i != n)
        ktest_fail(__FILE__, line, "%d items or more, want %d", i, n);
}

KTEST(list, insert_and_remove)
{
    struct list head = LIST_INIT(head);
    struct item a = {.item_value = 1}, b = {.item_value = 2},
                c = {.item_value = 3};

    KT_TRUE(list_empty(&head));
    list_insert_after(&head, &b.item_link);
    KT_TRUE(!list_empty(&head));
    list_insert_after(&head, &a.item_link);
    list_insert_before(&head, &c.item_link);
    expect_list(__LINE__, &head, (const int[]){1, 2, 3}, 3);
    list_remove(&b.item_link);
    expect_list(__LINE__, &head, (const int[]){1, 3}, 2);
    list_insert_before(&a.item_link, &b.item_link);
    expect_list(__LINE__, &head, (const int[]){2, 1, 3}, 3);
    list_remove(&b.item_link);
    list_remove(&c.item_link);
    list_remove(&a.item_link);
    KT_TRUE(list_empty(&head));
    KT_EQ(KT_PTR(head.prev), KT_PTR(&head));
}

KTEST(list, init_forgets)
{
    struct list head, one;

    list_init(&head);
    list_insert_after(&head, &one);
    list_init(&head);
    KT_TRUE(list_empty(&head));
    KT_EQ(KT_PTR(head.prev), KT_PTR(&head));
}
