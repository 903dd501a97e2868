# Images that other machines boot: ISO, and the ext2 disk.

GRUB_DIR := $(firstword $(wildcard /usr/lib/grub/i386-pc \
              $(dir $(GRUB_MKRESCUE))../lib/*grub/i386-pc))

$(ISO): $(PRODUCT) boot/grub.cfg
	$(call say,ISO,$@)
	@test -n '$(GRUB_MKRESCUE)' && command -v xorriso >/dev/null || { \
	    echo 'make: grub-mkrescue or xorriso not found: run tools/setup' \
	    >&2; exit 1; }
	@rm -rf $(BUILD)/iso && mkdir -p $(BUILD)/iso/boot/grub
	@cp $(word 1,$(PRODUCT)) $(BUILD)/iso/boot/slate.elf
	@cp $(word 2,$(PRODUCT)) $(BUILD)/iso/boot/initrd.tar
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
	@$(PYTHON) -m tools.run.disk $(BUILD)/disk.img '$(DISK_MB)' user/disk
