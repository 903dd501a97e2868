# Run in QEMU, with GDB, recorded; pictures of the heap.

# Values that the user types reach the tools in the environment. Neither make
# nor the shell expands them, so they may contain any character.
$(foreach v,CMD APPEND DISK STUB,$(eval override $(v) := $$(value $(v))))
export CMD APPEND DISK STUB MEM ICOUNT KVM CPUS CORE BUDGET STEP
export SIZE ALIGN OBJECTS HOT CACHE

# The kernel to boot: the product, or with WORKSHOP=1 the workshop kernel, which
# has the tests of labs; a hand-out boots it, too, but with another allocator.
WORKSHOP ?= $(if $(ALLOCATOR),,$(if $(wildcard .lab),1))
BOOTED := $(if $(call on,WORKSHOP),$(WORKSHOP_KERNEL),\
            $(PRODUCT))

.PHONY: run run-iso gdb debug-server core screenshot
run: $(BOOTED)                    ## boot in QEMU: CMD="kmastat; poweroff"
                                  ## MEM=16 ICOUNT=1 APPEND=option KVM=1
                                  ## CPUS=4: processors
                                  ## DISK=build/disk.img
                                  ## WORKSHOP=1: the workshop kernel
                                  ## GIVEN=1: in a hand-out, with objects for
                                  ## what is not written
                                  ## ALLOCATOR=slob: with another allocator
	@$(PYTHON) -m tools.run.run $(firstword $(BOOTED))

run-iso: $(ISO)                   ## boot the ISO image by BIOS and GRUB
	@$(PYTHON) -m tools.run.run --iso $(ISO)

gdb: $(BOOTED)                    ## QEMU with GDB attached, stopped at kmain;
                                  ## CORE=file: that file, without QEMU
	@$(PYTHON) -m tools.run.debug $(firstword $(BOOTED))

core: $(BOOTED)                   ## run CMD="…", keep memory: build/slate.core
	@$(PYTHON) -m tools.run.core $(firstword $(BOOTED)) $(BUILD)/slate.core

screenshot: $(BOOTED)             ## run CMD="…", keep the VGA screen as a
                                  ## picture: build/slate.png
	@$(PYTHON) -m tools.run.core --screen $(firstword $(BOOTED)) \
	    $(BUILD)/slate.png

debug-server: $(BOOTED)           ## QEMU halted, waiting for a GDB; STUB=file:
                                  ## the socket, for an editor
	@$(PYTHON) -m tools.run.debug --server $(firstword $(BOOTED))

.PHONY: watch picture cachesim
watch: $(BOOTED)                  ## as run, with commands that watch the heap:
                                  ## mark, diff, frag, why, slabtop
	@$(PYTHON) -m tools.watch.watch $(firstword $(BOOTED))

picture: $(WORKSHOP_KERNEL)       ## build/picture/index.html: the heap drawn
                                  ## CMD="run kenbus" MEM=32 STEP=10
	@$(PYTHON) -m tools.measure.picture $(WORKSHOP_ELF) $(BUILD)/picture

cachesim: $(WORKSHOP_KERNEL)      ## what colouring does in a processor's cache:
                                  ## SIZE=300 ALIGN=8 OBJECTS=60 HOT=4
                                  ## CACHE=486, pentium, mmx or 8192:4:16
	@$(PYTHON) -m tools.measure.cachesim $(WORKSHOP_ELF) $(BUILD)/cachesim

# A heap of more than 1 MiB at rest takes this many files.
BENCH_FILES := 7600
$(BUILD)/initrd-bench.tar: $(WORKSHOP_INITRD) $(USER)/files
	$(call say,INITRD,$@)
	$(Q)$(WORKSHOP_INITRD_TOOL) --files $(BENCH_FILES) --out $@

.PHONY: bench
bench: $(WORKSHOP_ELF) $(BUILD)/initrd-bench.tar ## instructions per
                                  ## operation
	@INITRD_TOOL="$(WORKSHOP_INITRD_TOOL)" \
	    $(PYTHON) -m tools.measure.bench \
	    $(WORKSHOP_ELF) $(BUILD)/initrd-bench.tar $(BUILD)/bench.json \
	    $(if $(call on,DOC),--doc docs/performance.md)

.PHONY: record replay culprit
record: $(WORKSHOP_KERNEL)        ## record a run: CMD="…", or you type
	@$(PYTHON) -m tools.run.replay record $(WORKSHOP_ELF)

replay: $(WORKSHOP_KERNEL)        ## the record in GDB, forwards and backwards
	@$(PYTHON) -m tools.run.replay open $(WORKSHOP_ELF)

culprit: $(WORKSHOP_KERNEL)       ## record CMD="…", find the wrong store
	@$(PYTHON) -m tools.run.replay culprit $(WORKSHOP_ELF)
