/*
 * Parts of the labs' runner: the signature (the test vectors of
 * SipHash's paper, appendix A, and reference implementation), names.
 */
#include "tools/workshop/labs/lab.h"
#include "tools/workshop/labs/siphash.h"
#include "kernel/lib/string.h"

#define K0 0x0706050403020100ull
#define K1 0x0f0e0d0c0b0a0908ull

KTEST(labs, siphash)
{
    uint8_t text[16];

    for (unsigned i = 0; i < sizeof(text); i++)
        text[i] = (uint8_t)i;
    KT_EQ(siphash(K0, K1, text, 15), 0xa129ca6149be45e5ull);
    KT_EQ(siphash(K0, K1, text, 0), 0x726fdb47dd0e0e31ull);
    KT_EQ(siphash(K0, K1, text, 8), 0x93f5f5799a932462ull);
}

KTEST(labs, siphash_needs_the_key)
{
    uint64_t right = siphash(K0, K1, "2.split pass 0", 14);

    KT_NE(right, siphash(K0 ^ 1, K1, "2.split pass 0", 14));
    KT_NE(right, siphash(K0, K1 ^ 1, "2.split pass 0", 14));
    KT_NE(right, siphash(K0, K1, "2.merge pass 0", 14));
    KT_NE(right, siphash(K0, K1, "2.split pass 1", 14));
}

KTEST(labs, find_by_whole_name)
{
    const struct lab_test *t = __start_lab_tests;

    KT_TRUE(labs_find("0.none") == NULL);
    KT_TRUE(labs_find("") == NULL);
    KT_REQUIRE(t < __stop_lab_tests);
    KT_TRUE(labs_find(t->lab_name) == t);
}
