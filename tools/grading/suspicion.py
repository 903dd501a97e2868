"""What an instructor may want to read in a hand-in file before believing its
points: words of the grader's machinery, and ways out of the file.

Code in ring 0 can do whatever the kernel can (docs/labs.md), so this finds
nobody guilty and takes no points; it shows where to look. Only lines that the
hand-out does not have are looked at."""

import re

WORDS = [
    (r"grade_?key|gradekey", "the grader's key"),
    (r"\bverdict|siphash|\blabs_\w+|lab_tests|LAB_TEST", "the labs' runner"),
    (r"debugcon|\b0x[eE]9\b|\b233\b", "the debug port"),
    (r"power_exit|\b0x[fF]4\b|\b0x604\b", "the way out of the machine"),
    (r"watchdog|\b0x44[0-3]\b", "the watchdog"),
    (r"ktest_|\bfailures\b", "the count of failed expectations"),
    (r"dr_addresses|%%?dr[0-7]|%%?db[0-7]", "the debug registers"),
    (r"\basm\b|__asm", "inline assembly"),
    (r"\.incbin|\.include", "a file taken in by the assembler"),
    (r"#\s*include\s*[<\"](/|.*\.\./)", "an #include from outside of the tree"),
    (r"#\s*include\s+[^<\"\s]", "an #include by a macro"),
    (r"section\s*\(", "a section of its own"),
]


def look(name, text, handed_out):
    """Lines "FILE:LINE: what: the line" about a hand-in file; none about
    answers, which nobody executes."""
    if name.endswith(".toml"):
        return
    known = {line.strip() for line in handed_out.splitlines()}
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() in known:
            continue
        for pattern, what in WORDS:
            if re.search(pattern, line):
                yield f"{name}:{number}: {what}: {line.strip()[:100]}"
