# The compiler and assembler that build Slate, and the report of missing tools.

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
OBJCOPY := $(PREFIX)objcopy
AR := $(PREFIX)ar
STRIP := $(PREFIX)strip
else ifneq ($(CROSS_COMPILE),)
CC :=
else ifeq ($(shell echo | gcc -m32 -E - >/dev/null 2>&1 && echo yes),yes)
CC := gcc -m32
NM := nm
OBJCOPY := objcopy
AR := ar
STRIP := strip
else
CC :=
endif

# Mistakes that C once allowed, and that run into garbage: errors in every
# build, as they are for newer compilers.
FATAL := $(addprefix -Werror=,implicit int-conversion \
           incompatible-pointer-types return-type)

NASM   ?= nasm
HOSTCC ?= gcc
VENV := .venv/bin/python
PYTHON ?= $(or $(wildcard $(VENV)),python3)

# The last file of .venv that tools/setup writes.
DEPS := .venv/requirements.txt
$(DEPS):
	@echo 'make: .venv lacks the Python packages: tools/setup installs' \
	    'them, or says why it cannot' >&2; exit 1

MISSING := $(if $(CC),,$(if $(CROSS_COMPILE),$(CROSS_COMPILE)gcc,\
             a C compiler for i686)) \
           $(if $(call have,$(NASM)),,$(NASM)) \
           $(if $(call have,$(PYTHON)),,$(PYTHON))
MISSING := $(strip $(MISSING))
