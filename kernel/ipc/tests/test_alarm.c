/*
 * Alarms of ports (kernel/ipc/alarm.c).
 */
#include "drivers/pit.h"
#include "kernel/ipc/tests/ipc_cast.h"

static bool hears(uint32_t bits)
{
    if (!receive())
        return false;
    expect_received(NULL, 0);
    return s.actor_out[2] == bits;
}

static void wait_ms(uint32_t ms)
{
    sched_sleep_ms(ms);
    actor_settle();
}

KTEST(alarm, comes_once_and_in_time)
{
    uint64_t before;

    begin(1);
    KT_EQ(actor_result(&s, sys_alarm, port_s, 10, 32), -EINVAL);
    KT_EQ(actor_result(&s, sys_alarm, port_s + 1, 10, 1), -EBADF);
    KT_EQ(actor_result(&c, sys_alarm, port_c, 10, 1), -EBADF);
    before = timer_ms();
    KT_EQ(actor_result(&s, sys_alarm, port_s, 50, 31), 0);
    KT_TRUE(!receive());
    wait_ms(30);
    KT_TRUE(actor_waits(&s));
    while (actor_waits(&s) && timer_ms() < before + 200)
        wait_ms(10);
    expect_received(NULL, 0);
    KT_EQ(s.actor_out[2], 1u << 31);
    KT_GE(timer_ms(), before + 50);
    KT_LE(timer_ms(), before + 80);
    KT_TRUE(!receive());
    wait_ms(100);
    KT_TRUE(actor_waits(&s)); /* not again */
}

KTEST(alarm, one_for_each_port)
{
    begin(0);
    KT_EQ(actor_result(&s, sys_alarm, port_s, 20, 1), 0);
    KT_EQ(actor_result(&s, sys_alarm, port_s, 40, 2), 0); /* instead */
    wait_ms(60);
    KT_TRUE(hears(4));
    KT_EQ(actor_result(&s, sys_alarm, port_s, 20, 1), 0);
    KT_EQ(actor_result(&s, sys_alarm, port_s, 0, 0), 0); /* off */
    KT_EQ(actor_result(&s, sys_alarm, port_s, 0, 0), 0);
    wait_ms(40);
    KT_TRUE(!receive());
}

/* In any order of times, and those that die do not disturb the others. */
KTEST(alarm, many_ports)
{
    static const uint32_t ms[] = {50, 20, 80, 20, 30, 110, 60};
    uint32_t port[ARRAY_SIZE(ms)];

    begin(0);
    for (unsigned i = 0; i < ARRAY_SIZE(ms); i++) {
        port[i] = actor_port(&s);
        KT_EQ(actor_result(&s, sys_alarm, port[i], ms[i], i), 0);
    }
    KT_EQ(actor_result(&s, sys_alarm, port_s, 1000000, 9), 0);
    KT_EQ(actor_result(&s, actor_close, port[4], 0, 0), 0);
    KT_EQ(actor_result(&s, actor_close, port[2], 0, 0), 0);
    wait_ms(130);
    for (unsigned i = 0; i < ARRAY_SIZE(ms); i++)
        if (i != 4 && i != 2) {
            KT_TRUE(actor_do(&s, sys_ipc_receive, port[i], 0, 0));
            KT_EQ(s.actor_out[2], 1u << i);
        }
    actor_end(&s); /* with an alarm that is far away */
    wait_ms(20);
}
