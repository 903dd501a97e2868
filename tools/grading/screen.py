"""What a hand-in may contain: its tokens and its objects, looked at before its
kernel runs.

    python3 -m tools.grading.screen --write     # the labs' allowed.toml

A hand-in is C that uses what its lab offers. It has no assembler, no attribute
or pragma that places, orders or renames things, and includes headers alone. Its
objects refer to and define what docs/labs/NN-name/allowed.toml lists, have the
sections of plain C, and no instruction that only a kernel may use but those
listed. So it reaches neither the code that judges it nor the machine around it
(docs/labs.md says what remains possible).

The same rules hold for `make grade` and for the grader. allowed.toml is
computed from the solution's objects, and those of mm/; a test compares it.
"""

import argparse
import re
import subprocess
import sys
from collections import defaultdict
from hashlib import sha256
from itertools import islice
from pathlib import Path

from elftools.elf.elffile import ELFFile

from tools.grading import functions, labs, workshop

ROOT = Path(__file__).resolve().parents[2]

# What every hand-in may call: the compiler calls the first line by itself.
ALWAYS = {
    "memcmp", "memcpy", "memmove", "memset", "__divdi3", "__moddi3",
    "__udivdi3", "__umoddi3",
    "kprintf", "mm_panic", "panic", "printf", "snprintf", "strcmp", "strlcpy",
    "strlen", "strncmp",
    "lab_missing"}

ATTRIBUTES = {"always_inline", "cold", "const", "fallthrough", "format", "hot",
              "may_alias", "noinline", "noreturn", "packed", "pure", "unused"}
BUILTINS = (r"expect|constant_p|offsetof|choose_expr|types_compatible_p|"
            r"unreachable|(clz|ctz|ffs|parity)l?|(clz|parity)ll|bswap\d\d|"
            r"(add|sub|mul)_overflow|va_\w+|mem\w+|str\w+")
ARGUMENTS = r"\((?:[^()]|\([^()]*\))*\)"  # of an attribute, as far as read
PRAGMAS = r"GCC (unroll|diagnostic)\b"
DIRECTIVES = {"define", "elif", "else", "endif", "error", "if", "ifdef",
              "ifndef", "include", "pragma", "undef", "warning"}

SECTIONS = re.compile(
    r"(\.rel)?\.(text|data|bss|rodata|debug_\w+)(\.[\w.]+)?|"
    r"\.comment|\.note\.GNU-stack|\.(sym|str|shstr)tab|")

# Instructions that change or read more than registers and memory, as objdump
# names them; and those of the locks' inline functions, which all may have. The
# compiler writes ud2 where C has undefined behaviour; it can only panic.
PRIVILEGED = re.compile(
    r"(in|out|ins|outs)[bwl]?|cli|sti|hlt|[ls][gil]dt\w*|[ls]msw|[ls]tr|clts|"
    r"invlpg|invd|wbinvd|rd\w+|wrmsr|int\w*|iret\w*|sys\w+|lret\w*|"
    r"lcall\w*|ljmp\w*|cpuid|pushf\w*|popf\w*")
SPECIAL = re.compile(r"%(cr|db|dr|tr)\d")  # registers of a mov
OF_LOCKS = {"cli", "popf", "pushf"}


# Strings and characters; one without its second quote goes to the line's end,
# as it does for gcc.
QUOTED = r'"(?:\\.?|[^"\\\n])*(?:"|$)|\'(?:\\.?|[^\'\\\n])*(?:\'|$)'


MOST = 20   # findings of a kind in a source: macros can make millions


# SPLICE joins a line to the next; gcc joins lines before it looks for comments.
# COMMENT replaces a comment, and END each end of a line in it.
SPLICE = r"\\[ \t\f\v\0]*\r?\n"
COMMENT, END = "\udc00", "\udc01"    # in no text


# ---- tokens ----------------------------------------------------------------

def _joined(text):
    """A source whose spliced lines are joined. Empty lines are added, so that
    the numbers of the other lines stay the same."""
    return re.sub(rf"^(?:.*{SPLICE})+.*", lambda m: re.sub(SPLICE, "", m[0]) +
                  "\n" * m[0].count("\n"), text.removeprefix("\ufeff"),
                  flags=re.M)


