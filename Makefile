# Slate's build. `make` alone lists the targets.
#
# The rules are in tools/make/, a file for each purpose; there is no recursion.
# Sources are found by wildcard, objects land under BUILD in directories of the
# same names, and dependencies come from the compiler. Flags and object lists
# are kept in stamp files: changing one rebuilds what depends on it, and a
# second `make` does nothing.
#
#   BUILD=dir  where products go           V=1      show whole commands
#   DEBUG=1    checks locks and stacks     WERROR=1 warnings are errors
#   DWARF=0    nothing for debuggers       SANITIZE=1 under sanitizers
#   SMP=1      for several processors, as CPUS=2 and more imply
#   GIVEN=1    in a hand-out: with objects for what is not written
#   ALLOCATOR=slob  another allocator in the place of Slate's (mm/others/)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

# All processors make a goal, unless there is a -j, here or in a make above.
# Several goals are made one after the other: `make clean kernel`.
JOBS := $(filter -j% --jobserver%,$(MAKEFLAGS) $(shell echo "$$MAKEFLAGS"))
ifeq ($(JOBS)$(word 2,$(MAKECMDGOALS)),)
MAKEFLAGS += -j$(shell getconf _NPROCESSORS_ONLN)
endif

on = $(filter-out 0,$($(1)))

DWARF ?= 1

# The hand-out of a lab on several processors is for this kind of kernel alone.
LAB_CPUS := $(if $(wildcard .lab),$(shell sed -n 's/^cpus = //p' .lab))
CPUS  := $(or $(CPUS),$(LAB_CPUS))
SMP   ?= $(if $(LAB_CPUS)$(filter-out 1,$(CPUS)),1)

# build, or a folder there that the settings name: build/smp-debug.
space := $() $()
BUILD ?= build$(addprefix /,$(subst $(space),-,$(strip \
           $(if $(call on,GIVEN),given) $(if $(call on,SMP),smp) \
           $(if $(call on,SANITIZE),sanitize,$(if $(call on,DEBUG),debug)))))

# Make, the shell or QEMU take these as separators and the like.
comma := ,
hash  := \#
ODD   := \ $(comma) : ; = % $(hash) ' " ` & | * ? < > ( )
WRONG := $(strip $(foreach c,$(ODD),$(findstring $c,$(BUILD))))
ifneq ($(words $(BUILD))$(WRONG),1)
$(error BUILD='$(BUILD)' must be the name of a folder without blanks and $(ODD))
endif

# A hand-out of a lab has objects in the place of some sources, prebuilt/mm/x.o
# for mm/x.c. $(call sources,PATTERNS): the names of the sources of both kinds.
# Those that end in _given are for GIVEN=1 (tools/make/labs.mk).
sources = $(filter-out $(if $(call on,GIVEN),,%_given.c),\
            $(foreach p,$(1),$(sort $(wildcard $(p)) \
            $(patsubst prebuilt/%.o,%.c,$(wildcard prebuilt/$(p:.c=.o))))))
PREBUILT := $(if $(wildcard prebuilt),$(patsubst prebuilt/%,$(BUILD)/%,\
              $(shell find prebuilt -name '*.o')))
OTHER_KIND := $(call on,DEBUG)$(call on,SANITIZE)$(if \
    $(LAB_CPUS),$(if $(call on,SMP),,plain),$(call on,SMP))
ifneq ($(and $(PREBUILT),$(OTHER_KIND)),)
$(error DEBUG, SANITIZE and SMP are not for a hand-out: the objects in \
    prebuilt/ are those of one build)
endif
ifneq ($(call on,GIVEN),)
ifeq ($(filter %_given.o,$(PREBUILT)),)
$(error GIVEN is for the hand-out of a lab whose kernel does not boot at once)
endif
ifneq ($(origin BUILD),file)
$(error GIVEN has a folder of its own: leave out BUILD)
endif
endif

Q   := $(if $(call on,V),,@)
say = $(if $(call on,V),@:,@printf '  %-7s %s\n' '$(1)' '$(2)')

# In the order in which each uses those before it. A hand-out has no test.mk.
PARTS := $(wildcard $(patsubst %,tools/make/%.mk,toolchain kernel user images \
           run book web test labs))
include $(PARTS)

SOURCE_DIRECTORIES := boot kernel mm drivers user tools docs

.PHONY: doctor format clean help
doctor:                           ## each tool: version, verdict, how to get it
	@$(PYTHON) -m tools.run.doctor

format: | $(DEPS)                 ## clang-format on all C files
	$(Q)find $(SOURCE_DIRECTORIES) -name '*.[ch]' \
	    -exec .venv/bin/clang-format -i {} +

clean:                            ## remove what was built
	$(Q)rm -rf $(BUILD)

help:                             ## this list
	@echo 'Slate: make TARGET [V=1] [DEBUG=1] [SANITIZE=1] [SMP=1]' \
	    '[WERROR=1] [BUILD=dir]'
	@awk -F '[:#]+' '/^[a-z0-9-]+:.*##/ { printf "  %-13s %s\n", $$1, \
	    substr($$0, index($$0, "## ") + 3); next } \
	    /^ +## / { printf "  %-13s %s\n", "", \
	    substr($$0, index($$0, "## ") + 3) }' Makefile $(PARTS)
