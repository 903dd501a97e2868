# Labs: hand-outs and grades.

# As with CMD, only the tools read the values that the user types.
$(foreach v,LAB OUT SEED TASKS ROSTER FROM,\
    $(eval override $(v) := $$(value $(v))))
export LAB OUT SEED TASKS ROSTER FROM

.PHONY: lab update mine grade handin
lab:                              ## a student's tree: LAB=2 OUT=dir
                                  ## SEED=7 TASKS=2.1,2.3 (solved in it)
                                  ## GIT=1: a git repository
                                  ## ROSTER=file.csv: for each student
                                  ## OPEN=1: the lab's open stage
	@$(PYTHON) -m tools.grading.lab --lab "$$LAB" --out "$$OUT" \
	    --seed "$$SEED" --tasks "$$TASKS" --roster "$$ROSTER" \
	    $(if $(call on,GIT),--git) $(if $(call on,OPEN),--open)

update:                           ## in a hand-out that is a git repository:
                                  ## merges a newer one, FROM=dir-or-url
	@$(PYTHON) -m tools.grading.upstream --from "$$FROM"

mine:                             ## in a hand-out: what its seed makes your own
	@$(PYTHON) -m tools.grading.mine $(if $(LAB),--lab "$$LAB") \
	    $(if $(SEED),--seed "$$SEED")

grade:                            ## points for a lab, here: LAB=2
	@bash tools/grade --here --lab "$$LAB"

handin: | $(DEPS)                 ## in a hand-out: packs what is graded, if it
                                  ## builds; FORCE=1: in any case
	@$(PYTHON) -m tools.grading.handin $(if $(call on,FORCE),--force)

# For `make lab`: the objects of some SOURCES, for the kernel and for programs.
.PHONY: objects
objects: $(filter $(foreach o,$(SOURCES:.c=.o),$(BUILD)/$(o) $(USER)/$(o)),\
           $(OBJ) $(LIB_OBJ))
	@:

# With GIVEN=1, from each hand-in file that has one of _given: without what is
# not written. The file itself shows where an error is.
GIVEN_SRC := $(if $(call on,GIVEN),$(patsubst $(BUILD)/%_given.o,%.c,\
               $(filter-out $(USER)/%,$(filter %_given.o,$(PREBUILT)))))
$(GIVEN_SRC:%=$(BUILD)/%): $(BUILD)/%.c: %.c prebuilt/%_given.o \
    tools/grading/given.py
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -fsyntax-only $<
	$(Q)$(PYTHON) -m tools.grading.given $(wordlist 1,2,$^) $@

# A hand-out has no tests of the tree, and no tools that need them.
ifeq ($(wildcard tools/test),)
PYTEST = $(error a hand-out has the tests of its lab alone: make grade)
.PHONY: test lint
test lint:
	$(PYTEST)
endif