def _lines(joined):
    """(number, line) of a joined source, each comment one character."""
    bare = re.sub(
        rf"//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/|{QUOTED}",
        lambda m: COMMENT + END * m[0].count("\n") if m[0][0] == "/" else m[0],
        joined, flags=re.M)
    number = 1
    for line in bare.split("\n"):
        yield number, line.replace(END, "")
        number += 1 + line.count(END)


def directives(name, text):
    """The errors in a source's preprocessor directives. A directive that
    renames the file would mislead tokens(). A raw string, or a header's name
    that looks like a comment, could hide such a directive."""
    joined = _joined(text)
    found = [f"{name}: error: raw strings are not for hand-ins"] \
        if re.search(r'\b(u8|[uUL])?R"', joined) else []
    for number, line in _lines(joined):
        word = re.match(rf"[\s{COMMENT}]*(?:#|%:)[\s{COMMENT}]*(\w*)", line)
        if not word:
            continue
        if word[1] not in DIRECTIVES and word[1] != "":
            found.append(f"{name}:{number}: error: #{word[1]} is not for "
                         "hand-ins")
        elif word[1] in ("if", "elif", "include") and \
                re.search(rf"<[^>]*{COMMENT}", line):
            found.append(f"{name}:{number}: error: a comment after < in "
                         f"#{word[1]} is not for hand-ins")
    return found


def own_lines(preprocessed, names):
    """([("FILE:NUMBER", line)] that come from the files `names`, and the names
    of all other files)."""
    own, files, at, number = [], set(), None, 0
    for line in preprocessed.split("\n"):
        marker = re.match(r'# (\d+) "(.*)"', line)
        if marker:
            at, number = marker[2], int(marker[1])
            files.add(at)
        else:
            if at in names:
                own.append((f"{at}:{number}", line))
            number += 1
    return own, files - set(names)


def _outside(words):
    """The attributes in a list, "noinline, format(printf, 1, 2)", that are not
    allowed. None: the list could not be parsed."""
    if words is None:
        return ["of this form"]
    flat = re.sub(ARGUMENTS, "", words)
    names = {w.strip().strip("_") for w in flat.split(",") if w.strip()}
    return sorted(names - ATTRIBUTES)


def _asm(code, bare, allowed):
    """The assembler statements that are not allowed: (place, text)."""
    template = re.compile(rf"[\w\s]*\(?\s*((?:{QUOTED}|\s)*)")
    for match in re.finditer(r"\b(?:__)?asm(?:__)?\b", bare):
        after = template.match(code, match.end())
        text = "".join(part[1:-1] for part in re.findall(QUOTED, after[1]))
        if text not in allowed:
            yield match.start(), f'asm("{text:.40}")'


def tokens(preprocessed, names, allowed=()):
    """What is wrong with the tokens of the files `names`, in a source after the
    preprocessor, which has joined what macros had taken apart. `allowed`:
    assembler templates."""
    own, files = own_lines(preprocessed, names)
    code = "\n".join(line for _, line in own)
    bare = re.sub(QUOTED, lambda m: '"' * len(m[0]), code, flags=re.M)
    wrong = [(at, f"{what} is not for hand-ins")
             for at, what in islice(_asm(code, bare, allowed), MOST)]
    attributes = re.finditer(
        r"\b__attribute(?:__)?\b"
        rf"(?:\s*\(\s*\(((?:[^()]|{ARGUMENTS})*)\)\s*\))?", bare)
    wrong += islice(((m.start(), f"the attribute {word} is not for hand-ins")
                     for m in attributes for word in _outside(m[1])), MOST)
    for pattern, what in (
            (r"(\[|<:)\s*(\[|<:)", "[[attributes]]"),
            (r"\bgoto\s*\*", "goto *"),
            (rf"\b__builtin_(?!(?:{BUILTINS})\b)\w+", "{}"),
            (rf"^[ \t]*#\s*pragma\s+(?!{PRAGMAS}).*$", "{}")):
        wrong += [(m.start(), f"{what.format(m[0].strip())} is not for "
                   "hand-ins") for m in islice(re.finditer(pattern, bare, re.M),
                                             MOST)]
    found = [f"{own[code.count(chr(10), 0, at)][0]}: error: {text}"
             for at, text in sorted(wrong)[:MOST]]
    return found + [f"{other}: error: is included, and is no header"
                    for other in sorted(files)
                    if not other.endswith((".h", "/", ">"))]


