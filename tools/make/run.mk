# Run in QEMU, with GDB, recorded; pictures of the heap.

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

.PHONY: record replay culprit
record: $(KERNEL) $(INITRD)       ## record a run: CMD="…", or you type
	@$(PYTHON) tools/replay.py record $(KERNEL)

replay: $(KERNEL) $(INITRD)       ## the record in GDB, forwards and backwards
	@$(PYTHON) tools/replay.py open $(KERNEL)

culprit: $(KERNEL) $(INITRD)      ## record CMD="…"; who damaged the heap?
	@$(PYTHON) tools/replay.py culprit $(KERNEL)
