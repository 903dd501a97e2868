# Tests: on this machine and in QEMU; coverage; hand-outs and their proofs. No
# hand-out has this file.

# mm/ and its tests as a program of this machine, under the sanitizers.
MM_SRC      := $(wildcard mm/*.c mm/inspect/*.c mm/debug/*.c)
OTHERS_SRC  := $(filter-out %/serve.c %/test_serve.c,\
                 $(wildcard mm/others/*.c mm/others/inspect/*.c \
                   mm/others/tests/*.c))
HOST_SRC    := $(MM_SRC) $(wildcard mm/tests/*.c mm/debug/tests/*.c \
                 mm/tests/host/*.c mm/tests/trace/*.c mm/tests/explore/*.c) \
                 $(OTHERS_SRC) \
                 $(addprefix tools/workshop/stress/,fail.c watch.c \
                   tests/test_fail.c tests/test_watch.c) \
                 $(addprefix tools/test/,budget.c fibers.c)
HOST_WARN   := -Wall -Wextra -Wshadow $(FATAL) $(if $(call on,WERROR),-Werror)
# Loops count their iterations: what hangs uses up its budget of them.
COUNTED     := -include tools/test/budget.h -Wno-dangling-else
HOST_CFLAGS := -std=gnu17 -g -fno-omit-frame-pointer -I. -Imm/tests/host \
                 $(COUNTED) $(HOST_WARN) $(WATCH_HOST)
HOST_SAN    := -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined
HOST_COV    := -O0 --coverage -DCONFIG_COVERAGE=1
# No object depends on the number of a line, which a mutant may change.
HOST_MUT    := -O1 -g0 -w -D__LINE__=0
HOST_LIBS   := -lcmocka -lpthread -lm

# The same with magazines. Without the cases that know what the slabs do.
MAGAZINES := -DHOST_MAGAZINES=1
MAG_SRC   := $(filter-out mm/tests/test_% mm/debug/tests/% mm/others/% \
               %/test_explore.c %/test_fail.c %/test_watch.c,$(HOST_SRC)) \
               mm/tests/test_kmem_mag.c

# $(call compiled,DIR,FLAGS,MORE,SOURCES): the objects under DIR are compiled
# with FLAGS, and those of SOURCES with MORE, too.
define compiled
$(call stamp,$(1)/flags,$$(HOSTCC) $(2) $(3))
$(4:%.c=$(1)/%.o): private MORE := $(3)
$(1)/%.o: %.c $(1)/flags
	$$(call say,HOSTCC,$$<)
	@mkdir -p $$(@D)
	$$(Q)$$(HOSTCC) $(2) $$(MORE) -MMD -MP -c $$< -o $$@
endef

# $(call linked,FILE,DIR,SOURCES,FLAGS): the program FILE, of objects under DIR.
define linked
$(call stamp,$(1).sources,$(3))
$(1): $(3:%.c=$(2)/%.o) $(1).sources
	$$(call say,HOSTLD,$$@)
	$$(Q)$$(HOSTCC) $$(filter %.o,$$^) $(4) -o $$@
-include $(3:%.c=$(2)/%.d)
endef

# $(call host,DIR,FLAGS,SOURCES): DIR/mmtest from objects under DIR.
define host
$(call compiled,$(1),$$(HOST_CFLAGS) $(2))
$(call linked,$(1)/mmtest,$(1),$(3),$(2) $$(WATCH_HOST) $$(HOST_LIBS))
endef
$(eval $(call host,$(BUILD)/host,$$(HOST_SAN),$(HOST_SRC)))
$(eval $(call host,$(BUILD)/coverage,$$(HOST_COV),$(HOST_SRC)))
$(eval $(call host,$(BUILD)/mutants,$$(HOST_MUT),$(HOST_SRC)))
$(eval $(call host,$(BUILD)/magazines,$$(HOST_SAN) $(MAGAZINES),$(MAG_SRC)))

# mm/kmem.h on another allocator.
SERVE_SRC := $(addprefix mm/others/,serve.c supply.c whole.c slob.c sunos.c \
               inspect/verify.c inspect/sunos.c inspect/slob.c \
               tests/test_serve.c) \
               mm/page.c mm/buddy.c mm/segkmem.c mm/inspect/buddy_verify.c \
               mm/tests/host/platform.c tools/test/budget.c

SERVED    := -Wl,--defsym,other_served=serve_test_allocator
$(eval $(call linked,$(BUILD)/host/servetest,$(BUILD)/host,$(SERVE_SRC),\
    $$(HOST_SAN) $(SERVED)))
$(eval $(call linked,$(BUILD)/coverage/servetest,$(BUILD)/coverage,\
    $(SERVE_SRC),$$(HOST_COV) $(SERVED)))

# mm/ under real threads, with the thread sanitizer.
THREADS_MM    := $(MM_SRC)
THREADS_SRC   := $(THREADS_MM) $(wildcard mm/tests/threads/*.c)
THREADS_FLAGS := -std=gnu17 -g -O1 -fno-omit-frame-pointer -I. \
                   -Imm/tests/threads $(HOST_WARN) -fsanitize=thread

# $(call threads,DIR,FLAGS): DIR/mmthreads. Steps are not counted in
# mm/tests/threads/, where threads wait for each other in loops.
define threads
$(call compiled,$(1),$$(THREADS_FLAGS) $(2),$$(COUNTED),$(THREADS_MM))
$(call linked,$(1)/mmthreads,$(1),$(THREADS_SRC),-fsanitize=thread -lpthread)
endef
$(eval $(call threads,$(BUILD)/threads,))
$(eval $(call threads,$(BUILD)/threads-mag,$(MAGAZINES)))
MMTHREADS     := $(BUILD)/threads/mmthreads
MMTHREADS_MAG := $(BUILD)/threads-mag/mmthreads

# The other allocators likewise. (A processor may wait in mm/others/.)
OTHERTHREADS_SRC := $(filter-out %/serve.c,$(wildcard mm/others/*.c \
                      mm/others/inspect/*.c)) \
                      mm/others/tests/threads/main.c \
                      mm/page.c mm/buddy.c mm/tests/threads/platform.c
OTHERTHREADS     := $(BUILD)/threads-mag/otherthreads
THREADED         := $(MMTHREADS_MAG) $(OTHERTHREADS)
$(eval $(call linked,$(OTHERTHREADS),$(BUILD)/threads-mag,\
    $(OTHERTHREADS_SRC),-fsanitize=thread -lpthread))

# mm/ with a call before each access to memory, where mm/tests/races/ may
# switch to another task.
RACES_MM    := $(MM_SRC) mm/tests/races/planted.c
RACES_SRC   := $(RACES_MM) mm/tests/kmem_test.c mm/tests/host/platform.c \
                 $(addprefix mm/tests/explore/,explore.c ops.c seeds.c \
                   steps.c) \
                 $(addprefix mm/tests/races/,access.c main.c) \
                 $(addprefix tools/test/,budget.c fibers.c)
RACES_FLAGS := -std=gnu17 -g -O2 -fno-pie -fdata-sections \
                 -ffunction-sections -I. -Imm/tests/host $(COUNTED) $(HOST_WARN)

# $(call races,DIR,FLAGS): DIR/mmraces.
define races
$(call compiled,$(1),$$(RACES_FLAGS) $(2),-fsanitize=thread,$(RACES_MM))
$(call linked,$(1)/mmraces,$(1),$(RACES_SRC),-no-pie -Wl$$(comma)--gc-sections)
endef
$(eval $(call races,$(BUILD)/races,))
$(eval $(call races,$(BUILD)/races-mag,$(MAGAZINES)))
MMRACES     := $(BUILD)/races/mmraces
MMRACES_MAG := $(BUILD)/races-mag/mmraces

# mm/ that counts atomic instructions and moved lines, without magazines and
# with them.
SCALE_MM    := $(wildcard mm/*.c mm/inspect/*.c)
SCALE_SRC   := $(SCALE_MM) mm/tests/scale/main.c
SCALE_FLAGS := -std=gnu17 -g -O2 -fno-pie -I. -Imm/tests/scale $(HOST_WARN)

# $(call scale,DIR,FLAGS): DIR/mmscale.
define scale
$(call compiled,$(1),$$(SCALE_FLAGS) $(2),-fsanitize=thread,$(SCALE_MM))
$(call linked,$(1)/mmscale,$(1),$(SCALE_SRC),-no-pie)
endef
$(eval $(call scale,$(BUILD)/scale/slab,))
$(eval $(call scale,$(BUILD)/scale/magazines,$(MAGAZINES)))
MMSCALE := $(addsuffix /mmscale,$(addprefix $(BUILD)/scale/,slab magazines))

# The same of the other allocators, behind the same interface.
SCALE_OTHERS := $(filter-out mm/kmem_% mm/inspect/kmem_%,$(SCALE_SRC)) \
                  $(OTHERS_SHARED:%=mm/others/%.c)
SCALE_DIR    := $(BUILD)/scale/others
# $(call scale_src,ALLOCATOR)
scale_src     = $(patsubst $(SCALE_DIR)/%.o,%.c,$(call other_obj,\
                  $(SCALE_DIR),$(1)))
$(eval $(call compiled,$(SCALE_DIR),$$(SCALE_FLAGS) $(MAGAZINES) \
    -DSCALE_OTHERS -DOTHER_COUNTED=0,-fsanitize=thread,\
    $(filter-out %/main.c,$(SCALE_OTHERS)) \
    $(sort $(foreach a,$(OTHERS),$(call scale_src,$(a))))))
$(foreach a,$(OTHERS),$(eval $(call linked,$(BUILD)/scale/$(a)/mmscale,\
    $(SCALE_DIR),$(SCALE_OTHERS) $(call scale_src,$(a)),\
    -no-pie -Wl$$(comma)--defsym=other_served=$(a)_allocator)))

# Traces on each allocator, without sanitizers.
REPLAY_SRC   := $(MM_SRC) $(filter-out %/serve.c,$(wildcard mm/others/*.c \
                  mm/others/inspect/*.c)) \
                  $(addprefix mm/others/tests/,r1.c r1_write.c replay.c \
                    trace.c) \
                  $(wildcard mm/others/tests/replay/*.c) \
                  mm/tests/host/platform.c tools/test/budget.c
REPLAY_FLAGS := -std=gnu17 -g -O2 -fdata-sections -ffunction-sections -I. \
                  -Imm/tests/host $(HOST_WARN)
REPLAY       := $(BUILD)/replay/replay
$(eval $(call compiled,$(BUILD)/replay,$$(REPLAY_FLAGS)))
$(eval $(call linked,$(REPLAY),$(BUILD)/replay,$(REPLAY_SRC),\
    -Wl$$(comma)--gc-sections))

# The kernel that records what clients request of the allocator: the product's
# objects, and the recorder, which wraps the public functions. The allocator is
# linked before, so that its calls of itself are not redirected.
TRACE_SRC  := $(wildcard tools/workshop/trace/*.c)
TRACE_OBJ  := $(TRACE_SRC:%.c=$(BUILD)/%.o)
TRACE_HEAP := $(filter $(patsubst %,$(BUILD)/%,mm/kmem_% mm/inspect/kmem_% \
                mm/debug/%),$(OBJ))
TRACE_REST := $(filter-out $(TRACE_HEAP) $(BUILD)/kernel/shell/cmd_trace.o,\
                $(OBJ)) $(TRACE_OBJ)
TRACE_LIST := kmem_cache_create kmem_cache_create_from kmem_cache_destroy \
                kmem_cache_alloc kmem_cache_free kmem_alloc kmem_zalloc \
                kmem_free buddy_set_pressure
TRACE_ELF  := $(BUILD)/slate-trace.elf
TRACE_NAME := $(if $(filter command,$(firstword $(origin NAME))),$(value NAME))
export TRACE_NAME BUFFER
$(eval $(call stamp,$(BUILD)/heap.objects,$$(TRACE_HEAP)))
$(BUILD)/heap.o: $(TRACE_HEAP) $(BUILD)/heap.objects
	$(call say,LINK,$@)
	$(Q)$(CC) -nostdlib -r $(TRACE_HEAP) -o $@
$(eval $(call kernel,slate-trace,$$(TRACE_REST) $(BUILD)/heap.o,\
    $(TRACE_LIST:%=-Wl$$(comma)--wrap=%)))
-include $(TRACE_OBJ:%.o=%.d)

# Finds the traces in the memory of a machine that has ended.
PACK_SRC := $(addprefix mm/others/tests/,trace.c pack/main.c)
PACK     := $(BUILD)/replay/pack
$(eval $(call linked,$(PACK),$(BUILD)/replay,$(PACK_SRC),\
    -Wl$$(comma)--gc-sections))

# The objects that mutants of mm/ are linked with (tools/test/mutants.py).
MUTANTS := $(BUILD)/mutants/mmtest $(MMTHREADS) $(MMRACES)

# The core of the ATA driver, with a drive that is a program.
ATA_TEST_SRC := $(addprefix drivers/servers/ata/,channel.c drive.c queue.c) \
                  $(wildcard drivers/servers/ata/tests/*.c) tools/test/budget.c
$(eval $(call linked,$(BUILD)/host/atatest,$(BUILD)/host,$(ATA_TEST_SRC),\
    $$(HOST_SAN) $$(HOST_LIBS)))

HOST_TEST := $(addprefix $(BUILD)/host/,mmtest servetest atatest) $(MMRACES) \
               $(BUILD)/magazines/mmtest $(MMRACES_MAG) $(MMSCALE) \
               $(REPLAY) $(PACK)

# Waits and wake-ups on processors that are fibers. The thread sanitizer's
# calls, but not its library: wakes.c defines them.
WAKES_POINT := kernel/task/sync.c kernel/fs/tty.c kernel/fs/tty_line.c \
                 drivers/console.c kernel/task/tests/wakes/test_wakes.c
WAKES_SRC   := $(WAKES_POINT) $(addprefix kernel/task/tests/wakes/,\
                 wakes.c devices.c) $(addprefix tools/test/,budget.c fibers.c)
WAKES_FLAGS := -std=gnu17 -g -O1 -Ikernel/task/tests/wakes -I. $(COUNTED) \
                 $(HOST_WARN)
WAKETEST    := $(BUILD)/wakes/waketest
$(eval $(call compiled,$(BUILD)/wakes,$$(WAKES_FLAGS),-fsanitize=thread,\
    $(WAKES_POINT)))
$(eval $(call linked,$(WAKETEST),$(BUILD)/wakes,$(WAKES_SRC)))
HOST_TEST += $(WAKETEST)

# The firmware's tables, right, broken, and changed at random.
ACPI_SRC := kernel/x86/acpi.c kernel/x86/tests/acpi/test_acpi.c \
              tools/test/budget.c
ACPITEST := $(BUILD)/host/acpitest
$(eval $(call linked,$(ACPITEST),$(BUILD)/host,$(ACPI_SRC),$$(HOST_SAN)))
HOST_TEST += $(ACPITEST)

# The core of the ext2 server, with a disk that is an image in memory.
EXT2_SRC  := $(filter-out %/main.c,$(wildcard user/servers/ext2/*.c)) \
               $(wildcard user/servers/ext2/tests/*.c) tools/test/budget.c
EXT2_TOOL := $(BUILD)/host/ext2tool
$(eval $(call linked,$(EXT2_TOOL),$(BUILD)/host,$(EXT2_SRC),$$(HOST_SAN)))
HOST_TEST += $(EXT2_TOOL)

PYTEST    := SLATE_BUILD=$(BUILD) $(VENV) -m pytest -c tools/test/pytest.ini \
               $(PYTEST_ARGS)
# Several files of tests at a time, one more than there are processors: some
# wait for clocks. Notes what each test costs (tools/test/times.py).
ABREAST    = -n $$(($$(getconf _NPROCESSORS_ONLN) + 1)) \
               --dist loadgroup --no-loadscope-reorder \
               --times=$(BUILD)/times/$@.json

# Options that choose tests by marks (tools/test/pytest.ini). Without them those
# of `make test`; on another kernel only tests that depend on it; all of a file.
OTHER := $(call on,DEBUG)$(call on,SANITIZE)$(call on,SMP)
QUICK := $(if $(OTHER),-m 'not long and not sample and not soak and not plain')
EVERY := -m ''

# The files that name samples: to read all others takes each process seconds.
SAMPLED = $(filter-out %/test_kernels.py,\
            $(shell grep -l '\bsamples\?\b' tools/test/*/test_*.py))

