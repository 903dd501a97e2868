/*
 * trace: begins, marks and saves traces of what is recorded, in the place of
 * the command of other kernels (kernel/shell/cmd_trace.c).
 *
 * A trace is a part of the recording. To save it is to note where it begins and
 * ends; the host takes all of them out of the machine's memory, when the
 * machine has ended.
 */
#include "drivers/console.h"
#include "kernel/lib/string.h"
#include "kernel/shell/shell.h"
#include "tools/workshop/trace/recorder.h"

/* The trace: from a record to another, UINT32_MAX: to the last. */
static uint32_t first, end = UINT32_MAX;
static uint32_t last_mark;

static uint32_t trace_end_now(void)
{
    return MIN(end, recording.recording_count);
}

static int show(void)
{
    uint32_t count = recording.recording_count;
    uint32_t room = recording.recording_room;

    kprintf("trace: %s; %u records, %u before it; memory for %u\n",
            end == UINT32_MAX ? "on" : "off", trace_end_now() - first, first,
            room);
    if (count > room)
        kprintf("%u records are lost: `make trace` has more memory with "
                "BUFFER=MIB\n",
                count - room);
    return 0;
}

static int begin(void)
{
    first = recording.recording_count;
    end = UINT32_MAX;
    last_mark = 0;
    return show();
}

static int stop(void)
{
    if (end != UINT32_MAX)
        return shell_error("no trace is on; `trace on` begins one");
    end = recording.recording_count;
    return show();
}

static int mark(char **argv)
{
    const char *word = argv[2];
    uint32_t number = last_mark + 1;

    if (end != UINT32_MAX)
        return shell_error("no trace is on; `trace on` begins one");
    if (word != NULL && !parse_u32(word, &number))
        return shell_error("'%.32s' is not a number below 2^32", word);
    last_mark = number;
    recorder_put(TRACE_MARK, NULL, number);
    return 0;
}

/* The name is one of a file. */
static bool is_name(const char *word)
{
    size_t n = 0;

    while ((word[n] >= 'a' && word[n] <= 'z') ||
           (word[n] >= 'A' && word[n] <= 'Z') ||
           (word[n] >= '0' && word[n] <= '9') || word[n] == '-' ||
           word[n] == '_')
        n++;
    return n != 0 && n < RECORDING_NAME && word[n] == '\0';
}

static bool is_saved(const char *name)
{
    for (uint32_t i = 0; i < recording.recording_traces; i++)
        if (strcmp(recording.recording_trace[i].recorded_name, name) == 0)
            return true;
    return false;
}

static int save(char **argv)
{
    const char *name = argv[2] ?: "trace";
    struct recorded_trace *t =
        &recording.recording_trace[recording.recording_traces];

    if (!is_name(name))
        return shell_error("'%.40s' is not a name of up to %d letters, "
                           "digits, - and _",
                           name, RECORDING_NAME - 1);
    if (is_saved(name))
        return shell_error("%s is saved already; choose another name", name);
    if (recording.recording_traces == RECORDING_TRACES)
        return shell_error("%d traces are saved, and no more can be",
                           RECORDING_TRACES);
    strlcpy(t->recorded_name, name, sizeof(t->recorded_name));
    t->recorded_first = first;
    t->recorded_end = trace_end_now();
    recording.recording_traces++;
    kprintf("trace: %s has %u records; written when the machine ends\n", name,
            t->recorded_end - t->recorded_first);
    return 0;
}

static int cmd_trace(char **argv)
{
    if (argv[1] == NULL)
        return show();
    if (strcmp(argv[1], "on") == 0)
        return begin();
    return stop();
}

SHELL_COMMAND(trace, {"[on|off]", cmd_trace, SHELL_ACTION},
              {"mark [N]", mark, SHELL_ACTION},
              {"save [NEW-NAME]", save, SHELL_ACTION});
