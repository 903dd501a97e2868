/*
 * Edits between words (kernel/lib/edit_distance.c): each kind alone, two of
 * them, and words without letters.
 */
#include "tools/workshop/ktest/ktest.h"
#include "kernel/lib/edit_distance.h"

KTEST(near, one_edit_of_each_kind)
{
    static const char *const others[] = {"slabs", "lab",  "sab",  "sla", "xlab",
                                         "sxab",  "slax", "lsab", "sbal"};

    KT_TRUE(edit_distance_within("slab", "slab", 0));
    for (unsigned i = 0; i < ARRAY_SIZE(others); i++) {
        bool one = i + 1 < ARRAY_SIZE(others); /* the last takes two */

        KT_TRUE(!edit_distance_within("slab", others[i], 0));
        KT_TRUE(edit_distance_within("slab", others[i], 1) == one);
        KT_TRUE(edit_distance_within(others[i], "slab", 1) == one);
        KT_TRUE(edit_distance_within("slab", others[i], 2));
    }
}

KTEST(near, two_edits_and_no_more)
{
    KT_TRUE(edit_distance_within("kmsatta", "kmastat",
                                 2)); /* two pairs exchanged */
    KT_TRUE(!edit_distance_within("kmsatta", "kmastat", 1));
    KT_TRUE(edit_distance_within("hepl", "help", 1));
    KT_TRUE(!edit_distance_within("abcd", "wxyd", 2));
    KT_TRUE(edit_distance_within("sl", "ls", 1));
    KT_TRUE(!edit_distance_within("ls", "ws", 2));
    KT_TRUE(edit_distance_within("ls", "lss", 1));
    KT_TRUE(edit_distance_within("", "ab", 2));
    KT_TRUE(!edit_distance_within("", "abc", 2));
    KT_TRUE(edit_distance_within("", "", 0));
}

KTEST(near, short_words_have_fewer_edits)
{
    static const unsigned most[] = {0, 0, 1, 1, 2, 2};

    for (unsigned n = 0; n < ARRAY_SIZE(most); n++)
        KT_EQ(edit_distance_most("slabs" + 5 - n), most[n]);
}