# What the tests need.
TESTED := $(KERNELS) $(ISO) $(if $(OTHER),,$(HOST_TEST) \
            $(OTHERS_DONE:%=$(BUILD)/slate-%.elf) \
            $(COMPARE_ELF) $(TRACE_ELF))

.PHONY: test test-kernels test-samples test-all test-times tested
tested: $(TESTED)
	@:

test: | $(DEPS)                   ## three minutes; DEBUG=1, SANITIZE=1 or
                                  ## SMP=1: on such a kernel
	@$(MAKE) --no-print-directory tested
	@$(PYTEST) $(QUICK) $(ABREAST) tools/test

test-kernels: $(WORKSHOP_KERNEL) | $(DEPS) ## the suites on kernels of other
                                  ## builds; three minutes
	@$(PYTEST) -m sample $(ABREAST) tools/test/kernel/test_kernels.py

test-samples: | $(DEPS)           ## a little of what test-all has; a minute
	@$(MAKE) --no-print-directory tested
	@$(PYTEST) -m sample $(ABREAST) $(SAMPLED)

test-all: $(BOOK_ENV)/done $(MUTANTS) $(THREADED) | $(DEPS) ## what
                                  ## `make test` leaves out; up to an hour
	@$(MAKE) --no-print-directory tested
	@$(MAKE) --no-print-directory test DEBUG=1 BUILD=$(BUILD)/debug
	@$(MAKE) --no-print-directory test SANITIZE=1 BUILD=$(BUILD)/sanitize
	@$(PYTEST) $(ABREAST) -m '(long or sample) and not soak' tools/test

