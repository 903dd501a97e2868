# Slate's build. `make` alone lists the targets.
#
# One Makefile, no recursion: sources are found by wildcard, objects land
# under BUILD in folders of the same names, and dependencies come from the
# compiler. Flags and object lists are kept in stamp files, so that changing
# one rebuilds what it touches and a second `make` does nothing.
#
#   BUILD=dir  where products go           V=1      show whole commands
#   DEBUG=1    lock-rank assertions        WERROR=1 warnings are errors
#   DWARF=0    nothing for debuggers       SANITIZE=1 under sanitizers

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

on = $(filter-out 0,$($(1)))

DWARF ?= 1
BUILD ?= $(if $(call on,SANITIZE),build/sanitize,$(if \
           $(call on,DEBUG),build/debug,build))

Q   := $(if $(call on,V),,@)
say = $(if $(call on,V),@:,@printf '  %-7s %s\n' '$(1)' '$(2)')

# ---- tools -----------------------------------------------------------------

have = $(shell command -v $(1) 2>/dev/null)

# The first of these that works: CROSS_COMPILE, i686-elf-, i686-linux-gnu-,
# and the host's own gcc -m32 if it makes 32-bit code (an x86 gcc does; the
# kernel needs no library, so no 32-bit one need be there).
PREFIX := $(firstword $(foreach p,$(CROSS_COMPILE) \
            $(if $(CROSS_COMPILE),,i686-elf- i686-linux-gnu-),\
            $(if $(call have,$(p)gcc),$(p))))
ifneq ($(PREFIX),)
CC := $(PREFIX)gcc
NM := $(PREFIX)nm
AR := $(PREFIX)ar
STRIP := $(PREFIX)strip
else ifneq ($(CROSS_COMPILE),)
CC :=
else ifeq ($(shell echo | gcc -m32 -E - >/dev/null 2>&1 && echo yes),yes)
CC := gcc -m32
NM := nm
AR := ar
STRIP := strip
else
CC :=
endif

NASM   ?= nasm
HOSTCC ?= gcc
PYTHON ?= python3
GRUB_MKRESCUE ?= $(firstword $(foreach t,grub-mkrescue grub2-mkrescue \
                   i686-elf-grub-mkrescue,$(if $(call have,$(t)),$(t))))
VENV := .venv/bin/python

MISSING := $(if $(CC),,$(if $(CROSS_COMPILE),$(CROSS_COMPILE)gcc,\
             a C compiler for i686)) \
           $(if $(call have,$(NASM)),,$(NASM)) \
           $(if $(call have,$(PYTHON)),,$(PYTHON))
MISSING := $(strip $(MISSING))

comma := ,

# ---- the kernel ------------------------------------------------------------

CFLAGS := -std=gnu17 -O2 $(if $(call on,DWARF),-g) -m32 -march=i686 \
    -mregparm=3 -ffreestanding -fno-pie -fno-pic -fno-stack-protector \
    -mgeneral-regs-only -fno-omit-frame-pointer -momit-leaf-frame-pointer \
    -fno-strict-aliasing -fno-common -fno-asynchronous-unwind-tables \
    -Wall -Wextra -Wundef \
    -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wshadow -I. -Ikernel \
    $(if $(call on,DEBUG),-DCONFIG_DEBUG=1) $(if $(call on,WERROR),-Werror)
ASFLAGS := -f elf32 -g -F dwarf -I./
LDFLAGS := -nostdlib -static -no-pie -T boot/linker.ld \
    -Wl,--build-id=none,-z,max-page-size=4096,-z,noexecstack \
    $(if $(call on,WERROR),-Wl$(comma)--fatal-warnings)

# The zoo's bugs, and the services of lab 7, keep their names in backtraces.
$(BUILD)/kernel/zoo/%.o $(BUILD)/kernel/hunt/%.o: \
    CFLAGS += -fno-optimize-sibling-calls

