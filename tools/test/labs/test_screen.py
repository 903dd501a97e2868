"""What a hand-in may contain (tools/grading/screen.py): hostile sources of all
kinds are refused, and the labs' own solutions are not."""

import subprocess
import tracemalloc
from types import SimpleNamespace

import pytest

from conftest import BUILD, ROOT, other_kernel, sample
from tools.grading import labs, screen
from tools.grading.budget import Budget

pytestmark = pytest.mark.plain

NAME = "hand/in.c"
LAB = labs.load(ROOT, 3)
RULES = SimpleNamespace(
    source="allowed.toml", uses={"kmem_getpages", "cpu_boot"},
    defines={"work", "more"}, instructions={"lidtl"}, asm={"lidt %0"})

HONEST = r"""
#include "kernel/lib/list.h"
#include "mm/kmem_impl.h"

/* A comment may say asm, __attribute__((section("x"))), or
# 5 "that" */
#if 1 > 0 && \
    defined(SMP) // < that
#endif
static void say(int n, const char *format, ...)
    __attribute__ ((unused, format(printf, 2, 3)));
static int __attribute__((unused, noinline)) twice(int n)
{
    return 2 * n; // it's /* no comment
}

int more(int n, const char *text);
int more(int n, const char *text)
{
    static const char *const names[] = {"asm(\"nop\")", "#line", "goto *"};
    int order[2][2] = {[0] = {1, 2}};
    int *last = NULL;

#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        n += strlen(text) == 3 ? order[i & 1][order[0][1] & 1]
                               : names[i & 1][0];
    switch (n) {
    case 1: return 7;
    case 2: return 9;
    case 3: return twice(n);
    case 4: return 11;
    case 5: return 13;
    }
    for (int i = 0; i < n; i++) // gcc writes ud2 for the path without a round
        last = &order[i & 1][0];
    *last = n;
    spin_lock(&kmem_lock_of_test);
    spin_unlock(&kmem_lock_of_test);
    __asm__ volatile("lidt %0" : : "m"(order));
    if (n == 8)
        panic("it is %d", n);
    return kmem_getpages(1, PAGE_SLAB, NULL) != NULL;
}
""".replace("kmem_lock_of_test", "lock").replace(
    "/* A comment", "static struct spinlock lock;\n/* A comment")

WORK = "int work(int n);\nint work(int n)\n{\n    return n;\n}\n"


def body(code, before=""):
    return f"{before}\nint work(int n);\nint work(int n)\n" \
           f"{{\n    {code}\n    return n;\n}}\n"


X86 = '#include "kernel/x86/cpu.h"\n#include "kernel/x86/io.h"\n'

