"""The console of programs: lines, control keys, the return to the shell."""
# Tests: drivers/console.c, drivers/serial.c, drivers/kbd.c, drivers/vga.c

import re


def begin(machine, command):
    """Starts a program, and waits for the echo of that line."""
    machine.send(command + "\r")
    machine.expect(r"\n")


def test_a_line_is_edited_and_read_whole(boot):
    machine = boot()
    begin(machine, "run cat")
    machine.send("on two\x17three\bE\r")
    machine.expect(r"\non threE\r?\n")
    machine.send("never\x15at last\r")
    machine.expect(r"\nat last\r?\n")
    machine.send("\x04")
    machine.prompt()


def test_end_of_file_in_a_line_hands_over_what_there_is(boot):
    machine = boot()
    begin(machine, "run cat")
    machine.send("half\x04")
    machine.expect(r"halfhalf")
    machine.send("\x04")
    machine.prompt()


def test_interrupt_ends_the_program(boot):
    machine = boot()
    begin(machine, "run cat")
    machine.send("typed in vain\x03")
    machine.expect(r"\^C\r?\n")
    machine.prompt()
    machine.send("echo alive\r")
    machine.expect(r"\nalive\r?\n")


def test_interrupt_typed_ahead_is_not_lost(boot):
    machine = boot()
    machine.send("run sleep 1000\r\x03")
    machine.expect(r"\^C\r?\n")
    machine.prompt()


def test_keys_typed_on_the_line_while_the_kernel_boots_are_read(boot):
    """The first key comes before the FIFOs are enabled, which empties them. A
    second one could come just then, and be lost: see drivers/serial.c."""
    machine = boot(wait=False, extra=["-S"])
    machine.send("e")
    machine.qmp.execute("cont")
    machine.expect(r"slate> e")
    machine.send("cho typed early\r")
    machine.expect(r"cho typed early\r?\ntyped early\r?\n")
    machine.prompt()


def test_interrupt_at_the_prompt_of_the_shell_ends_nothing(boot):
    machine = boot()
    begin(machine, "sh")
    machine.settle("program")
    machine.send("garbage\x03")
    machine.settle("program")
    machine.send("sleep 1000\r")
    machine.expect(r"\n")
    machine.send("\x03")
    machine.settle("program")
    machine.send("echo still here\r")
    machine.expect(r"\nstill here\r?\n")


def test_the_way_out_and_back(boot):
    machine = boot()
    begin(machine, "run cat")
    machine.send("mark\r")
    machine.expect(r"\nmark\r?\n")
    machine.send("\x1c")
    machine.expect(r"cat \(pid \d+\) has lost the console")
    machine.prompt()
    machine.send("ps\r")
    machine.expect(r" cat\r?\n")
    machine.prompt()
    machine.send("continue\r")
    machine.send("there again\r")
    machine.expect(r"\nthere again\r?\nthere again\r?\n")
    machine.send("\x04")
    machine.prompt()


def test_the_prompt_is_there_after_the_way_back(boot):
    """With what was typed."""
    machine = boot()
    begin(machine, "sh")
    machine.settle("program")
    machine.send("echo ba")
    machine.settle("program")
    machine.send("\x1c")
    machine.expect(r"has lost the console")
    machine.prompt()
    assert machine.program("continue").endswith("\r$ echo ba\x1b[K\r\x1b[9C")
    machine.send("ck\r")
    machine.expect(r"\nback\r?\n")


def test_both_keys_from_the_other_keyboard(boot):
    machine = boot()
    begin(machine, "run cat")
    machine.keys("a", "ret")
    machine.expect(r"\na\r?\n")
    machine.keys("ctrl-backslash")
    machine.expect(r"has lost the console")
    machine.prompt()
    machine.send("continue\r")
    machine.expect(r"\n")
    machine.keys("b", "ret")
    machine.expect(r"\nb\r?\n")
    machine.keys("ctrl-c")
    machine.expect(r"\^C\r?\n")
    machine.prompt()


def test_output_is_held_back_while_the_shell_has_the_console(boot):
    machine = boot()
    begin(machine, "run sh -c 'echo begun; cat; echo held back'")
    machine.expect(r"begun\r?\n")
    machine.send("\x1c")
    machine.expect(r"has lost the console")
    machine.prompt()
    cat = re.search(r"(\d+) .* cat\n", machine.until("ps", r" cat$"))[1]
    machine.command(f"kill {cat}")
    assert "held back" not in machine.until("ps", r" console +echo$")
    machine.send("continue\r")
    machine.expect(r"\nheld back\r?\n")
    machine.prompt()


def test_another_session_takes_neither_keys_nor_mode_nor_signals(boot,
                                                                 workshop):
    """Three processes of session 1 try without end while a shell in a session
    of its own is used."""
    machine = boot(image=workshop)
    machine.command("run -b ttygrab")
    machine.program("sh")
    for line in ("one", "two", "three"):
        machine.send(f"echo {line}\r")
        machine.expect(rf"\n{line}\r?\n")
    machine.send("cat\r")
    machine.expect(r"\n")
    machine.send("edited\x7f\x7f here\r")
    machine.expect(r"\nedit here\r?\n")
    machine.send("\x03")
    machine.settle("program")
    machine.send("sleep 1000\r")
    machine.expect(r"\n")
    machine.send("\x03")
    machine.settle("program")
    machine.send("wc -c /stolen\r")
    machine.expect(r"\n *0 /stolen\r?\n")


def test_a_program_in_the_background_gets_no_keys(boot):
    """Neither one of the kernel's shell, in the same session, nor one of
    sh."""
    machine = boot()
    machine.command("run -b cat")
    machine.program("run sh")
    machine.program("cat &")
    machine.send("echo mine\r")
    machine.expect(r"\nmine\r?\n")
    machine.settle("program")
    machine.program("cat && cat & cat | wc -l &")
    machine.send("echo mine too\r")
    machine.expect(r"\nmine too\r?\n")