# ---- objects ---------------------------------------------------------------

def symbols(elf):
    """({undefined}, {defined for others: symbol})."""
    table = elf.get_section_by_name(".symtab")
    there = [s for s in table.iter_symbols()
             if s.name and s["st_info"]["bind"] != "STB_LOCAL"]
    return {s.name for s in there if s["st_shndx"] == "SHN_UNDEF"}, \
        {s.name: s for s in there if s["st_shndx"] != "SHN_UNDEF"}


def instructions(path, objdump):
    """The names of the privileged instructions in an object."""
    argv = [*objdump, "-d", "--no-show-raw-insn", path]
    found = set()
    with subprocess.Popen(argv, stdout=subprocess.PIPE, encoding="utf-8",
                          stderr=subprocess.DEVNULL) as process:
        for line in process.stdout:
            code = re.match(r"\s+[0-9a-f]+:\t(?:(?:rep\w*|lock) )*"
                            r"(\S+)[ \t]*(.*)", line)
            if code and (PRIVILEGED.fullmatch(code[1]) or
                         SPECIAL.search(code[2])):
                found.add(code[1])
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, argv)
    return found


def _calls_data(elf):
    """Whether code calls or jumps to something that is not code."""
    for section in elf.iter_sections():
        if not section.name.startswith(".rel.text"):
            continue
        table = elf.get_section(section["sh_link"])
        for rel in section.iter_relocations():
            symbol = table.get_symbol(rel["r_info_sym"])
            relative = rel["r_info_type"] in (2, 4)  # R_386_PC32, R_386_PLT32
            where = symbol["st_shndx"]
            if relative and isinstance(where, int) and \
                    not elf.get_section(where)["sh_flags"] & 4:  # SHF_EXECINSTR
                return True
    return False


def _odd_symbols(defined):
    """Symbols that replace or rename others."""
    places = defaultdict(list)
    for name, s in defined.items():
        if s["st_info"]["bind"] != "STB_GLOBAL" or \
                s["st_info"]["type"] not in ("STT_FUNC", "STT_OBJECT") or \
                not isinstance(s["st_shndx"], int):
            yield f"{name} is weak, or no function and no variable"
        elif s["st_size"]:
            places[s["st_shndx"], s["st_value"]].append(name)
    for names in places.values():
        if len(names) > 1:
            yield f"{' and '.join(sorted(names))} are one thing"


def objects(name, path, rules, objdump):
    """What is wrong with an object of the source `name`."""
    with open(path, "rb") as f:
        elf = ELFFile(f)
        used, defined = symbols(elf)
        wrong = [f"uses {s}, which the lab does not offer ({rules.source})"
                 for s in sorted(used - rules.uses - ALWAYS)]
        wrong += [f"defines {s}, which is not the lab's: make it static"
                  for s in sorted(set(defined) - rules.defines)]
        wrong += _odd_symbols({n: s for n, s in defined.items()
                               if n in rules.defines})
        wrong += [f"has a section {s.name}" for s in elf.iter_sections()
                  if not SECTIONS.fullmatch(s.name)]
        if _calls_data(elf):
            wrong.append("calls data as if it were code")
    wrong += [f"has the instruction {i}, which the lab does not offer"
              for i in sorted(instructions(path, objdump) - OF_LOCKS -
                              rules.instructions)]
    return [f"{name}: error: {text}" for text in wrong]


# ---- a tree ----------------------------------------------------------------

class Rules:
    """allowed.toml of a lab."""

    KEYS = ("uses", "defines", "instructions", "asm")

    def __init__(self, root, lab):
        self.source = str(lab.folder / "allowed.toml")
        data = labs.parse(Path(root) / self.source)
        for key in self.KEYS:
            words = data.pop(key, [])
            if not isinstance(words, list) or \
                    not all(isinstance(w, str) for w in words):
                raise labs.LabError(f"{self.source}: {key} must be a list of "
                                    "texts")
            setattr(self, key, set(words))
        if data:
            raise labs.LabError(f"{self.source}: unknown key "
                                f"{sorted(data)[0]}")


