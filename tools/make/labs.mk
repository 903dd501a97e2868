# Labs: hand-outs and grades.

# As with CMD, only the tools read the values that the user types.
override LAB   := $(value LAB)
override OUT   := $(value OUT)
override SEED  := $(value SEED)
override TASKS := $(value TASKS)
override ROSTER := $(value ROSTER)
export LAB OUT SEED TASKS ROSTER

.PHONY: lab key grade grade-soak test-labs
lab:                              ## a student's tree: LAB=2 OUT=dir
                                  ## SEED=7 TASKS=2.1,2.3 (solved in it)
	@$(PYTHON) -m tools.grading.lab --lab "$$LAB" --out "$$OUT" \
	    --seed "$$SEED" --tasks "$$TASKS"

key:                              ## the right answers: LAB=3 SEED=7
                                  ## ROSTER=seeds.csv (all of its seeds)
	@$(PYTHON) -m tools.grading.key --lab "$$LAB" --seed "$$SEED" \
	    --roster "$$ROSTER"

grade-soak:                       ## ten times on a busy machine: LAB=2
	@$(PYTHON) -m tools.grading.soak --lab "$$LAB"

test-labs: $(WORKSHOP_KERNEL) | $(DEPS) ## each lab from hand-out to wrong
                                  ## solutions; LAB=2: that one alone
	@$(PYTEST) $(EVERY) -n auto --dist loadgroup \
	    tools/test/test_labs.py

grade:                            ## points for a lab, here: LAB=2
	@bash tools/grade --here --lab "$$LAB" --out $(BUILD)/grade