test-times: | $(DEPS)             ## processor seconds of each test, as of the
                                  ## last runs of these two
	@$(VENV) tools/test/times.py $(BUILD)/times

.PHONY: test-host test-kernel test-system failures bugs test-replay fuzz
.PHONY: scale compare trace replay-trace replay-kernel trace-summary coverage
.PHONY: mutants storm powercut
.PHONY: test-ext2 fuzz-ext2
.PHONY: test-threads test-magazines schedules races test-bochs test-v86
.PHONY: test-web

test-host: $(HOST_TEST) | $(DEPS) ## mm/, waits, ata, acpi on this machine
	@$(PYTEST) tools/test/host/test_host.py

test-threads: $(MMTHREADS) $(OTHERTHREADS) | $(DEPS) ## mm/ and the other
                                  ## allocators under real threads, sanitizer
	@$(PYTEST) $(EVERY) tools/test/host/test_threads.py

test-magazines: $(HOST_TEST) $(MMTHREADS_MAG) | $(DEPS) ## magazines on this
                                  ## machine, and mistakes planted in them
	@$(PYTEST) $(EVERY) -n auto tools/test/host/test_magazines.py

# Without the sanitizers, which take three times as long.
schedules: $(BUILD)/mutants/mmtest ## every schedule of two operations of mm/ in
                                  ## which both stop once; PAIR=reap+destroy
	@$< -d $(PAIR)

