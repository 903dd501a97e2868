# Images that other machines boot: ISO, and the ext2 disk.

$(ISO): $(PRODUCT) boot/grub.cfg tools/run/iso.py
	$(call say,ISO,$@)
	@$(PYTHON) -m tools.run.iso $(PRODUCT) $@

.PHONY: iso
iso: $(ISO)                       ## build/slate.iso: a CD, and a USB stick
	@echo '$(ISO) boots from a CD, and from a USB stick that it is' \
	    'copied to with dd; by a BIOS, not by UEFI alone.'

# An ext2 disk with what is in user/disk, made afresh.
DISK_MB ?= 32

.PHONY: disk
disk: $(BUILD)/texts              ## build/disk.img, ext2 with a journal,
                                  ## DISK_MB=32
	@$(PYTHON) -m tools.run.disk $(BUILD)/disk.img '$(DISK_MB)' user/disk
