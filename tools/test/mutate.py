"""The mutants of a C source: each small change of its code, by these operators.

    arithmetic    + - * / % << >> & | ^ and their assignments become another
    unary         a minus or ~ is left out
    step          ++ and -- become each other, or are left out
    relation      < <= > >= become the neighbour or the opposite; == != swap
    logic         && || become each other, or one operand is left out
    condition     of if, while and for: negated; always true; always false
    choice        the results of ?: change places
    constant      a number one more and one less; true and false
    result        return 0 in place of an expression
    argument      two arguments of a call change places
    statement     an assignment, a call, a jump, the step of a for is left out
    lock          a pair of calls in one function is left out: lock and unlock,
                  hold and release, the begin and the end of a transfer

The mutants of locks (`lock_mutants_of`), by these operators, change only where
a pair of calls begins and ends:

    lock          the pair is left out, as above
    late          the first call comes after the statement that follows it
    early         the second call comes before the statement before it
    look          a condition that is tested again after the lock was released
                  is always true

Only code changes: no declaration, array size, string or macro, and no assertion
(MM_ASSERT), which checks the code and has no effect of its own.
"""

import re
from bisect import bisect_right
from dataclasses import dataclass

TOKEN = re.compile(r"""
    (?P<skip>\s+|//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:\\\n|[^\n])*)
  | (?P<string>"(?:\\.|[^"\\])*")
  | (?P<char>'(?:\\.|[^'\\])+')
  | (?P<number>\.?\d[\w.]*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<mark><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)
""", re.X | re.S | re.M)

ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "*", "<<": ">>",
              ">>": "<<", "&": "|", "|": "&", "^": "&", "+=": "-=", "-=": "+=",
              "*=": "/=", "/=": "*=", "%=": "*=", "<<=": ">>=", ">>=": "<<=",
              "&=": "|=", "|=": "&=", "^=": "|="}
RELATION = {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="),
            ">=": (">", "<"), "==": ("!=",), "!=": ("==",)}
# `a && b` becomes b, a: the other operand, up to the next || or the
# parenthesis, has no effect.
LOGIC = {"&&": ("||", "&& 0 ||", "|| 0 &&"), "||": ("&&", "&& 0 ||", "|| 0 &&")}
# Pairs of calls: the first, and the second, with the first's argument as {}.
PAIRS = ((re.compile(r"mm_lock\((.*)\);"), r"mm_unlock({});"),
         (re.compile(r"kmem_hold\((.*)\);"), r"kmem_release({});"),
         (re.compile(r"kmem_transfer_begin\(()\);"), "kmem_transfer_end();"))
TYPES = {"struct", "enum", "union", "static", "const", "unsigned", "int",
         "char", "void", "bool", "long", "short", "extern", "volatile"}
HEADERS = {"if", "while", "for", "switch"}
KEYWORDS = HEADERS | TYPES | {"return", "sizeof", "case", "else", "do"}
CHECKS = {"MM_ASSERT", "_Static_assert"}
SYMMETRIC = {"MIN", "MAX"}
OPEN, CLOSE = "([{", ")]}"


@dataclass(frozen=True)
class Mutant:
    """A change of characters in `function` of `file`. `old` and `new` are the
    lines before and after it, joined; `number` counts equal changes in the
    function. So a mutant keeps its identity when other lines change."""
    file: str
    function: str
    operator: str
    old: str
    new: str
    number: int
    edits: tuple    # of (start, end, text), in order

    @property
    def identity(self):
        number = f" #{self.number}" if self.number > 1 else ""
        return (f"{self.file} {self.function}{number}\n    - {self.old}\n"
                f"    + {self.new}\n")

    def apply(self, source):
        return replace(source, self.edits)


@dataclass
class Token:
    kind: str
    text: str
    start: int
    end: int
    pair: int = -1    # the index of its other bracket


def is_header(word):
    return word in HEADERS or word.startswith("list_for_each")


def replace(source, edits):
    parts, at = [], 0
    for start, end, text in edits:
        parts += [source[at:start], text]
        at = end
    return "".join([*parts, source[at:]])