# A seed has 304 schedules.
races: $(MMRACES)                 ## 100,000 schedules of mm/ with a switch at
                                  ## any access; how many a second; SEEDS=330
	@$< -j 1 $(or $(SEEDS),330)

test-ext2: $(EXT2_TOOL) | $(DEPS) ## the ext2 server's core on this machine
	@$(PYTEST) tools/test/disk/test_ext2.py \
	    tools/test/disk/test_ext2_cuts.py \
	    tools/test/disk/test_ext2_journal.py

fuzz-ext2: $(EXT2_TOOL) | $(DEPS) ## damaged images, 100,000 of them
	@$(PYTEST) $(EVERY) tools/test/disk/test_ext2.py -k damaged

test-kernel: $(WORKSHOP_KERNEL) | $(DEPS) ## the kernel's own suites, in QEMU
	@$(PYTEST) tools/test/kernel/test_kernel.py

test-system: $(KERNELS) $(ISO) | $(DEPS) ## the image: serial, PS/2, VGA, GDB
	@$(PYTEST) $(ABREAST) tools/test --ignore=tools/test/host/test_host.py \
	    --ignore=tools/test/kernel/test_kernel.py

failures: $(WORKSHOP_KERNEL) | $(DEPS) ## the n-th allocation fails, for each n
	@$(PYTEST) $(EVERY) tools/test/shell/test_failures.py

