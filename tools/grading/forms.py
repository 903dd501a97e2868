"""The forms of answers. A student's own tree checks the form and nothing else,
so both `make grade` and the grader find the same answers badly formed, before
any is called wrong."""

import re


def _number(answer):
    """Whether checkers can compute with it: nan, inf and huge numbers fail."""
    return type(answer) in (int, float) and abs(answer) < 1 << 64


def _names(answer):
    return isinstance(answer, list) and \
        all(isinstance(name, str) for name in answer)


def _table(answer):
    return isinstance(answer, list) and all(
        isinstance(row, list) and len(row) > 1 and isinstance(row[0], str) and
        all(map(_number, row[1:])) for row in answer)


# {form: (whether an answer has it, what is missing otherwise)}
FORMS = {
    "integer": (lambda a: type(a) is int and _number(a),
                "wants a whole number, without quotes: 24 or 0x1000"),
    "number": (_number, "wants a number, without quotes: 12.3"),
    "name": (lambda a: isinstance(a, str) and a.strip() == a,
             "wants a name, in quotes"),
    "function": (lambda a: isinstance(a, str) and
                 re.fullmatch(r"\w+(\(\))?", a),
                 "wants the name of one function, in quotes"),
    "word": (lambda a: isinstance(a, str), "wants a word, in quotes"),
    "names": (_names, 'wants a list of names: ["inode", "task"]'),
    "table": (_table, 'wants a list of rows: [["inode", 100, 50], ...]'),
}


def problem(question, answer):
    """What is wrong with the form of an answer, or None."""
    right, wanted = FORMS[question.form]
    if not right(answer):
        return wanted
    if question.form == "word" and answer not in question.words:
        return "is one of " + ", ".join(question.words)
    return None


def plain(question, answer):
    """The answer as the checker compares it."""
    return answer.removesuffix("()") if question.form == "function" else answer
