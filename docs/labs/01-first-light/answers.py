"""Checks the answers of lab 1: asks the kernel that was handed in, under GDB
and at its prompt, what the student was asked. What depends on a kernel that
does not come to its prompt is not checked."""

import json
import re

from tools.grading.questions import CannotAsk, NotChecked

ASKED = {
    "boot": ("eax", "info", "map_entries", "module_at", "returns_to"),
    "memory": ("mem_end", "mem_frames", "mem_array"),
    "riddle": ("riddle_vector", "riddle_error", "riddle_function",
               "riddle_depth", "riddle_number"),
}
AT = "(info_addr + 0xC0000000)"
INFO = f"((struct multiboot_info *){AT})"
MODULE = f"((struct multiboot_module *)({INFO}->info_mods_addr + 0xC0000000))"


def number(said):
    """The value of GDB's `$1 = 0x10`."""
    return int(re.search(r"= (\w+)", said)[1], 0)


def boot(machine):
    ask = {"eax": "print/x magic", "info": "print/x info_addr",
           "map_entries": f"print {INFO}->info_mmap_length / "
                          "sizeof(struct multiboot_map)",
           "module_at": f"print/x {MODULE}->mod_start"}
    where = "info symbol *(unsigned *)$esp"
    (said,) = machine.gdb("poweroff", [(None, [*ask.values(), where])],
                          memory="128").said
    return {**{name: number(said[command]) for name, command in ask.items()},
            "returns_to": said[where].split()[0]}


def memory_of(machine):
    """The MiB of the student's machine, from a kernel that boots."""
    said = machine.run("riddle; poweroff", memory="32").text
    size = re.search(r"has (\d+) MiB: make run", said)
    if size is None:
        raise CannotAsk("your kernel does not come to its prompt: see what "
                        "`make run` says")
    return size[1]


def memory(machine):
    size = memory_of(machine)
    said = machine.run("meminfo -j; poweroff", memory=size).text
    rows = [json.loads(line) for line in re.findall(r"^\{.*\}", said, re.M)]
    frames = next(row["pages"] for row in rows if row.get("use") == "frames")
    ask = "print page_count * sizeof(struct page)"
    (seen,) = machine.gdb("poweroff", [("cmd_poweroff", [ask])],
                          memory=size).said
    return {"mem_end": max(row["end"] for row in rows
                           if row.get("usable") is True),
            "mem_frames": frames, "mem_array": number(seen[ask])}


def riddle(machine):
    ask = {"riddle_vector": "print/d tf->vector",
           "riddle_error": "print/d tf->error",
           "riddle_number": "print/d number"}
    memory_of(machine)
    where, stack = "info symbol tf->eip", "bt"
    (said,) = machine.gdb("riddle; poweroff", [("cmd_riddle", [
        "break trap_dispatch if tf->vector < 32", "continue",
        ask["riddle_vector"], ask["riddle_error"], where, stack,
        "frame function riddle_begin", ask["riddle_number"]])]).said
    return {**{name: number(said[command]) for name, command in ask.items()},
            "riddle_function": said[where].split()[0],
            "riddle_depth": len(re.findall(r"\briddle_deeper \(",
                                           said[stack]))}


def check(answers, machine):
    found = {}
    for ask, names in ((boot, ASKED["boot"]), (memory, ASKED["memory"]),
                       (riddle, ASKED["riddle"])):
        given = [name for name in names if name in answers]
        try:
            right = ask(machine) if given else {}
        except CannotAsk as e:
            found.update(dict.fromkeys(given, NotChecked(e)))
            continue
        found.update({name: None if answers[name] == right[name] else
                      "your kernel says something else" for name in given})
    return found


def solve(machine):
    return {**boot(machine), **memory(machine), **riddle(machine)}


def solve_again(machine):
    """The answers that depend on the size of the kernel."""
    return boot(machine)