ASM_SRC := $(wildcard boot/*.asm kernel/x86/*.asm)
C_SRC   := $(wildcard kernel/*.c kernel/*/*.c mm/*.c mm/tests/*.c drivers/*.c)

# SANITIZE=1 (kernel/sanitize/kasan.h): every file under the undefined behaviour
# sanitizer; under the address sanitizer all but the allocator, its tests, and
# what reads words where others have bytes, or shows whatever memory it is asked
# for (SAN_LOOK); the run time under neither. -O1
# compiles faster; a call for each access (threshold 0) makes the checks ours;
# the offset is KASAN_OFFSET; a shadow byte wants frames on a multiple of 8,
# which the kernel's assembly does not promise.
SAN_SRC   := $(filter kernel/sanitize/%,$(C_SRC))
SAN_LIST  := kmem_cache_alloc kmem_cache_free kmem_alloc kmem_zalloc kmem_free \
               buddy_alloc buddy_free buddy_alloc_run buddy_free_run \
               copy_bytes copy_zero copy_string
ifeq ($(call on,SANITIZE),)
C_SRC     := $(filter-out $(SAN_SRC),$(C_SRC))
SAN_WRAP  :=
else
SAN_FLAGS := -DCONFIG_SANITIZE=1
SAN_UB    := -O1 -fsanitize=undefined
SAN_ADDR  := -fsanitize=kernel-address -fasan-shadow-offset=0xe0000000 \
    --param asan-instrumentation-with-call-threshold=0 \
    --param asan-stack=1 --param asan-globals=1 \
    -mpreferred-stack-boundary=3 -mincoming-stack-boundary=2 \
    -fsanitize-address-use-after-scope -include kernel/sanitize/string.h
SAN_RUN   := $(filter-out kernel/sanitize/mistakes.c,$(SAN_SRC))
SAN_LOOK  := kernel/shell/cmd_kmem.c kernel/shell/cmd_machine.c \
               $(filter-out kernel/zoo/bugs_%,$(shell \
               grep -l '"mm/[a-z_]*_impl\.h"' $(C_SRC)))
SAN_BARE  := mm/% kernel/lib/string.c kernel/x86/backtrace.c \
               kernel/x86/paging.c $(SAN_LOOK)
SAN_WRAP  := $(SAN_LIST:%=-Wl,--wrap=%)
ASFLAGS   += -DSANITIZE=1
endif
san = $(SAN_FLAGS) $(if $(filter $(SAN_RUN),$(1)),,$(SAN_UB) $(if \
        $(filter $(SAN_BARE),$(1)),,$(SAN_ADDR)))

OBJ     := $(ASM_SRC:%.asm=$(BUILD)/%.asm.o) $(C_SRC:%.c=$(BUILD)/%.o)
KERNEL  := $(BUILD)/slate.elf
ISO     := $(BUILD)/slate.iso

# $(call stamp,FILE,TEXT): FILE holds TEXT and is new only when TEXT is.
define stamp
ifneq ($$(strip $$(shell cat $(1) 2>/dev/null)),$$(strip $(2)))
$(1): FORCE
endif
$(1):
	@mkdir -p $$(@D)
	@printf '%s\n' '$$(strip $(2))' > $$@
endef
$(eval $(call stamp,$(BUILD)/flags,$$(CC) $$(CFLAGS) $$(SAN_FLAGS) \
    $$(SAN_UB) $$(SAN_ADDR) $$(SAN_BARE) $$(NASM) $$(ASFLAGS)))
$(eval $(call stamp,$(BUILD)/objects,$$(OBJ) $$(LDFLAGS) $$(SAN_WRAP)))

.PHONY: FORCE
FORCE:

ifneq ($(MISSING),)
$(OBJ): missing
.PHONY: missing
missing:
	@echo 'make: $(MISSING) not found: run tools/setup' >&2; exit 1
endif

$(BUILD)/%.o: %.c $(BUILD)/flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(call san,$<) -MMD -MP -c $< -o $@

$(BUILD)/%.asm.o: %.asm $(BUILD)/flags
	$(call say,NASM,$<)
	@mkdir -p $(@D)
	$(Q)$(NASM) $(ASFLAGS) -MD $(@:.o=.d) -MP -MT $@ $< -o $@

# The kernel carries its own symbol table (kernel/lib/symbol.h). It is linked
# with an empty one, the table is taken from that, and linked in; the compare
# at the end makes sure that this moved nothing that the table speaks of.
LINK = $(CC) $(LDFLAGS) $(SAN_WRAP) $(OBJ) $(1) -o $(2)
SYMS := $(BUILD)/symbols

$(SYMS)/empty.c: tools/symbols.py
	@mkdir -p $(@D)
	$(Q)$(PYTHON) tools/symbols.py --empty $@

$(SYMS)/table.c: $(SYMS)/first.nm tools/symbols.py
	$(call say,SYMBOLS,$@)
	$(Q)$(PYTHON) tools/symbols.py $< $@

# (No debug information: it declares each object as characters, and GDB would
# believe that.)
$(SYMS)/%.o: $(SYMS)/%.c $(BUILD)/flags
	$(Q)$(CC) $(CFLAGS) -g0 -c $< -o $@

$(SYMS)/first.elf: $(OBJ) $(SYMS)/empty.o boot/linker.ld $(BUILD)/objects
	$(Q)$(call LINK,$(SYMS)/empty.o,$@)

$(SYMS)/first.nm: $(SYMS)/first.elf
	$(Q)$(NM) -n $< > $@

$(KERNEL): $(SYMS)/table.o $(SYMS)/first.nm
	$(call say,LINK,$@)
	$(Q)$(call LINK,$(SYMS)/table.o,$@.new)
	$(Q)$(NM) -n $@.new > $(SYMS)/last.nm
	@grep -i ' t ' $(SYMS)/first.nm > $(SYMS)/first.text; \
	grep -i ' t ' $(SYMS)/last.nm > $(SYMS)/last.text; \
	cmp -s $(SYMS)/first.text $(SYMS)/last.text || { echo \
	'make: linking the symbol table in has moved functions' >&2; exit 1; }
	@mv $@.new $@

-include $(OBJ:.o=.d)

# ---- programs --------------------------------------------------------------

# The library is user/lib and those parts of kernel/lib and mm/ that programs
# use too, compiled once more for them; an archive, so that a program has only
# what it needs. A file of user/bin, user/servers or drivers/servers is a
# program, and so is a folder there or in user/tests. Servers live in /sbin.
USER      := $(BUILD)/user
INITRD    := $(BUILD)/initrd.tar
INITRD_BIG := $(BUILD)/initrd-big.tar
FILES     ?= 5000
LIB_SRC   := $(wildcard user/lib/*.c) $(wildcard mm/kmem*.c) mm/segkmem.c \
               mm/page_stat.c $(patsubst %,kernel/lib/%.c,string printf div64 \
               line manifest)
LIB_ASM   := user/lib/syscall.asm
SERVERS   := user/servers drivers/servers
PROG_IN   := user/bin user/tests $(SERVERS)
PROG_SRC  := $(wildcard $(patsubst %,%/*.c,user/bin $(SERVERS)))
PROG_DIR  := $(patsubst %/,%,$(dir $(wildcard $(PROG_IN:%=%/*/.))))
USER_SRC  := $(LIB_SRC) $(PROG_SRC) \
               $(foreach d,$(PROG_DIR),$(wildcard $(d)/*.c))
PROG_ALL  := $(PROG_SRC:.c=) $(PROG_DIR)
PROG_SBIN := $(filter $(SERVERS:%=%/%),$(PROG_ALL))
PROG_BIN  := $(filter-out $(PROG_SBIN),$(PROG_ALL))
PROGRAMS  := $(addprefix bin/,$(notdir $(PROG_BIN))) \
               $(addprefix sbin/,$(notdir $(PROG_SBIN)))
LIB_OBJ   := $(LIB_SRC:%.c=$(USER)/%.o) $(LIB_ASM:%.asm=$(USER)/%.asm.o)
USER_OBJ  := $(USER_SRC:%.c=$(USER)/%.o) $(LIB_ASM:%.asm=$(USER)/%.asm.o) \
               $(USER)/user/lib/crt0.asm.o
USER_LIB  := $(USER)/libslate.a
USER_BIN  := $(PROGRAMS:%=$(USER)/%)
USER_FILES := $(shell find user/root -type f 2>/dev/null)

USER_CFLAGS  := $(filter-out -Ikernel,$(CFLAGS)) -Iuser/lib \
    -ffunction-sections -fdata-sections
USER_LDFLAGS := -nostdlib -static -no-pie -T user/lib/user.ld \
    -Wl,--gc-sections,--build-id=none,-z,max-page-size=4096,-z,noexecstack \
    $(if $(call on,WERROR),-Wl$(comma)--fatal-warnings)

$(eval $(call stamp,$(USER)/flags,$$(CC) $$(USER_CFLAGS) $$(NASM) $$(ASFLAGS)))
$(eval $(call stamp,$(USER)/objects,$$(LIB_SRC) $$(LIB_ASM) $$(USER_LDFLAGS)))
$(eval $(call stamp,$(USER)/programs,$$(PROGRAMS) $$(USER_FILES)))
$(eval $(call stamp,$(USER)/files,$$(FILES)))

ifneq ($(MISSING),)
$(USER_OBJ): missing
endif

$(USER)/%.o: %.c $(USER)/flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(USER_CFLAGS) -MMD -MP -c $< -o $@

$(USER)/%.asm.o: %.asm $(USER)/flags
	$(call say,NASM,$<)
	@mkdir -p $(@D)
	$(Q)$(NASM) $(ASFLAGS) -I$(USER)/ -MD $(@:.o=.d) -MP -MT $@ $< -o $@

# The numbers of system calls, in the assembler's words.
$(USER)/syscall.inc: kernel/abi/syscall.h
	@mkdir -p $(@D)
	@awk -F '[()]' '/^#define SYSCALL_VECTOR/ { sub("#", "%"); print } \
	    /^ +X\(/ { print "%define SYS_" $$2 " " n++ }' $< > $@
$(USER)/user/lib/syscall.asm.o: $(USER)/syscall.inc

$(USER_LIB): $(LIB_OBJ) $(USER)/objects
	$(call say,AR,$@)
	@rm -f $@
	$(Q)$(AR) rcD $@ $(LIB_OBJ)

# $(call program,bin/NAME): with all that a debugger wants to know.
define program
$(USER)/$(1): $(patsubst %.c,$(USER)/%.o,$(wildcard $(foreach d,$(PROG_IN),\
    $(d)/$(notdir $(1)).c $(d)/$(notdir $(1))/*.c))) \
    $(USER)/user/lib/crt0.asm.o $(USER_LIB) user/lib/user.ld
	$$(call say,LINK,$$@)
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $$(USER_LDFLAGS) $$(filter %.o,$$^) \
	    $$(filter %.a,$$^) -o $$@
endef
$(foreach p,$(PROGRAMS),$(eval $(call program,$(p))))

# devtest tries the parts of the driver beat one by one.
$(USER)/bin/devtest: $(patsubst %.c,$(USER)/%.o,$(filter-out %/main.c %/ram.c,\
    $(wildcard drivers/servers/beat/*.c)))

-include $(USER_OBJ:.o=.d)

# The archive that the boot loader loads beside the kernel, and the root file
# system is made of: user/root and the programs, without what only a debugger
# wants.
INITRD_TOOL = $(PYTHON) tools/initrd.py --strip '$(STRIP)' --root user/root \
                --programs $(USER_BIN)

$(INITRD): $(USER_BIN) $(USER_FILES) $(USER)/programs tools/initrd.py
	$(call say,INITRD,$@)
	$(Q)$(INITRD_TOOL) --out $@

.PHONY: all kernel initrd-big
all: kernel iso                   ## the kernel and the ISO image
kernel: $(KERNEL) $(INITRD)       ## build/slate.elf and build/initrd.tar

initrd-big: $(INITRD_BIG)         ## build/initrd-big.tar: FILES=5000 more
$(INITRD_BIG): $(INITRD) $(USER)/files
	$(call say,INITRD,$@)
	$(Q)$(INITRD_TOOL) --files $(FILES) --out $@

# ---- images ----------------------------------------------------------------

GRUB_DIR := $(firstword $(wildcard /usr/lib/grub/i386-pc \
              $(dir $(GRUB_MKRESCUE))../lib/*grub/i386-pc))

$(ISO): $(KERNEL) $(INITRD) boot/grub.cfg
	$(call say,ISO,$@)
	@test -n '$(GRUB_MKRESCUE)' && command -v xorriso >/dev/null || { \
	    echo 'make: grub-mkrescue or xorriso not found: run tools/setup' \
	    >&2; exit 1; }
	@rm -rf $(BUILD)/iso && mkdir -p $(BUILD)/iso/boot/grub
	@cp $(KERNEL) $(BUILD)/iso/boot/slate.elf
	@cp $(INITRD) $(BUILD)/iso/boot/initrd.tar
	@cp boot/grub.cfg $(BUILD)/iso/boot/grub/grub.cfg
	$(Q)$(GRUB_MKRESCUE) $(if $(GRUB_DIR),-d $(GRUB_DIR)) \
	    --install-modules="multiboot normal iso9660 biosdisk boot" \
	    --fonts= --locales= --themes= -o $@ $(BUILD)/iso \
	    >$(BUILD)/iso.log 2>&1 || { cat $(BUILD)/iso.log >&2; exit 1; }

.PHONY: iso
iso: $(ISO)                       ## build/slate.iso: a CD, and a USB stick
	@echo '$(ISO) boots from a CD, and from a USB stick that it is' \
	    'copied to with dd.'

# An ext2 disk with what is in user/disk, made afresh.
DISK_MB ?= 32

.PHONY: disk
disk:                             ## build/disk.img, ext2 with a journal,
                                  ## DISK_MB=32
	@mkdir -p $(BUILD)
	@$(PYTHON) tools/slate/disk.py $(BUILD)/disk.img '$(DISK_MB)' user/disk

# ---- running ---------------------------------------------------------------

# What the user typed reaches tools/run.py in the environment, unread by make
# and by the shell, so that any character may stand in it.
override CMD    := $(value CMD)
override APPEND := $(value APPEND)
override DISK   := $(value DISK)
export CMD APPEND DISK MEM ICOUNT KVM CORE BUDGET STEP
export SIZE ALIGN OBJECTS HOT CACHE

.PHONY: run run-iso gdb debug-server core
run: $(KERNEL) $(INITRD)          ## boot in QEMU: CMD="kmastat; poweroff"
                                  ## MEM=16 ICOUNT=1 APPEND=option KVM=1
                                  ## DISK=build/disk.img
	@$(PYTHON) tools/run.py $(KERNEL)

run-iso: $(ISO)                   ## boot the ISO image by BIOS and GRUB
	@$(PYTHON) tools/run.py --iso $(ISO)

gdb: $(KERNEL) $(INITRD)          ## QEMU with GDB attached, stopped at kmain;
                                  ## CORE=file: that file, without QEMU
	@$(PYTHON) tools/gdb/debug.py $(KERNEL)

core: $(KERNEL) $(INITRD)         ## run CMD="…", keep memory: build/slate.core
	@$(PYTHON) tools/core.py $(KERNEL) $(BUILD)/slate.core

debug-server: $(KERNEL) $(INITRD) ## QEMU halted, waiting for a GDB
	@$(PYTHON) tools/gdb/debug.py --server $(KERNEL)

.PHONY: picture cachesim screenshots
picture: $(KERNEL) $(INITRD)      ## build/picture/index.html: the heap drawn
                                  ## CMD="run kenbus" MEM=32 STEP=10
	@$(PYTHON) tools/picture.py $(KERNEL) $(BUILD)/picture

cachesim: $(KERNEL) $(INITRD)     ## what colouring does in a processor's cache:
                                  ## SIZE=256 ALIGN=8 OBJECTS=435 HOT=4
                                  ## CACHE=486, pentium, mmx or 8192:4:16
	@$(PYTHON) tools/cachesim.py $(KERNEL) $(BUILD)/cachesim

screenshots: $(KERNEL) $(INITRD)  ## the pictures in docs/pictures, again
	@$(PYTHON) tools/screenshots.py $(KERNEL) docs/pictures

# The book as a site. MkDocs lives in an environment of its own, made at the
# first use.
BOOK_ENV := .venv/book

$(BOOK_ENV)/done: tools/book/requirements.txt
	$(call say,VENV,$(BOOK_ENV))
	@rm -rf $(BOOK_ENV) && mkdir -p .venv && $(PYTHON) -m venv $(BOOK_ENV)
	$(Q)$(BOOK_ENV)/bin/python -m pip install -q \
	    --disable-pip-version-check -r $<
	@touch $@

.PHONY: book
book: $(BOOK_ENV)/done            ## docs/ as a site: build/book/index.html
	@$(BOOK_ENV)/bin/mkdocs build -q -f tools/book/mkdocs.yml
	@echo 'build/book/index.html'

.PHONY: transcripts
transcripts: $(KERNEL) $(INITRD) | $(VENV) ## what the book types is typed
                                  ## again, and written anew
	@cd tools && $(PYTHON) -m slate.shells -w ../$(KERNEL)
	@PYTHONPATH=tools $(PYTHON) -m slate.sessions $(KERNEL) docs/*.md
	@SLATE_BOOK=write $(PYTEST) -q tools/tests/test_gdb_objects.py -k book

.PHONY: paper-index
paper-index:                      ## the index of the paper in docs/paper.md
	@cd tools && $(PYTHON) -m slate.paper

.PHONY: record replay culprit
record: $(KERNEL) $(INITRD)       ## record a run: CMD="…", or you type
	@$(PYTHON) tools/replay.py record $(KERNEL)

replay: $(KERNEL) $(INITRD)       ## the record in GDB, forwards and backwards
	@$(PYTHON) tools/replay.py open $(KERNEL)

culprit: $(KERNEL) $(INITRD)      ## record CMD="…"; who damaged the heap?
	@$(PYTHON) tools/replay.py culprit $(KERNEL)

# ---- tests -----------------------------------------------------------------

# mm/ and its tests as a program of this machine, under the sanitizers.
HOST_SRC    := $(wildcard mm/*.c mm/tests/*.c mm/tests/host/*.c)
HOST_WARN   := -Wall -Wextra -Wshadow $(if $(call on,WERROR),-Werror)
HOST_CFLAGS := -std=gnu17 -g -fno-omit-frame-pointer -I. -Imm/tests/host \
                 $(HOST_WARN)
HOST_SAN    := -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined
HOST_COV    := -O0 --coverage -DCONFIG_COVERAGE=1
HOST_LIBS   := -lcmocka -lpthread -lm

# $(call host,DIR,FLAGS): DIR/mmtest from objects under DIR.
define host
$(call stamp,$(1)/flags,$$(HOSTCC) $$(HOST_CFLAGS) $(2))
$(call stamp,$(1)/objects,$$(HOST_SRC))
$(1)/%.o: %.c $(1)/flags
	$$(call say,HOSTCC,$$<)
	@mkdir -p $$(@D)
	$$(Q)$$(HOSTCC) $$(HOST_CFLAGS) $(2) -MMD -MP -c $$< -o $$@
$(1)/mmtest: $$(HOST_SRC:%.c=$(1)/%.o) $(1)/objects
	$$(call say,HOSTLD,$$@)
	$$(Q)$$(HOSTCC) $(2) $$(filter %.o,$$^) $$(HOST_LIBS) -o $$@
-include $$(HOST_SRC:%.c=$(1)/%.d)
endef
$(eval $(call host,$(BUILD)/host,$$(HOST_SAN)))
$(eval $(call host,$(BUILD)/coverage,$$(HOST_COV)))

# The core of the ATA driver, with a drive that is a program.
ATA_TEST_SRC := $(addprefix drivers/servers/ata/,channel.c drive.c queue.c) \
                  $(wildcard drivers/servers/ata/tests/*.c)
$(eval $(call stamp,$(BUILD)/host/ata-objects,$$(ATA_TEST_SRC)))
$(BUILD)/host/atatest: $(ATA_TEST_SRC:%.c=$(BUILD)/host/%.o) \
    $(BUILD)/host/ata-objects
	$(call say,HOSTLD,$@)
	$(Q)$(HOSTCC) $(HOST_SAN) $(filter %.o,$^) $(HOST_LIBS) -o $@
-include $(ATA_TEST_SRC:%.c=$(BUILD)/host/%.d)

HOST_TEST := $(addprefix $(BUILD)/host/,mmtest atatest)

# The core of the ext2 server, with a disk that is an image in memory.
EXT2_SRC  := $(filter-out %/main.c,$(wildcard user/servers/ext2/*.c)) \
               $(wildcard user/servers/ext2/tests/*.c)
EXT2_TOOL := $(BUILD)/host/ext2tool
$(eval $(call stamp,$(BUILD)/host/ext2-objects,$$(EXT2_SRC)))
$(EXT2_TOOL): $(EXT2_SRC:%.c=$(BUILD)/host/%.o) $(BUILD)/host/ext2-objects
	$(call say,HOSTLD,$@)
	$(Q)$(HOSTCC) $(HOST_SAN) $(filter %.o,$^) -o $@
-include $(EXT2_SRC:%.c=$(BUILD)/host/%.d)
HOST_TEST += $(EXT2_TOOL)

PYTEST    := SLATE_BUILD=$(BUILD) $(VENV) -m pytest -c tools/tests/pytest.ini \
               $(PYTEST_ARGS)
# Several files of tests at a time, one more than there are processors: some
# wait for clocks.
ABREAST    = -n $$(($$(getconf _NPROCESSORS_ONLN) + 1)) \
               --dist loadfile --no-loadscope-reorder

$(VENV):
	@echo 'make: $(VENV) not found: run tools/setup' >&2; exit 1

.PHONY: test test-host test-kernel test-system failures zoo test-replay fuzz
.PHONY: bench coverage mutants storm powercut test-ext2 fuzz-ext2
test: $(KERNEL) $(HOST_TEST) $(ISO) $(BOOK_ENV)/done
test: | $(VENV)                   ## all tests, as below; SANITIZE=1: on a
                                  ## kernel under the sanitizers
	@$(PYTEST) $(ABREAST) tools/tests

test-host: $(HOST_TEST) | $(VENV) ## mm/, ata on this machine, sanitizers
	@$(PYTEST) tools/tests/test_host.py tools/tests/test_ata.py

test-ext2: $(EXT2_TOOL) | $(VENV) ## the ext2 server's core on this machine
	@$(PYTEST) tools/tests/test_ext2.py tools/tests/test_ext2_journal.py

fuzz-ext2: $(EXT2_TOOL) | $(VENV) ## damaged images, 100,000 of them
	@SLATE_LONG=1 $(PYTEST) tools/tests/test_ext2.py -k damaged

test-kernel: $(KERNEL) $(INITRD) | $(VENV) ## the kernel's own suites, in QEMU
	@$(PYTEST) tools/tests/test_kernel.py

test-system: $(KERNEL) $(ISO) | $(VENV) ## the image: serial, PS/2, VGA, GDB
	@$(PYTEST) $(ABREAST) tools/tests --ignore=tools/tests/test_host.py \
	    --ignore=tools/tests/test_kernel.py

failures: $(KERNEL) $(INITRD) | $(VENV) ## the n-th allocation fails, for all n
	@SLATE_LONG=1 $(PYTEST) tools/tests/test_failures.py

test-replay: $(KERNEL) $(INITRD) | $(VENV) ## bugs of the zoo to their lines
	@SLATE_LONG=1 $(PYTEST) tools/tests/test_replay.py

storm: $(KERNEL) $(INITRD) | $(VENV) ## the disk driver dies at work: SEEDS=20
	@SLATE_LONG=1 $(PYTEST) tools/tests/test_storm.py

powercut: $(KERNEL) $(INITRD) $(EXT2_TOOL) | $(VENV) ## the power goes at
                                  ## thousands of moments: SEEDS=60
	@SLATE_LONG=1 $(PYTEST) tools/tests/test_powercut.py
	@SLATE_LONG=1 $(PYTEST) -n auto tools/tests/test_ext2.py \
	    tools/tests/test_ext2_journal.py -k 'cut or all_or_not'

zoo: $(KERNEL) $(INITRD) | $(VENV) ## each bug in each mode; no false alarms
	@SLATE_LONG=1 $(PYTEST) tools/tests/test_zoo.py

# A heap of more than 1 MiB at rest takes so many files.
BENCH_FILES := 7600
$(BUILD)/initrd-bench.tar: $(INITRD) $(USER)/files
	$(call say,INITRD,$@)
	$(Q)$(INITRD_TOOL) --files $(BENCH_FILES) --out $@

bench: $(KERNEL) $(BUILD)/initrd-bench.tar ## instructions per operation
	@INITRD_TOOL="$(INITRD_TOOL)" $(PYTHON) tools/bench.py $(KERNEL) \
	    $(BUILD)/initrd-bench.tar \
	    $(BUILD)/bench.json \
	    $(if $(call on,DOC),--doc docs/performance.md)

fuzz: $(KERNEL) $(INITRD) | $(VENV) ## a million random system calls: SEEDS=10
                                  ## and 100,000 random lines for the shell
	@$(PYTHON) tools/fuzz.py $(KERNEL) --seeds $(or $(SEEDS),10) \
	    --calls $(or $(CALLS),100000)
	@SLATE_LONG=1 $(PYTEST) tools/tests/test_noise.py

coverage: $(BUILD)/coverage/mmtest ## branch coverage of mm/ by the host tests
	@$(PYTHON) tools/coverage.py $(BUILD)/coverage $(BUILD)/coverage.json

mutants:                          ## break mm/ in many ways; tests must notice
	@$(PYTHON) mm/tests/mutants/run.py

# ---- labs ------------------------------------------------------------------

# As with CMD: what was typed is read by the tools alone.
override LAB   := $(value LAB)
override OUT   := $(value OUT)
override SEED  := $(value SEED)
override TASKS := $(value TASKS)
export LAB OUT SEED TASKS

# The tests' Python, which reads TOML; any from 3.11 on does.
LAB_PYTHON = $(if $(wildcard $(VENV)),$(VENV),$(PYTHON))

.PHONY: lab grade grade-soak test-labs
lab:                              ## a student's tree: LAB=2 OUT=dir
                                  ## SEED=7 TASKS=2.1,2.3 (solved in it)
	@$(LAB_PYTHON) tools/lab.py --lab "$$LAB" --out "$$OUT" \
	    --seed "$$SEED" --tasks "$$TASKS"

grade-soak:                       ## ten times on a busy machine: LAB=2
	@$(LAB_PYTHON) tools/soak.py --lab "$$LAB"

test-labs: $(KERNEL) $(INITRD) | $(VENV) ## each lab from hand-out to wrong
                                  ## solutions; LAB=2: that one alone
	@SLATE_LONG=1 $(PYTEST) -n auto --dist loadgroup \
	    tools/tests/test_labs.py

grade:                            ## points for a lab, here: LAB=2
	@tools/grade --here --lab "$$LAB" --out $(BUILD)/grade

# ---- housekeeping ----------------------------------------------------------

C_FILES := $(wildcard boot/*.[ch] kernel/*.[ch] kernel/*/*.[ch] mm/*.[ch] \
             mm/tests/*.[ch] mm/tests/host/*.[ch] drivers/*.[ch] \
             drivers/*/*.[ch] drivers/*/*/*.[ch] \
             user/*/*.[ch] user/*/*/*.[ch])

C_FILES += $(wildcard user/*/*/*/*.[ch])

.PHONY: doctor lint format clean help
doctor:                           ## each tool: version, verdict, how to get it
	@$(PYTHON) tools/doctor.py

lint:                             ## layout, include arrows, budgets, cppcheck
	@$(PYTHON) tools/lint.py

format:                           ## clang-format on all C files
	$(Q)clang-format -i $(C_FILES)

clean:                            ## remove what was built
	$(Q)rm -rf $(BUILD)

help:                             ## this list
	@echo 'Slate: make TARGET [V=1] [DEBUG=1] [SANITIZE=1]' \
	    '[WERROR=1] [BUILD=dir]'
	@awk -F '[:#]+' '/^[a-z0-9-]+:.*##/ { printf "  %-13s %s\n", $$1, \
	    substr($$0, index($$0, "## ") + 3); next } \
	    /^ +## / { printf "  %-13s %s\n", "", \
	    substr($$0, index($$0, "## ") + 3) }' Makefile