def disassembler(tree):
    """The objdump beside the compiler that has built a tree."""
    return [re.sub(r"gcc$", "objdump", cc) for cc in workshop.compiler(tree)]


def sources(lab):
    return [name for name in lab.files if name.endswith(".c")]


def headers(tree, objects):
    """The errors in the headers that the objects of a hand-out depend on: they
    must be unchanged, because the grader uses its own."""
    path = Path(tree) / labs.HEADERS
    if not path.exists():
        return []
    lines = map(str.split, path.read_text("utf-8").splitlines())
    was = {name: digest for digest, name in lines}
    used = set(re.findall(r"\S+\.h\b(?!:)", "".join(
        path.with_suffix(".d").read_text("utf-8") for path in objects)))
    return [f"{name}: error: is included, and is not as it was handed out"
            for name in sorted(used) if was.get(name) !=
            sha256((Path(tree) / name).read_bytes()).hexdigest()]


def errors(tree, lab, budget, **options):
    """What is wrong with the hand-in files in a tree that has been built, as a
    compiler would write it; "" if nothing is. `options` are those of
    workshop.make."""
    build, kind = workshop.kind(tree, lab)
    options["options"] = [*kind, *workshop.as_before(build)]
    rules, found = Rules(tree, lab), []
    own = [lab.solution(tree, name) for name in sources(lab)]
    built = [(name, path) for name in own
             for path in workshop.objects_of(build, name)]
    for name in own:
        found += directives(name, (Path(tree) / name).read_text("utf-8"))
    found += headers(tree, [path for _, path in built])
    if found:
        return "\n".join(found)
    failed = workshop.make(tree, budget,
                           [path.with_suffix(".i").relative_to(tree)
                            for _, path in built], **options)
    if failed:
        return failed
    for name, path in built:
        text = path.with_suffix(".i").read_text("utf-8", "replace")
        found += tokens(text, own, rules.asm)
    if not found:  # assembler could have made an object very large
        for name, path in built:
            found += objects(name, path, rules, disassembler(tree))
    return "\n".join(dict.fromkeys(found))


# ---- allowed.toml ----------------------------------------------------------

def defined_in(root, build, patterns):
    """What sources define for others, by their objects."""
    names = set()
    for source in (at for p in patterns for at in Path(root).glob(p)):
        for path in workshop.objects_of(build, source.relative_to(root)):
            with open(path, "rb") as f:
                names |= set(symbols(ELFFile(f))[1])
    return names


def computed(root, lab):
    """What the objects of a lab's solution use and define, as {key: [word]}; a
    file of mm/ may use all of mm/. What a later lab asks for is not of this
    one's."""
    data = {key: set() for key in Rules.KEYS}
    build = workshop.kind(root, lab)[0]
    if any(str(Path(name).parent) == "mm" for name in sources(lab)):
        data["uses"] = defined_in(root, build, ["mm/*.c"]) - ALWAYS
    data["uses"] |= defined_in(root, build, lab.offers)
    for name in (lab.solution(root, name) for name in sources(lab)):
        for path in workshop.objects_of(build, name):
            with open(path, "rb") as f:
                used, defined = symbols(ELFFile(f))
            data["uses"] |= used - ALWAYS
            data["defines"] |= set(defined)
            data["instructions"] |= instructions(
                path, disassembler(root)) - OF_LOCKS
        text = (Path(root) / name).read_text("utf-8")
        data["asm"] |= set(re.findall(r'__asm__ volatile\("([^"]*)"', text))
    for name, later in labs.later_functions(root, lab).items():
        text = (Path(root) / name).read_text("utf-8")
        data["uses"] |= functions.shared(text, later)
    return {key: sorted(words) for key, words in data.items()}


def text_of(data):
    """The text of an allowed.toml."""
    rows = ["# What the files that are handed in may use and define; written "
            "by", "# python3 -m tools.grading.screen --write."]
    for key, words in data.items():
        rows += [f"{key} = [", *(f'    "{word}",' for word in words), "]"] \
            if words else []
    return "\n".join(rows) + "\n"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--write", action="store_true", required=True)
    parser.parse_args()
    for lab in labs.all_labs(ROOT):
        (ROOT / lab.folder / "allowed.toml").write_text(
            text_of(computed(ROOT, lab)), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