# {name: (source, a part of what is said)}
HOSTILE = {
    # lines of the preprocessor that mislead
    "line": ('#line 5 "mm/kmem.h"\n', "#line"),
    "marker": ('# 5 "mm/kmem.h" 1\n', "#5"),
    "digraph-line": ('%:line 5 "mm/kmem.h"\n', "#line"),
    "marker-after-comment": ('/* a\n */ # 5 "mm/kmem.h"\n', "#5"),
    "marker-behind-a-quote": ("#define Q '/*\n# 5 \"mm/kmem.h\"\n"
                              "#define R '*/\n", "#5"),
    "marker-spliced": ('#\\\n 5 "mm/kmem.h"\n', "#5"),
    "marker-after-a-blank": ('const char *s = "\\ \n/* ";\n'
                             '# 5 "mm/kmem.h"\n/* */', "#5"),
    "marker-after-a-spliced-quote": ('const char *s = "\\\\\n" /* ";\n'
                                     '# 5 "mm/kmem.h"\n/* */', "#5"),
    "marker-after-a-spliced-end": ('/* *\\\n/\n# 5 "mm/kmem.h"\n/* */\n',
                                   "#5"),
    "marker-around-a-comment": ('# /*\n*/ 5 "mm/kmem.h"\n', "#5"),
    "marker-after-no-header": ('#if 0\n#include </*>\n#endif\n'
                               '# 5 "mm/kmem.h"\n/* */\n', "comment after <"),
    "marker-after-a-question": ("#define P(a, b) a##b\n"
                                "#if P(__has_, include)(</*>)\n#endif\n"
                                '# 5 "mm/kmem.h"\n/* */\n',
                                "comment after <"),
    "marker-after-a-mark": ('\ufeff# 5 "mm/kmem.h"\n', "#5"),
    "raw-string-spliced": ('const char *s = R\\\n"(/*)";\n', "raw strings"),
    "raw-string": ('const char *s = R"(/*)";\n', "raw strings"),
    "next": ("#include_next <stddef.h>\n", "#include_next"),
    # what is included
    "solution": ('#include "mm/kmem_slab.c"\n', "mm/kmem_slab.c"),
    "solution-digraph": ('%:include "mm/kmem_slab.c"\n', "mm/kmem_slab.c"),
    "solution-by-macro": ('#define F "mm/kmem_slab.c"\n#include F\n',
                          "mm/kmem_slab.c"),
    # assembler
    "asm": (body('__asm__("nop");'), 'asm("nop")'),
    "asm-volatile": (body('asm volatile ("no" "p");'), 'asm("nop")'),
    "asm-goto": (body('asm goto("" : : : : out); out:'), "asm("),
    "asm-pasted": (body('P(__as, m__)("nop");', "#define P(a, b) a##b"),
                   'asm("nop")'),
    "asm-spliced": (body('__a\\\nsm__("nop");'), 'asm("nop")'),
    "asm-ud2": (body('__asm__("ud2");'), 'asm("ud2")'),
    "incbin": ('__asm__(".incbin \\"Makefile\\"");\n' + WORK, "asm("),
    "renamed": ('int work(int n) __asm__("panic");\n' + WORK, 'asm("panic")'),
    "asm-like-the-allowed": (body('__asm__("lidt %0\\n nop" : : "m"(n));'),
                             "asm("),
    # attributes and pragmas
    "section": (body("", '__attribute__((section("lab_tests"))) int x;'),
                "attribute section"),
    "section-underscored": (body("", '__attribute((__section__("odd"))) int '
                                 "x;"), "attribute section"),
    "section-pasted": (body("", "#define P(a, b) a##b\n"
                            'P(__attri, bute__)((section("odd"))) int x;'),
                       "attribute section"),
    "section-spaced": (body("", '__attribute__( (section(".text.z")) ) int x;'),
                       "attribute section"),
    "section-nested": (body("", '__attribute__((section((((".text.z")))))) '
                            "int x;"), "attribute of this form"),
    "constructor": (body("", "__attribute__((constructor)) static void f"
                         "(void) {}"), "attribute constructor"),
    "destructor": (body("", "__attribute__((unused, destructor(101))) static "
                        "void f(void) {}"), "attribute destructor"),
    "alias": (WORK + 'int more(int) __attribute__((alias("work")));\n',
              "attribute alias"),
    "weak": (body("", "int more(int) __attribute__((weak));"),
             "attribute weak"),
    "ifunc": ("static void *f(void) { return 0; }\n"
              'int work(int) __attribute__((ifunc("f")));\n',
              "attribute ifunc"),
    "naked": (body("", "__attribute__((naked)) void more(void) {}"),
              "attribute naked"),
    "c2x": (body("", '[[gnu::section("odd")]] int x;'), "[[attributes]]"),
    "c2x-digraphs": (body("", '<:<:gnu::section(".text.z"):>:> int x;'),
                     "[[attributes]]"),
    "pragma-weak": ("#pragma weak more = work\n" + WORK, "#pragma weak"),
    "pragma-extname": ("#pragma redefine_extname work panic\n" + WORK,
                       "#pragma redefine_extname"),
    "pragma-operator": (body("", '_Pragma("weak more")'), "#pragma weak"),
    "macro-of-a-hook": (body("", '#include "kernel/lib/hook.h"\nstatic void f'
                             "(const void *a) {}\nHOOK(HOOK_EARLY, f);"),
                        "attribute section"),
    "macro-of-a-test": (body("", '#include "tools/workshop/labs/lab.h"\n'
                             "LAB_TEST(3, mine, LAB_UP) {}"),
                        "attribute section"),
    "return-address": (body("n += (int)__builtin_return_address(0);"),
                       "__builtin_return_address"),
    "frame": (body("n += ((int *)__builtin_frame_address(0))[1];"),
              "__builtin_frame_address"),
    "longjmp": (body("static void *b[5]; __builtin_longjmp(b, 1);"),
                "__builtin_longjmp"),
    # calls of libgcc, which is not linked
    "popcount": (body("n = __builtin_popcount(n);"), "__builtin_popcount"),
    "ctzll": (body("n = __builtin_ctzll(n);"), "__builtin_ctzll"),
    "computed-goto": (body("void *p = &&out; goto *p; out:;"), "goto *"),
    # objects
    "judge": (body("void ktest_run(void *, void *); ktest_run(0, 0);"),
              "uses ktest_run"),
    "expected-panic": (body("void lab_must_panic(void); lab_must_panic();"),
                       "uses lab_must_panic"),
    "foreign-name": (body("", "int waitpid(void);\nint waitpid(void) "
                          "{ return 0; }"), "defines waitpid"),
    "exit-port": (body("outb(0xf4, 0);", X86), "instruction out"),
    "port-in": (body("n += inb(0x60);", X86), "instruction in"),
    "halt": (body("cpu_halt();", X86), "instruction hlt"),
    "page-directory": (body("n += read_cr2();", X86), "instruction mov"),
    "code-as-data": (body("((void (*)(void))code)();", "static const unsigned "
                          "char code[] = {0x0f, 0x21, 0xc0, 0xc3};"),
                     "calls data"),
    "thread-local": (body("x += n; n = x;", "static __thread int x;"),
                     "section .t"),
}