test-replay: $(WORKSHOP_KERNEL) | $(DEPS) ## follow planted bugs to their lines
	@$(PYTEST) $(EVERY) tools/test/debug/test_replay.py

test-bochs: $(KERNELS) | $(DEPS)  ## the product and the suites in Bochs
	@$(PYTEST) $(EVERY) tools/test/kernel/test_bochs.py

test-all test-v86: $(NODE_ENV)/done
test-all test-web: web
test-web:                         ## the page of `make web`, in Chromium
	@$(PYTEST) $(EVERY) tools/test/book/test_web.py \
	    tools/test/book/test_web_layouts.py

test-v86: $(WORKSHOP_KERNEL)      ## suites, usertests and workloads in v86;
                                  ## what it cannot do is skipped, and why
	@$(PYTEST) $(EVERY) -v -rsfE tools/test/kernel/test_v86.py

storm: $(WORKSHOP_KERNEL) | $(DEPS) ## the disk driver dies at work: SEEDS=20
	@$(PYTEST) $(EVERY) tools/test/disk/test_storm.py

powercut: $(WORKSHOP_KERNEL) $(EXT2_TOOL) | $(DEPS) ## cut the power
                                  ## at thousands of moments: SEEDS=60
	@$(PYTEST) $(EVERY) tools/test/disk/test_powercut.py
	@$(PYTEST) $(EVERY) -n auto tools/test/disk/test_ext2_cuts.py \
	    tools/test/disk/test_ext2_journal.py -k 'cut or all_or_not'

