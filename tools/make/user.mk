# Programs, and the initrd that holds them.

# The library is user/lib and those parts of kernel/lib and mm/ that programs
# use too, compiled once more for them; an archive, so that a program has only
# the objects it needs. A file of user/bin, user/servers or drivers/servers is a
# program, and so is a directory there. Servers live in /sbin. Only the
# workshop's initrd holds the programs of user/tests, which are tests and
# benchmarks, and those in bin or servers of a lab.
USER      := $(BUILD)/user
FILES     ?= 5000
LIB_SRC   := $(wildcard user/lib/*.c tools/workshop/labs/user/*.c) \
               $(filter-out %/kmem_mag.c %/kmem_mag_stat.c,$(call sources,\
                 mm/kmem*.c mm/inspect/kmem*.c mm/debug/*.c)) mm/segkmem.c \
               $(patsubst %,kernel/lib/%.c,string printf div64 line manifest \
                 edit_distance)
LIB_ASM   := user/lib/syscall.asm
SERVERS   := user/servers drivers/servers $(wildcard docs/labs/*/servers)
PROG_IN   := user/bin user/tests $(wildcard docs/labs/*/bin) $(SERVERS)
PROG_SRC  := $(wildcard $(PROG_IN:%=%/*.c))
PROG_DIR  := $(patsubst %/,%,$(dir $(wildcard $(PROG_IN:%=%/*/.))))
USER_SRC  := $(LIB_SRC) $(PROG_SRC) tools/workshop/labs/seed.c \
               $(foreach d,$(PROG_DIR),$(wildcard $(d)/*.c))
PROG_ALL  := $(PROG_SRC:.c=) $(PROG_DIR)
# $(call installed,PROGRAMS): bin/NAME or sbin/NAME of each.
installed = $(addprefix bin/,$(notdir $(filter-out $(SERVERS:%=%/%),$(1)))) \
              $(addprefix sbin/,$(notdir $(filter $(SERVERS:%=%/%),$(1))))
WORKSHOP_PROGRAMS := $(call installed,$(filter user/tests/% docs/labs/%,\
                       $(PROG_ALL)))
PROGRAMS  := $(filter-out $(WORKSHOP_PROGRAMS),$(call installed,$(PROG_ALL)))
LIB_OBJ   := $(LIB_SRC:%.c=$(USER)/%.o) $(LIB_ASM:%.asm=$(USER)/%.asm.o)
USER_OBJ  := $(USER_SRC:%.c=$(USER)/%.o) $(LIB_ASM:%.asm=$(USER)/%.asm.o) \
               $(USER)/user/lib/crt0.asm.o
USER_LIB  := $(USER)/libslate.a
USER_BIN  := $(PROGRAMS:%=$(USER)/%)
WORKSHOP_BIN := $(WORKSHOP_PROGRAMS:%=$(USER)/%)
USER_FILES := $(shell find user/root -type f 2>/dev/null)

USER_CFLAGS  := $(filter-out -Ikernel $(CANARY) $(SMP_FLAG),$(CFLAGS)) \
    -Iuser/lib -fno-stack-protector -ffunction-sections -fdata-sections
USER_ASFLAGS := $(filter-out $(SMP_FLAG),$(ASFLAGS))
$(JUMPING:%=$(USER)/%): OWN_FLAGS := -foptimize-sibling-calls
USER_LDFLAGS := -nostdlib -static -no-pie -T user/lib/user.ld \
    -Wl,--gc-sections,--build-id=none,-z,max-page-size=16,-z,noexecstack \
    $(if $(call on,WERROR),-Wl$(comma)--fatal-warnings)

$(eval $(call stamp,$(USER)/flags,$$(CC) $$(USER_CFLAGS) $$(NASM) \
    $$(USER_ASFLAGS)))
$(eval $(call stamp,$(USER)/objects,$$(USER_SRC) $$(LIB_ASM) $$(USER_LDFLAGS)))
$(eval $(call stamp,$(USER)/programs,$$(PROGRAMS) \
    $$(WORKSHOP_PROGRAMS) $$(USER_FILES)))
$(eval $(call stamp,$(USER)/files,$$(FILES)))

ifneq ($(MISSING),)
$(USER_OBJ): missing
endif

$(USER)/%.o: $(BUILD)/%.c $(USER)/flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(USER_CFLAGS) $(OWN_FLAGS) -MMD -MP -c $< -o $@

$(USER)/%.o: %.c $(USER)/flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(USER_CFLAGS) $(OWN_FLAGS) -MMD -MP -c $< -o $@

$(USER)/%.i: %.c $(USER)/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(USER_CFLAGS) $(OWN_FLAGS) -E $< -o $@

$(USER)/%.asm.o: %.asm $(USER)/flags
	$(call say,NASM,$<)
	@mkdir -p $(@D)
	$(Q)$(NASM) $(USER_ASFLAGS) -I$(USER)/ -MD $(@:.o=.d) -MP -MT $@ \
	    $< -o $@

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

# $(call program,bin/NAME): the program with its debug information.
define program
$(USER)/$(1): $(patsubst %.c,$(USER)/%.o,$(wildcard $(foreach d,$(PROG_IN),\
    $(d)/$(notdir $(1)).c $(d)/$(notdir $(1))/*.c))) \
    $(USER)/user/lib/crt0.asm.o $(USER_LIB) user/lib/user.ld
	$$(call say,LINK,$$@)
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $$(USER_LDFLAGS) $$(filter %.o,$$^) \
	    $$(filter %.a,$$^) -o $$@
endef
$(foreach p,$(PROGRAMS) $(WORKSHOP_PROGRAMS),$(eval $(call program,$(p))))

$(addprefix $(USER)/bin/,codefuzz stormfuzz): \
    $(USER)/user/tests/syscallfuzz/fuzzer.o
$(USER)/bin/drivertest: $(USER)/user/tests/devtest/check.o

# Lab 8: beattest tests the parts of the driver beat and of its client, with
# inputs that follow from the seed of the hand-out.
LAB8 := docs/labs/08-messages
$(USER)/bin/beattest: $(patsubst %.c,$(USER)/%.o,user/tests/devtest/check.c \
    tools/workshop/labs/seed.c $(LAB8)/bin/tempo/beat.c \
    $(filter-out %/main.c %/ram.c,$(wildcard $(LAB8)/servers/beat/*.c)))

-include $(patsubst %.o,%.d,$(filter-out $(PREBUILT),$(USER_OBJ)))

# Texts that are part of a kernel, an initrd or a disk as they are.
TEXTS := $(addsuffix /help.txt,kernel/shell tools/workshop) \
           user/tests/servers $(USER_FILES) \
           $(shell find user/disk -type f 2>/dev/null)

$(BUILD)/texts: $(TEXTS)
	@bad=$$(LC_ALL=C grep -lI -e "$$(printf '\r')" \
	    -e "^$$(printf '\357\273\277')" $^) || mkdir -p $(@D); \
	test -z "$$bad" || { echo 'make: CR LF at the end of lines, or a' \
	    'byte-order mark, would be part of what the kernel reads. A' \
	    'new git clone has neither, and dos2unix removes both. They' \
	    'are in' $$bad >&2; exit 1; }
	@touch $@

$(BUILD)/flags $(USER)/flags: | $(BUILD)/texts

# The archive that the boot loader loads beside the kernel, and that fills the
# root file system: user/root and the programs, without debug information. The
# workshop's has the programs of user/tests and their servers, too.
INITRD          := $(BUILD)/initrd.tar
WORKSHOP_INITRD := $(BUILD)/initrd-workshop.tar
INITRD_BIG      := $(BUILD)/initrd-big.tar
INITRD_TOOL     = $(PYTHON) -m tools.run.initrd --strip '$(STRIP)' \
                    --root user/root --programs $(USER_BIN)
WORKSHOP_INITRD_TOOL = $(INITRD_TOOL) $(WORKSHOP_BIN) \
                    --append etc/servers=user/tests/servers
INITRD_NEEDS    := $(USER_BIN) $(USER_FILES) $(USER)/programs \
                    tools/run/initrd.py
WORKSHOP_INITRD_NEEDS := $(INITRD_NEEDS) $(WORKSHOP_BIN) user/tests/servers

$(INITRD): $(INITRD_NEEDS)
	$(call say,INITRD,$@)
	$(Q)$(INITRD_TOOL) --out $@

$(WORKSHOP_INITRD): $(WORKSHOP_INITRD_NEEDS)
	$(call say,INITRD,$@)
	$(Q)$(WORKSHOP_INITRD_TOOL) --out $@

# Under the sanitizers there is no product: their run time is apparatus.
WORKSHOP_KERNEL := $(WORKSHOP_ELF) $(WORKSHOP_INITRD)
PRODUCT         := $(if $(call on,SANITIZE),$(WORKSHOP_KERNEL),\
                     $(KERNEL) $(if $(ALLOCATOR),$(WORKSHOP_INITRD),\
                       $(INITRD)))
KERNELS         := $(sort $(PRODUCT) $(WORKSHOP_KERNEL))

.PHONY: all kernel workshop initrd-big
all: kernel workshop iso          ## both kernels and the ISO image
kernel: $(PRODUCT)                ## build/slate.elf and build/initrd.tar
workshop: $(WORKSHOP_KERNEL)      ## build/slate-workshop.elf and its initrd:
                                  ## tests, labs, planted bugs, benchmarks

initrd-big: $(INITRD_BIG)         ## build/initrd-big.tar: FILES=5000 more
$(INITRD_BIG): $(INITRD) $(USER)/files
	$(call say,INITRD,$@)
	$(Q)$(INITRD_TOOL) --files $(FILES) --out $@
