# The book: the site, its transcripts and its pictures.

# The book as a site. MkDocs lives in an environment of its own, made at the
# first use.
BOOK_ENV := .venv/book

$(BOOK_ENV)/done: tools/book/requirements.txt
	$(call say,VENV,$(BOOK_ENV))
	@rm -rf $(BOOK_ENV) && mkdir -p .venv && $(PYTHON) -m venv $(BOOK_ENV)
	$(Q)$(BOOK_ENV)/bin/python -m pip install -q \
	    --disable-pip-version-check -r $< || { echo 'make: cannot install' \
	    'MkDocs, see above: book, web and test-all need it' >&2; exit 1; }
	@touch $@

.PHONY: book
book: $(BOOK_ENV)/done            ## docs/ as a site: build/book/index.html
                                  ## for students (STUDENT=1); INSTRUCTOR=1:
                                  ## with exam answers and solutions, in
                                  ## build/book-instructors
ifneq ($(and $(call on,INSTRUCTOR),$(call on,STUDENT)),)
	@echo 'book: STUDENT=1 or INSTRUCTOR=1, not both' >&2; exit 2
endif
ifneq ($(call on,INSTRUCTOR),)
	@$(BOOK_ENV)/bin/mkdocs build -q -f tools/book/instructors.yml
	@echo 'build/book-instructors/index.html' \
	    '(exam answers and solutions: not for publishing)'
else
	@$(BOOK_ENV)/bin/mkdocs build -q -f tools/book/mkdocs.yml
	@echo 'build/book/index.html'
endif

.PHONY: transcripts
transcripts: $(KERNELS) | $(DEPS) ## type the book's transcripts
                                  ## again and write them anew
	@$(PYTHON) -m tools.test.shells -w $(KERNEL)
	@$(PYTHON) -m tools.test.sessions $(KERNEL) docs/*.md
	@SLATE_BOOK=write $(PYTEST) -q tools/test/debug/test_gdb_objects.py \
	    tools/test/debug/test_replay.py -k 'book or chapter'

.PHONY: pictures
pictures: $(WORKSHOP_KERNEL)      ## the pictures in docs/pictures, again
	@$(PYTHON) -m tools.book.pictures $(WORKSHOP_ELF) docs/pictures