bugs: $(WORKSHOP_KERNEL) | $(DEPS) ## each bug in each mode; no false alarms
	@$(PYTEST) $(EVERY) tools/test/shell/test_bugs.py

# The kernel for several processors, with a build of its own.
SMP_ELF := $(BUILD)/smp/slate-workshop.elf

scale: $(MMSCALE) $(WORKSHOP_KERNEL) $(BUILD)/initrd-bench.tar ## what 1, 2, 4
                                  ## and 8 processors cost each other;
                                  ## build/scale.json, build/scale.svg
	@$(MAKE) --no-print-directory SMP=1 BUILD=$(BUILD)/smp \
	    $(SMP_ELF)
	@$(PYTHON) -m tools.measure.scale $(SMP_ELF) $(WORKSHOP_INITRD) \
	    $(BUILD)/initrd-bench.tar $(BUILD)/scale $(BUILD)/scale \
	    $(if $(call on,DOC),--doc docs/magazines.md)

COMPARE_NEEDS := $(COMPARE_ELF) $(REPLAY) \
                   $(BUILD)/initrd-bench.tar \
                   $(WORKSHOP_INITRD) $(BUILD)/scale/magazines/mmscale \
                   $(COMPARED:%=$(BUILD)/scale/%/mmscale)
compare: $(COMPARE_NEEDS) | $(DEPS) ## every allocator in the papers' tables, in
                                  ## build/compare/; ALLOCATOR=yours: yours, too
	@$(MAKE) --no-print-directory SMP=1 BUILD=$(BUILD)/smp ALLOCATOR= \
	    $(COMPARED:%=$(BUILD)/smp/compare/%.elf)
	@$(PYTHON) -m tools.measure.compare $(BUILD) $(BUILD)/compare \
	    $(COMPARED) $(if $(call on,DOC),--doc docs/others.md)

trace: $(TRACE_ELF) $(PACK) $(WORKSHOP_INITRD) ## run CMD="…", record each
                                  ## request to the allocator:
                                  ## NAME=trace: in build/trace/trace.ktr
                                  ## BUFFER=64: MiB for the records
	@$(PYTHON) -m tools.run.trace $(TRACE_ELF) $(PACK) $(BUILD)/trace

replay-trace: $(REPLAY)           ## a trace on every allocator, held memory and
                                  ## waste: TRACE=FILE.ktr, or R1
	@$< $(TRACE)

REPLAYS := $(BUILD)/compare/$(or $(ALLOCATOR),slab).elf
replay-kernel: $(REPLAYS) $(REPLAY) $(WORKSHOP_INITRD) ## a trace in the kernel,
                                  ## instructions of its allocations and frees:
                                  ## ALLOCATOR=slob, TRACE=FILE.ktr, or R1
	@$(PYTHON) -m tools.measure.kernel_replay $(REPLAYS) \
	    $(WORKSHOP_INITRD) $(REPLAY) $(TRACE)

trace-summary: $(REPLAY) | $(DEPS) ## its sizes, lifetimes and live bytes; drawn
                                  ## in build/trace/
	@$(PYTHON) -m tools.measure.traces $< $(TRACE) \
	    --out $(BUILD)/trace/$(or $(basename $(notdir $(TRACE))),R1).svg

