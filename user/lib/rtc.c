/*
 * Client functions of the driver rtc. The driver is looked up each time,
 * because it may have been replaced.
 */
#include "user/lib/rtc.h"
#include "user/lib/errno.h"
#include "user/lib/ipc.h"

/* One request; 0 or an error number. */
static int ask(enum rtc_request request, struct message *m)
{
    int port = name_lookup("rtc");
    int error = 0;

    if (port < 0)
        return errno;
    m->msg_tag = request;
    if (ipc_call(port, m) < 0)
        error = errno;
    close(port);
    return error != 0 ? error : -(int)m->msg_word[0];
}

static int request(enum rtc_request request, struct rtc_time *t)
{
    struct message m = {0};
    int error = ask(request, &m);

    if (error != 0) {
        errno = error;
        return -1;
    }
    t->rtc_year = m.msg_word[1] >> 16;
    t->rtc_month = m.msg_word[1] >> 8 & 0xff;
    t->rtc_day = m.msg_word[1] & 0xff;
    t->rtc_hour = m.msg_word[2] >> 16;
    t->rtc_minute = m.msg_word[2] >> 8 & 0xff;
    t->rtc_second = m.msg_word[2] & 0xff;
    return 0;
}

int rtc_time(struct rtc_time *t)
{
    return request(RTC_TIME, t);
}

int rtc_wait(struct rtc_time *t)
{
    return request(RTC_WAIT, t);
}
