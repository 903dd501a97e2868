# The kernel: its flags, its sources, the sanitizers, the symbol table.

# With DEBUG=1 an overrun array of a function is found (kernel/canary.h).
CANARY := $(if $(call on,DEBUG),-fstack-protector-strong \
    -mstack-protector-guard=global,-fno-stack-protector)
# With SMP=1 the kernel is one for several processors, from these files, too.
SMP_FLAG := $(if $(call on,SMP),-DCONFIG_SMP=1)
SMP_SRC  := boot/ap.asm kernel/cpus.c tools/workshop/bugs/cmd_cpufault.c \
    $(addprefix kernel/tests/,test_ipi.c test_parallel.c) \
    mm/kmem_mag.c kernel/shell/cmd_kmem_mag.c \
    tools/workshop/bench/cmd_scale.c \
    $(addprefix docs/labs/09-processors/,services/% tests/%) \
    $(addprefix kernel/x86/,apic.c ipi.c mp.c spinlock.c)

CFLAGS := -std=gnu17 -O2 $(if $(call on,DWARF),-g) -m32 -march=i686 \
    -mregparm=3 -ffreestanding -fno-pie -fno-pic $(CANARY) \
    -mgeneral-regs-only -fno-omit-frame-pointer -momit-leaf-frame-pointer \
    -fno-optimize-sibling-calls -fno-strict-aliasing -fno-common \
    -fno-asynchronous-unwind-tables \
    -Wall -Wextra -Wundef \
    -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wshadow $(FATAL) \
    -I. -Ikernel \
    $(if $(call on,DEBUG),-DCONFIG_DEBUG=1) $(if $(call on,WERROR),-Werror) \
    $(SMP_FLAG)
ASFLAGS := -f elf32 -g -F dwarf -I./ $(SMP_FLAG)
LDFLAGS := -nostdlib -static -no-pie -T boot/linker.ld \
    -Wl,--build-id=none,-z,max-page-size=4096,-z,noexecstack \
    $(if $(call on,WERROR),-Wl$(comma)--fatal-warnings)

# OWN_FLAGS are those of one object, and no part of the stamp BUILD/flags.
# A function that ends with a call stays on the stack, so that backtraces name
# it. Only the allocator's front end and buddy jump to their uncommon cases: it
# keeps their common ones short (docs/performance.md).
JUMPING := mm/kmem_cache.o mm/kmem_alloc.o mm/buddy.o
JUMPING += $(if $(call on,SMP),mm/kmem_mag.o)
$(JUMPING:%=$(BUILD)/%): OWN_FLAGS := -foptimize-sibling-calls