fuzz: $(WORKSHOP_KERNEL) | $(DEPS) ## a million random system calls (SEEDS=10
                                  ## CALLS=100000), a million streams of random
                                  ## code (SEEDS=100 STREAMS=10000), hostile
                                  ## file servers (SEEDS=10 ROUNDS=500), 100,000
                                  ## random lines for the shell
	@$(PYTHON) -m tools.test.fuzz $(WORKSHOP_ELF) \
	    --seeds $(or $(SEEDS),10) --steps $(or $(CALLS),100000)
	@$(PYTHON) -m tools.test.fuzz $(WORKSHOP_ELF) --program codefuzz \
	    --seeds $(or $(SEEDS),100) --steps $(or $(STREAMS),10000)
	@$(PYTHON) -m tools.test.fuzz $(WORKSHOP_ELF) --program stormfuzz \
	    --seeds $(or $(SEEDS),10) --steps $(or $(ROUNDS),500)
	@$(PYTEST) $(EVERY) tools/test/shell/test_noise.py

coverage: $(addprefix $(BUILD)/coverage/,mmtest servetest) | $(DEPS) ## branches
                                  ## of mm/ that the host tests take;
                                  ## build/coverage/index.html
	@find $(BUILD)/coverage -name '*.gcda' -delete
	@rm -f $(filter-out $(patsubst %.c,$(BUILD)/coverage/%.gcno,\
	    $(HOST_SRC) $(SERVE_SRC)),\
	    $(shell find $(BUILD)/coverage -name '*.gcno'))
	@{ $(word 1,$^) && $(word 2,$^); } >$(BUILD)/coverage/log 2>&1 \
	    || { tail -n 9 $(BUILD)/coverage/log; \
	    echo 'make: $< failed: no coverage'; exit 1; } >&2
	@$(VENV) -m gcovr --config tools/measure/gcovr.cfg $(BUILD)/coverage \
	    --json-summary $(BUILD)/coverage.json \
	    --html-details $(BUILD)/coverage/index.html

mutants: $(MUTANTS) | $(DEPS)     ## change mm/ everywhere; do the tests notice?
                                  ## SAMPLE=500 SEED=1 FILES=mm/buddy.c
                                  ## FUNCTION=block_join; LOCKS=1: its locks
	@SLATE_BUILD=$(BUILD) $(PYTHON) -m tools.test.mutants \
	    --sample $(or $(SAMPLE),0) --seed $(or $(SEED),1) \
	    $(if $(call on,LOCKS),--locks) \
	    $(if $(FUNCTION),--function $(FUNCTION)) $(filter %.c,$(FILES))

.PHONY: lint key leaks grade-soak test-labs lab-mutants
lint: $(KERNEL)                   ## layout, include arrows, sizes, cppcheck
	@SLATE_BUILD=$(BUILD) $(PYTHON) -m tools.test.lint

key:                              ## a lab's right answers: LAB=3 SEED=7
                                  ## ROSTER=seeds.csv (all of its seeds)
	@$(PYTHON) -m tools.grading.key --lab "$$LAB" --seed "$$SEED" \
	    --roster "$$ROSTER"

leaks:                            ## does a hand-out hold solutions? LAB=2
	@$(PYTHON) -m tools.grading.leaks --lab "$$LAB"

grade-soak:                       ## ten times on a busy machine: LAB=2
	@$(PYTHON) -m tools.grading.soak --lab "$$LAB"

test-labs: $(WORKSHOP_KERNEL) | $(DEPS) ## each lab from hand-out to wrong
                                  ## solutions; LAB=2: that one alone
	@$(PYTEST) $(EVERY) -n auto --dist loadgroup \
	    tools/test/labs/test_labs.py

lab-mutants: $(WORKSHOP_KERNEL) | $(DEPS) ## change a lab's solution everywhere;
                                  ## do its tests notice? LAB=5 SAMPLE=40
                                  ## SEED=1 FUNCTION=kmem_slab_pop
	@SLATE_BUILD=$(BUILD) $(PYTHON) -m tools.grading.mutants \
	    --lab "$$LAB" --sample $(or $(SAMPLE),0) --seed "$${SEED:-1}" \
	    $(if $(FUNCTION),--function $(FUNCTION))