def compiled(folder, option):
    """What the kernel's compiler makes of NAME in the folder."""
    compiler = (BUILD / "flags").read_text("utf-8").split()[0]
    subprocess.run(
        [compiler, "-m32", "-march=i686", "-mgeneral-regs-only", "-O2",
         "-std=gnu17", "-ffreestanding", "-fno-pie", "-w",
         "-fno-asynchronous-unwind-tables", "-iquote", ROOT,
         "-I", ROOT / "kernel", NAME, option, "-o", "out"],
        cwd=folder, check=True)
    return folder / "out"


def said(folder, text):
    (folder / NAME).parent.mkdir()
    (folder / NAME).write_text(text, "utf-8")
    return screen.directives(NAME, text) or \
        screen.tokens(compiled(folder, "-E").read_text("utf-8"), [NAME],
                      RULES.asm) or \
        screen.objects(NAME, compiled(folder, "-c"), RULES,
                       screen.disassembler(BUILD.parent))


def test_honest_code_is_taken(tmp_path):
    assert said(tmp_path, HONEST) == []


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_code_is_refused(tmp_path, name):
    text, part = HOSTILE[name]
    found = said(tmp_path, text)
    assert any(part in line for line in found), found


def test_a_line_is_named(tmp_path):
    found = said(tmp_path, body('__asm__("nop");'))
    assert found == [f'{NAME}:5: error: asm("nop") is not for hand-ins']


def test_many_findings_take_little_time_and_room():
    text = f'# 1 "{NAME}"\n' + 'asm("");\n' * 200000
    assert len(screen.tokens(text, [NAME])) == screen.MOST


@pytest.mark.parametrize("lab", [
    pytest.param(lab, id=lab.folder.name, marks=sample if lab.cpus > 1 else [])
    for lab in labs.all_labs(ROOT)])
def test_what_a_lab_allows(lab):
    """The solution is taken, and allowed.toml is what it needs."""
    if lab.cpus > 1:
        other_kernel("smp")
    path = ROOT / lab.folder / "allowed.toml"
    assert path.read_text("utf-8") == \
        screen.text_of(screen.computed(ROOT, lab)), \
        "run python3 -m tools.grading.screen --write"
    assert screen.errors(ROOT, lab, Budget()) == ""


def test_the_objects_of_wrong_tokens_are_not_looked_at(monkeypatch):
    monkeypatch.setattr(screen, "tokens", lambda *_: ["wrong"])
    monkeypatch.setattr(screen, "objects", lambda *_: ["looked at"])
    assert screen.errors(ROOT, LAB, Budget()) == "wrong"


def test_the_code_of_an_object_may_be_larger_than_memory():
    tracemalloc.start()
    screen.instructions("x", ["sh", "-c", f"yes {'x' * 99} | head -c 8000000"])
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1000000


@pytest.mark.parametrize("text, wrong", (
    ("uses = 3", "uses must be a list of texts"),
    ("use = []", "unknown key use"), ("uses = [", "allowed.toml")))
def test_bad_rules(tmp_path, text, wrong):
    (tmp_path / LAB.folder).mkdir(parents=True)
    (tmp_path / LAB.folder / "allowed.toml").write_text(text, "utf-8")
    with pytest.raises(labs.LabError, match=wrong):
        screen.Rules(tmp_path, LAB)