# The kernels of the other allocators (mm/others/serve.c): the objects are the
# product's, but the linker takes an allocator of mm/others/ in the place of the
# slab allocator, and of the shell's commands about it.
OTHERS_SHARED := serve supply whole slabs inspect/verify
OTHERS       := $(filter-out $(OTHERS_SHARED),$(patsubst mm/others/%.c,%,\
                  $(wildcard mm/others/*.c)))
# $(call other_obj,DIR,ALLOCATOR): it, and what checks it; SLMB has the pages of
# SLOB.
other_names   = $(1) $(if $(filter slmb,$(1)),slob)
other_obj     = $(foreach o,$(call other_names,$(2)),$(patsubst %.c,$(1)/%.o,\
                  mm/others/$(o).c $(wildcard mm/others/inspect/$(o).c)))
# All but the skeleton of one's own (mm/others/yours.c).
OTHERS_DONE  := $(filter-out yours,$(OTHERS))
OTHERS_SHELL := kernel/shell/cmd_others.c
OTHERS_OUT   := mm/kmem_% mm/inspect/kmem_% mm/debug/% \
                  kernel/shell/cmd_kmem_% \
                  kernel/shell/cmd_debug.o kernel/shell/cmd_log.o

# The lab whose students write one.
OWN_LAB      := docs/labs/10-your-own-allocator

ALLOCATOR ?=
ifneq ($(ALLOCATOR),)
ifneq ($(ALLOCATOR),$(filter $(OTHERS),$(firstword $(ALLOCATOR))))
$(error ALLOCATOR='$(ALLOCATOR)' is none of the other allocators, which are \
    $(OTHERS))
endif
ifneq ($(call on,SANITIZE)$(call on,WORKSHOP)$(if \
    $(wildcard $(OWN_LAB)/tests),,$(wildcard .lab)),)
$(error ALLOCATOR= is for the product, without SANITIZE and WORKSHOP, and not \
    for the hand-out of another lab than 10)
endif
ifneq ($(filter-out kernel run iso run-iso screenshot compare replay-kernel,\
    $(MAKECMDGOALS)),)
$(error ALLOCATOR= is for kernel, run, iso, run-iso, screenshot, compare and \
    replay-kernel)
endif
endif

ASM_SRC := $(wildcard boot/*.asm kernel/x86/*.asm kernel/shell/*.asm)
C_SRC   := $(filter-out $(OTHERS_SHELL),$(call sources,boot/*.c kernel/*.c \
             kernel/*/*.c mm/*.c mm/inspect/*.c mm/debug/*.c drivers/*.c))

# The allocator's code has a section of its own: reports of debugging modes skip
# its frames.
HEAP := --rename-section .text=.text.heap \
    --rename-section .text.unlikely=.text.heap.unlikely
$(patsubst %.c,$(BUILD)/%.o,$(wildcard mm/kmem*.c mm/inspect/kmem*.c \
    mm/debug/*.c)): \
    OWN_SECTION = && $(OBJCOPY) $(HEAP) $@

# The code that refuses an old processor runs on it, before there is a canary.
$(BUILD)/boot/%.o: OWN_FLAGS := -march=i386 -fno-stack-protector

# The apparatus: tests beside what they test, tools/workshop, tests of labs.
WORKSHOP_IN  := $(addsuffix /tests,kernel kernel/* mm mm/* drivers \
                  tools/workshop/* docs/labs/*) \
                  tools/workshop/* docs/labs/*/services
WORKSHOP_SRC := $(filter-out mm/others/% tools/workshop/trace/%,\
                  $(wildcard $(WORKSHOP_IN:%=%/*.c)))
# Lab 10's tests compare the allocator of a student with others. In the tree it
# is the lab's solution, where mm/others/yours.c is a skeleton.
WORKSHOP_SRC += $(if $(wildcard $(OWN_LAB)/tests),$(addprefix mm/others/,\
                  supply.c whole.c bsd.c slob.c sunos.c inspect/verify.c \
                  inspect/bsd.c inspect/sunos.c inspect/slob.c tests/r1.c) \
                  $(firstword \
                  $(wildcard $(OWN_LAB)/solution/mm/others/yours.c) \
                  mm/others/yours.c))
C_SRC        := $(filter-out $(WORKSHOP_SRC),$(C_SRC))

# Of it, what the kernels of `make compare` have.
COMPARE_SRC  := $(wildcard tools/workshop/compare/*.c)
WORKSHOP_SRC := $(filter-out $(COMPARE_SRC),$(WORKSHOP_SRC))

# The sources of all builds, for the check that each command has its help text
# (tools/make/helped.py).
HELPED       := $(BUILD)/helped
HELPED_SRC   := $(wildcard $(C_SRC) $(WORKSHOP_SRC) $(COMPARE_SRC))

ifeq ($(call on,SMP),)
ASM_SRC      := $(filter-out $(SMP_SRC),$(ASM_SRC))
C_SRC        := $(filter-out $(SMP_SRC),$(C_SRC))
WORKSHOP_SRC := $(filter-out $(SMP_SRC),$(WORKSHOP_SRC))
endif

# A hand-out's sources call this where a task is missing.
ifneq ($(wildcard .lab),)
C_SRC        += tools/workshop/labs/missing.c
WORKSHOP_SRC := $(filter-out $(C_SRC),$(WORKSHOP_SRC))
endif

# SANITIZE=1 (tools/workshop/sanitize/kasan.h) compiles every file under the
# undefined behaviour sanitizer, and under the address sanitizer all but: the
# allocator, its tests, and files that read words of any memory (SAN_LOOK). The
# run time is under neither, nor is code that runs before paging (boot/). -O1
# compiles faster; a call for each access (threshold 0) makes the checks ours;
# the offset is KASAN_OFFSET; a shadow byte needs frames on a multiple of 8,
# which the kernel's assembly does not promise. Larger frames need more stack.
SAN_SRC   := $(filter tools/workshop/sanitize/%,$(WORKSHOP_SRC))
SAN_LIST  := kmem_cache_alloc kmem_cache_free kmem_alloc kmem_zalloc kmem_free \
               buddy_alloc buddy_free buddy_alloc_run buddy_free_run \
               buddy_alloc_reserved buddy_free_reserved \
               copy_bytes copy_zero copy_string boot_high paging_bytes \
               paging_init
ifeq ($(call on,SANITIZE),)
WORKSHOP_SRC := $(filter-out $(SAN_SRC),$(WORKSHOP_SRC))
SAN_WRAP  :=
else
SAN_FLAGS := -DCONFIG_SANITIZE=1 -DKSTACK_PAGES=4
SAN_UB    := -O1 -fsanitize=undefined
SAN_ADDR  := -fsanitize=kernel-address -fasan-shadow-offset=0xe0000000 \
    --param asan-instrumentation-with-call-threshold=0 \
    --param asan-stack=1 --param asan-globals=1 \
    -mpreferred-stack-boundary=3 -mincoming-stack-boundary=2 \
    -fsanitize-address-use-after-scope \
    -include tools/workshop/sanitize/string.h
SAN_RUN   := $(wildcard boot/*.c) \
               $(filter-out %/mistakes.c %/test_sanitize.c,$(SAN_SRC))
SAN_LOOK  := kernel/shell/cmd_kmem.c \
               $(filter-out tools/workshop/bugs/bugs_%,$(shell \
               grep -l '"mm/[a-z_/]*_impl\.h"' $(C_SRC) $(WORKSHOP_SRC)))
SAN_BARE  := mm/% kernel/lib/string.c kernel/x86/backtrace.c \
               $(addprefix kernel/x86/,paging.c acpi.c apic.c) $(SAN_LOOK)
SAN_WRAP  := $(SAN_LIST:%=-Wl,--wrap=%)
ASFLAGS   += -DSTACK_PAGES=8
$(BUILD)/mm/kmem_slab.o: OWN_FLAGS := -include tools/workshop/sanitize/slab.h
endif

# The workshop's way into the allocator (tools/workshop/stress/watch.c), and
# what of it mm/ on this machine has.
WATCH_MM   := kmem_alloc_debug kmem_free_debug kmem_debug_flags mm_keep
WATCH_LIST := $(WATCH_MM) commit_promise frame_alloc_run
WATCH_HOST := $(WATCH_MM:%=-Wl,--wrap=%)
WATCH_WRAP := $(WATCH_LIST:%=-Wl,--wrap=%)

san = $(SAN_FLAGS) $(if $(filter $(SAN_RUN),$(1)),,$(SAN_UB) $(if \
        $(filter $(SAN_BARE),$(1)),,$(SAN_ADDR)))

# The product's objects; the workshop kernel is these and WORKSHOP_OBJ. The
# product knows the names of the workshop's commands (kernel/shell/shell.h).
COMMANDS     := $(BUILD)/workshop_commands
OBJ          := $(ASM_SRC:%.asm=$(BUILD)/%.asm.o) $(C_SRC:%.c=$(BUILD)/%.o) \
                  $(COMMANDS).o
WORKSHOP_OBJ := $(WORKSHOP_SRC:%.c=$(BUILD)/%.o) \
                  $(BUILD)/tools/workshop/help.asm.o
PRODUCT_NAME := slate$(ALLOCATOR:%=-%)
KERNEL       := $(BUILD)/$(PRODUCT_NAME).elf
WORKSHOP_ELF := $(BUILD)/slate-workshop.elf
ISO          := $(BUILD)/$(PRODUCT_NAME).iso

# $(call saved,FILE): the text of FILE, or "" if it does not exist. Before 4.2
# make has no $(file <...), an error in 4.0 and 4.1, and runs cat for each file.
saved = $(or $(if $(filter 4.0 4.1,$(MAKE_VERSION)),,$(file <$(1))),\
          $(shell cat $(1) 2>/dev/null))

# $(call stamp,FILE,TEXT): FILE holds TEXT and is new only when TEXT is.
define stamp
ifneq ($$(strip $$(call saved,$(1))),$$(strip $(2)))
$(1): FORCE
endif
$(1):
	@mkdir -p $$(@D)
	@printf '%s\n' '$$(strip $(2))' > $$@
endef
$(eval $(call stamp,$(BUILD)/flags,$$(CC) $$(CFLAGS) $$(SAN_FLAGS) \
    $$(JUMPING) $$(HEAP) $$(SAN_UB) $$(SAN_ADDR) $$(SAN_BARE) $$(NASM) \
    $$(ASFLAGS)))

.PHONY: FORCE
FORCE:

ifneq ($(MISSING),)
$(OBJ) $(WORKSHOP_OBJ): missing
.PHONY: missing
missing:
	@echo 'make: $(MISSING) not found: run tools/setup' >&2; exit 1
endif

# For `make lab`, which writes some sources to BUILD: they come before the
# tree's.
$(BUILD)/%.o: $(BUILD)/%.c $(BUILD)/flags
	$(call say,CC,$<)
	$(Q)$(CC) $(CFLAGS) $(OWN_FLAGS) -MMD -MP -c $< -o $@ $(OWN_SECTION)

$(BUILD)/%.o: %.c $(BUILD)/flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(OWN_FLAGS) $(call san,$<) -MMD -MP -c $< -o $@ \
	    $(OWN_SECTION)

$(BUILD)/%.o: prebuilt/%.o
	$(call say,COPY,$<)
	@mkdir -p $(@D)
	$(Q)cp $< $@

# For tools/grading/screen.py.
$(BUILD)/%.i: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(OWN_FLAGS) $(call san,$<) -E $< -o $@

$(BUILD)/%.asm.o: %.asm $(BUILD)/flags
	$(call say,NASM,$<)
	@mkdir -p $(@D)
	$(Q)$(NASM) $(ASFLAGS) -MD $(@:.o=.d) -MP -MT $@ $< -o $@

# (In a hand-out the list is shorter than where its first objects were made.)
$(eval $(call stamp,$(COMMANDS).sources,$$(WORKSHOP_SRC)))
$(COMMANDS).c: tools/make/commands.py $(WORKSHOP_SRC) $(COMMANDS).sources
	@mkdir -p $(@D)
	$(Q)$(PYTHON) $< $@ $(WORKSHOP_SRC)

$(COMMANDS).o: $(COMMANDS).c $(BUILD)/flags
	$(Q)$(CC) $(CFLAGS) -c $< -o $@

# A hand-out, and a tree in which one is graded, have all help texts, but not
# all commands.
PART := $(if $(wildcard tools/test),,--part)
$(eval $(call stamp,$(HELPED).sources,$$(HELPED_SRC)))

$(HELPED): tools/make/helped.py kernel/shell/help.txt tools/workshop/help.txt \
    $(HELPED).sources $(HELPED_SRC)
	$(Q)$(PYTHON) $< $(PART) $(HELPED_SRC)
	@touch $@

$(BUILD)/kernel/shell/texts.asm.o: | $(HELPED)

# A kernel carries its own symbol table (kernel/lib/symbol.h). It is linked with
# an empty one, the table is made from that, and linked in; the compare at the
# end proves that this moved no function. The link map says which objects it
# has (tools/test/lint.py).
SYMS := $(BUILD)/symbols
LINK = $(CC) $(LDFLAGS) $(SAN_WRAP)

$(SYMS)/empty.c: tools/run/symbols.py
	@mkdir -p $(@D)
	$(Q)$(PYTHON) -m tools.run.symbols --empty $@

# (Without debug information, which would declare each object as characters.)
$(SYMS)/%.o: $(SYMS)/%.c $(BUILD)/flags
	$(Q)$(CC) $(CFLAGS) -g0 -c $< -o $@

# $(call kernel,NAME,OBJECTS,FLAGS): BUILD/NAME.elf and BUILD/NAME.map.
define kernel
$(call stamp,$(SYMS)/$(1)/objects,$(2) $$(LDFLAGS) $$(SAN_WRAP) $(3))

$(SYMS)/$(1)/first.elf: $(2) $(SYMS)/empty.o boot/linker.ld \
    $(SYMS)/$(1)/objects
	$$(Q)$$(LINK) $(3) $(2) $(SYMS)/empty.o -o $$@

$(SYMS)/$(1)/first.nm: $(SYMS)/$(1)/first.elf
	$$(Q)$$(NM) -n $$< > $$@

$(SYMS)/$(1)/table.c: $(SYMS)/$(1)/first.nm tools/run/symbols.py
	$$(call say,SYMBOLS,$$@)
	$$(Q)$$(PYTHON) -m tools.run.symbols $$< $$@

$(BUILD)/$(1).elf: $(SYMS)/$(1)/table.o $(SYMS)/$(1)/first.nm
	$$(call say,LINK,$$@)
	@mkdir -p $$(@D)
	$$(Q)$$(LINK) $(3) $(2) $$< -Wl,-Map=$(BUILD)/$(1).map -o $$@.new
	$$(Q)$$(NM) -n $$@.new > $(SYMS)/$(1)/last.nm
	@cd $(SYMS)/$(1) && grep -i ' t ' first.nm > first.text; \
	grep -i ' t ' last.nm > last.text; \
	cmp -s first.text last.text || { echo \
	'make: linking the symbol table in has moved functions' >&2; exit 1; }
	@mv $$@.new $$@
endef
$(eval $(call kernel,slate,$$(OBJ)))

OTHERS_OBJ := $(filter-out $(OTHERS_OUT:%=$(BUILD)/%),$(OBJ)) \
                $(addprefix $(BUILD)/,$(OTHERS_SHELL:.c=.o) \
                  $(OTHERS_SHARED:%=mm/others/%.o))
$(foreach a,$(OTHERS),$(eval $(call kernel,slate-$(a),\
    $$(OTHERS_OBJ) $(call other_obj,$(BUILD),$(a)),\
    -Wl$$(comma)--defsym$$(comma)other_served=$(a)_allocator)))
$(eval $(call kernel,slate-workshop,$$(OBJ) $$(WORKSHOP_OBJ),$(WATCH_WRAP)))

# The kernels of `make compare` and `make replay-kernel`, one for each
# allocator.
COMPARE_OBJ := $(COMPARE_SRC:%.c=$(BUILD)/%.o) \
                 $(BUILD)/tools/workshop/bench/empty_loop.o \
                 $(BUILD)/tools/workshop/help.asm.o
COMPARED    := slab $(sort $(OTHERS_DONE) $(ALLOCATOR))
COMPARE_ELF := $(COMPARED:%=$(BUILD)/compare/%.elf)
DEFRAG_OBJ  := $(patsubst %.c,$(BUILD)/%.o,\
                 $(wildcard tools/workshop/defrag/*.c))
$(eval $(call kernel,compare/slab,$$(OBJ) $$(COMPARE_OBJ) $$(DEFRAG_OBJ),\
    -Wl$(comma)--wrap=kmem_getpages))
$(foreach a,$(OTHERS),$(eval $(call kernel,compare/$(a),\
    $$(OTHERS_OBJ) $(call other_obj,$(BUILD),$(a)) $$(COMPARE_OBJ),\
    -Wl$(comma)--wrap=kmem_getpages \
    -Wl$$(comma)--defsym$$(comma)other_served=$(a)_allocator)))

-include $(patsubst %.o,%.d,$(filter-out $(PREBUILT),$(OBJ) $(WORKSHOP_OBJ) \
    $(OTHERS_OBJ) $(foreach a,$(OTHERS),$(call other_obj,$(BUILD),$(a))) \
    $(COMPARE_OBJ)))
