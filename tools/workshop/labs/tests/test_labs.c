/*
 * Parts of the labs' runner: names.
 */
#include "tools/workshop/labs/lab.h"

KTEST(labs, find_by_whole_name)
{
    const struct lab_test *t = __start_lab_tests;

    KT_TRUE(labs_find("0.none") == NULL);
    KT_TRUE(labs_find("") == NULL);
    KT_REQUIRE(t < __stop_lab_tests);
    KT_TRUE(labs_find(t->lab_name) == t);
}
