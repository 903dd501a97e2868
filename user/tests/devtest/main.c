/*
 * devtest: the driver to test.
 */
#include "user/lib/err.h"
#include "user/lib/string.h"
#include "user/tests/devtest/devtest.h"

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "rtc") == 0)
        test_rtc();
    else if (argc == 2 && strcmp(argv[1], "uart") == 0)
        test_uart();
    else if (argc == 3 && strcmp(argv[1], "end") == 0 &&
             strcmp(argv[2], "rtc") == 0)
        test_rtc_end();
    else
        usage("rtc | uart | end rtc");
    return check_report("devtest");
}
