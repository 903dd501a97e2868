# Run in QEMU, with GDB, recorded; pictures of the heap.

# Values that the user types reach the tools in the environment. Neither make
# nor the shell expands them, so they may contain any character.
override CMD    := $(value CMD)
override APPEND := $(value APPEND)
override DISK   := $(value DISK)
export CMD APPEND DISK MEM ICOUNT KVM CORE BUDGET STEP
export SIZE ALIGN OBJECTS HOT CACHE

.PHONY: run run-iso gdb debug-server core
run: $(KERNEL) $(INITRD)          ## boot in QEMU: CMD="kmastat; poweroff"
                                  ## MEM=16 ICOUNT=1 APPEND=option KVM=1
                                  ## DISK=build/disk.img
	@$(PYTHON) -m tools.run.run $(KERNEL)

run-iso: $(ISO)                   ## boot the ISO image by BIOS and GRUB
	@$(PYTHON) -m tools.run.run --iso $(ISO)

gdb: $(KERNEL) $(INITRD)          ## QEMU with GDB attached, stopped at kmain;
                                  ## CORE=file: that file, without QEMU
	@$(PYTHON) -m tools.run.debug $(KERNEL)

core: $(KERNEL) $(INITRD)         ## run CMD="…", keep memory: build/slate.core
	@$(PYTHON) -m tools.run.core $(KERNEL) $(BUILD)/slate.core

debug-server: $(KERNEL) $(INITRD) ## QEMU halted, waiting for a GDB
	@$(PYTHON) -m tools.run.debug --server $(KERNEL)

.PHONY: picture cachesim screenshots
picture: $(KERNEL) $(INITRD)      ## build/picture/index.html: the heap drawn
                                  ## CMD="run kenbus" MEM=32 STEP=10
	@$(PYTHON) -m tools.measure.picture $(KERNEL) $(BUILD)/picture

cachesim: $(KERNEL) $(INITRD)     ## what colouring does in a processor's cache:
                                  ## SIZE=256 ALIGN=8 OBJECTS=435 HOT=4
                                  ## CACHE=486, pentium, mmx or 8192:4:16
	@$(PYTHON) -m tools.measure.cachesim $(KERNEL) $(BUILD)/cachesim

screenshots: $(KERNEL) $(INITRD)  ## the pictures in docs/pictures, again
	@$(PYTHON) -m tools.measure.screenshots $(KERNEL) docs/pictures

.PHONY: record replay culprit
record: $(KERNEL) $(INITRD)       ## record a run: CMD="…", or you type
	@$(PYTHON) -m tools.run.replay record $(KERNEL)

replay: $(KERNEL) $(INITRD)       ## the record in GDB, forwards and backwards
	@$(PYTHON) -m tools.run.replay open $(KERNEL)

culprit: $(KERNEL) $(INITRD)      ## record CMD="…"; who damaged the heap?
	@$(PYTHON) -m tools.run.replay culprit $(KERNEL)