def tokens_of(source):
    tokens = [Token(m.lastgroup, m[0], m.start(), m.end())
              for m in TOKEN.finditer(source) if m.lastgroup != "skip"]
    opened = []
    for i, token in enumerate(tokens):
        if token.text in OPEN and token.kind == "mark":
            opened.append(i)
        elif token.text in CLOSE and token.kind == "mark":
            token.pair = opened.pop()
            tokens[token.pair].pair = i
    return tokens


class Source:
    """A source file, and what can be changed in it."""

    def __init__(self, file, text):
        self.file, self.text = file, text
        self.tokens = tokens_of(text)
        self.lines = [0] + [m.end() for m in re.finditer("\n", text)]
        self.function = ""
        self.found = {}    # (edits) -> (function, operator), each change once

    def mutants(self):
        for first, last in self.bodies():
            if self.tokens[first - 1].text == ")":
                self.change_body(first, last)
            else:
                self.change_numbers(first, last)
        return self.named()

    def bodies(self):
        """The outermost braces: of functions, and of initialisers."""
        i, tokens = 0, self.tokens
        while i < len(tokens):
            if tokens[i].text == "{":
                before = tokens[i - 1].text
                if before == ")":
                    self.function = tokens[tokens[i - 1].pair - 1].text
                    yield i, tokens[i].pair
                elif before == "=":
                    self.function = next(
                        t.text for t in reversed(tokens[:i - 1])
                        if t.kind == "name")
                    yield i, tokens[i].pair
                i = tokens[i].pair
            i += 1

    # ---- a change ----------------------------------------------------------

    def add(self, operator, *edits):
        edits = tuple(sorted(edits))
        if replace(self.text, edits) != self.text:
            self.found.setdefault(edits, (self.function, operator))

    def put(self, operator, token, text):
        self.add(operator, (token.start, token.end, text))

    def text_of(self, first, last):
        """The text of the tokens from `first` to before `last`."""
        return self.text[self.tokens[first].start:self.tokens[last - 1].end]

    def put_range(self, operator, first, last, text):
        self.add(operator, (self.tokens[first].start,
                            self.tokens[last - 1].end, text))

    def named(self):
        """The mutants, each with its lines before and after."""
        seen, mutants = {}, []
        for edits, (function, operator) in sorted(self.found.items()):
            old, new = self.change_as_lines(edits)
            key = function, old, new
            seen[key] = seen.get(key, 0) + 1
            mutants.append(Mutant(self.file, function, operator, old, new,
                                  seen[key], edits))
        return mutants

    def change_as_lines(self, edits):
        old, new = [], []
        for start, end, text in edits:
            begin = self.lines[bisect_right(self.lines, start) - 1]
            stop = self.text.find("\n", end)
            old.append(self.text[begin:stop])
            new.append(self.text[begin:start] + text + self.text[end:stop])
        return tuple(" ".join(" ".join(part).split()) or "(nothing)"
                     for part in (old, new))

    # ---- where -------------------------------------------------------------

    def change_numbers(self, first, last):
        for i in range(first, last):
            if self.tokens[i].kind == "number":
                self.constant(i)

    def change_body(self, first, last):
        self.for_header = 0    # where the last one ends
        i = first + 1
        while i < last:
            token = self.tokens[i]
            if token.text in CHECKS:
                i = self.tokens[i + 1].pair
            elif token.text == "[" and self.is_array_size(i):
                i = token.pair
            elif self.tokens[i - 1].text in ";{}:)" or \
                    self.tokens[i - 1].text in ("else", "do"):
                self.statement(i)
            self.token(i)
            i += 1
        self.pairs(first, last)

    def statement_end(self, i):
        """The index of the `;` that ends the statement from `i`; 0: there is
        none, as in an initialiser."""
        while self.tokens[i].text != ";":
            token = self.tokens[i]
            if token.text in CLOSE:
                return 0
            i = token.pair + 1 if token.text in OPEN else i + 1
        return i

    def is_declaration(self, i):
        token, after = self.tokens[i], self.tokens[i + 1]
        return token.text in TYPES or (
            token.kind == "name" and token.text not in KEYWORDS and
            (after.kind == "name" or (after.text == "*" and
                                      self.tokens[i + 2].kind == "name")))

    def is_label(self, colon):
        i = colon - 1
        while self.tokens[i - 1].text not in ("{", "}", ";", ":"):
            i -= 1
        return i == colon - 1 or self.tokens[i].text == "case"

    def starts_statement(self, i):
        before, token = self.tokens[i - 1], self.tokens[i]
        if before.text == ")" and \
                not is_header(self.tokens[before.pair - 1].text):
            return False
        if before.text == ":" and not self.is_label(i - 1):
            return False
        return token.kind == "name" or token.text in ("*", "(", "++", "--")

    def statement(self, i):
        token = self.tokens[i]
        if token.text in HEADERS:
            self.condition(i)
        if i < self.for_header or not self.starts_statement(i) or \
                self.is_declaration(i) or is_header(token.text) or \
                token.text in ("else", "do", "case", "default"):
            return
        end = self.statement_end(i)
        if end == 0:
            return
        if token.text == "return" and end > i + 1:
            if self.text_of(i + 1, end) not in ("0", "false", "NULL"):
                self.put_range("result", i + 1, end, "0")
            return
        if self.tokens[i + 1].text != ":":
            self.put_range("statement", i, end + 1, ";")

    def condition(self, i):
        """Mutates the condition of the header that begins at `i`."""
        open_ = i + 1
        first, last = open_ + 1, self.tokens[open_].pair
        word = self.tokens[i].text
        if word == "for":
            self.for_header = last
            first = self.statement_end(first) + 1
            stop = self.statement_end(first)
            if last > stop + 1:
                self.put_range("statement", stop + 1, last, "")
            last = stop
        if word == "switch" or first >= last:
            return
        self.put_range("condition", first, last,
                       f"!({self.text_of(first, last)})")
        self.put_range("condition", first, last, "0")
        if word != "while":    # which would not end
            self.put_range("condition", first, last,
                           "1" if word == "if" else "")

    def is_binary(self, i):
        before = self.tokens[i - 1]
        if before.text == ")" and \
                is_header(self.tokens[before.pair - 1].text):
            return False
        return (before.kind in ("number", "char", "string") or
                before.text in ")]" or
                (before.kind == "name" and before.text not in KEYWORDS))

    def is_pointer(self, i):
        """Whether a `*` is part of a type: `(char *)`, `struct x *p`."""
        before = self.tokens[i - 1].text
        return (self.tokens[i + 1].text in ("*", ")") or before in TYPES or
                before.endswith("_t") or
                self.tokens[i - 2].text in ("struct", "enum"))

    # ---- what --------------------------------------------------------------

    def token(self, i):
        token = self.tokens[i]
        text = token.text
        if token.kind in ("number", "char"):
            self.constant(i)
        elif text in ("true", "false"):
            self.put("constant", token, "false" if text == "true" else "true")
        elif token.kind == "name" and \
                text not in KEYWORDS | SYMMETRIC and \
                self.tokens[i + 1].text == "(":
            self.arguments(i + 1)
        elif token.kind == "mark":
            self.mark(i, token, text)

    def mark(self, i, token, text):
        if text in ARITHMETIC and (text.endswith("=") or self.is_binary(i)):
            if text != "*" or not self.is_pointer(i):
                self.put("arithmetic", token, ARITHMETIC[text])
        elif text in ("-", "~"):
            self.put("unary", token, "")
        elif text in ("++", "--"):
            self.put("step", token, "--" if text == "++" else "++")
            self.put("step", token, "")
        elif text == "!":
            self.put("logic", token, "")
        elif text == "?":
            self.choice(i)
        for operator, table in (("relation", RELATION), ("logic", LOGIC)):
            for other in table.get(text, ()):
                self.put(operator, token, other)

    def constant(self, i):
        token = self.tokens[i]
        self.put("constant", token, f"({token.text} + 1)")
        self.put("constant", token, f"({token.text} - 1)")

    def is_array_size(self, i):
        """Whether the `[` is part of a declaration, before any `=`."""
        while self.tokens[i - 1].text not in (";", "{", "}"):
            i -= 1
            if self.tokens[i].text == "=":
                return False
        return self.is_declaration(i)

    def arguments(self, open_):
        starts, i = [open_ + 1], open_ + 1
        while i < self.tokens[open_].pair:
            if self.tokens[i].text in OPEN:
                i = self.tokens[i].pair
            elif self.tokens[i].text == ",":
                starts.append(i + 1)
            i += 1
        starts.append(i + 1)
        for a, b, end in zip(starts, starts[1:], starts[2:]):
            one, two = self.text_of(a, b - 1), self.text_of(b, end - 1)
            self.put_range("argument", a, end - 1, f"{two}, {one}")

    def choice(self, i):
        """`c ? a : b` becomes `c ? b : a`."""
        depth, colon = 0, i + 1
        while depth or self.tokens[colon].text != ":":
            text = self.tokens[colon].text
            depth += (text == "?") - (text == ":")
            colon = (self.tokens[colon].pair if text in OPEN else colon) + 1
        end, depth = colon + 1, 0
        while self.tokens[end].text not in (",", ";", ")", "]", "}") and \
                (depth or self.tokens[end].text != ":"):
            text = self.tokens[end].text
            depth += (text == "?") - (text == ":")
            end = (self.tokens[end].pair if text in OPEN else end) + 1
        one, two = self.text_of(i + 1, colon), self.text_of(colon + 1, end)
        self.put_range("choice", i + 1, end, f"({two}) : ({one})")

    def pairs(self, first, last):
        """Leaves out a first call with all second calls of its arguments."""
        begin, end = self.tokens[first].start, self.tokens[last].end
        body = self.text[begin:end]
        for one, two in PAIRS:
            for m in one.finditer(body):
                others = [*re.finditer(re.escape(two.format(m[1])), body)]
                if others:
                    self.add("lock", *((begin + x.start(), begin + x.end(),
                                        ";") for x in (m, *others)))


    # ---- locks -------------------------------------------------------------

    def lock_mutants(self):
        for first, last in self.bodies():
            if self.tokens[first - 1].text != ")":
                continue
            self.pairs(first, last)
            self.body = first
            for i in range(first, last):
                if self.tokens[i].text == "{" and \
                        self.tokens[i - 1].text in (")", "else", "do", "}",
                                                    "{", ";"):
                    self.regions(self.statements(i))
        return self.named()

    def statements(self, open_):
        """The statements of a block: (first token, token after the last)."""
        found, i = [], open_ + 1
        while i < self.tokens[open_].pair:
            end = self.after(i)
            found.append((i, end))
            i = end
        return found

    def after(self, i):
        """The token after the statement that begins at `i`."""
        text = self.tokens[i].text
        if text == "{":
            return self.tokens[i].pair + 1
        if is_header(text):
            end = self.after(self.tokens[i + 1].pair + 1)
            return self.after(end + 1) if text == "if" and \
                self.tokens[end].text == "else" else end
        if text == "do":
            return self.after(self.after(i + 1))
        if text in ("case", "default"):
            while self.tokens[i].text != ":":
                i += 1
            return i + 1
        if self.tokens[i + 1].text == ":":    # a label
            return i + 2
        while self.tokens[i].text != ";":
            i = self.tokens[i].pair if self.tokens[i].text in OPEN else i
            i += 1
        return i + 1

    def regions(self, statements):
        """The mutants of each pair of calls among the statements of a block."""
        texts = [self.text_of(*s) for s in statements]
        for k, text in enumerate(texts):
            for one, two in PAIRS:
                m = one.fullmatch(text)
                second = two.format(m[1]) if m else None
                if second in texts[k:]:
                    end = texts.index(second, k)
                    self.region(statements[k:end + 1], text, second)

    def region(self, statements, one, two):
        if len(statements) > 3:
            self.swap("late", *statements[:2])
            self.swap("early", *statements[-2:])
        if not one.startswith("mm_lock") or \
                not self.is_second(statements[0][0], one):
            return
        for i in range(statements[0][1], statements[-1][0]):
            if self.tokens[i].text == "if":
                last = self.tokens[i + 1].pair
                self.put_range("look", i + 2, last, "1")

    def is_second(self, i, lock):
        """Whether the lock was held before in this function: earlier in its
        text, or in the same loop."""
        return lock in self.text_of(self.body, i) or any(
            token.text in ("while", "for", "do") or
            token.text.startswith("list_for_each")
            for token in self.tokens[self.body:i])

    def swap(self, operator, a, b):
        one, two = self.text_of(*a), self.text_of(*b)
        start, end = self.tokens[a[0]].start, self.tokens[b[1] - 1].end
        self.add(operator, (start, end, f"{two} {one}"))


def mutants_of(file, text):
    return Source(file, text).mutants()


def lock_mutants_of(file, text):
    return Source(file, text).lock_mutants()
