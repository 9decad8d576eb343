# Two commands are all a new user needs: `make serve` and `make test`.
PYTHON ?= python3
SERVE  := .venv
DEV    := .venv-dev

.PHONY: serve test check format lock clean help

help:            ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/ -/'

serve: $(SERVE)/.installed  ## install what serving needs and serve the built-in model on 127.0.0.1:8000
	$(SERVE)/bin/fillmask-serve

test: check      ## install everything and run all that CI checks
	$(DEV)/bin/python -m pytest

check: $(DEV)/.installed  ## lint, format, types, architecture
	$(DEV)/bin/ruff check .
	$(DEV)/bin/ruff format --check .
	$(DEV)/bin/mypy
	$(DEV)/bin/lint-imports

format: $(DEV)/.installed  ## mend what the linter and formatter can mend
	$(DEV)/bin/ruff check --fix .
	$(DEV)/bin/ruff format .

$(SERVE)/.installed: pyproject.toml constraints/serve.txt
	$(PYTHON) -m venv $(SERVE)
	$(SERVE)/bin/pip install --quiet --disable-pip-version-check -c constraints/serve.txt -e .
	@touch $@

$(DEV)/.installed: pyproject.toml constraints/dev.txt
	$(PYTHON) -m venv $(DEV)
	$(DEV)/bin/pip install --quiet --disable-pip-version-check -c constraints/dev.txt -e '.[dev]'
	@touch $@

lock:            ## resolve the newest versions and write them into constraints/ (names and versions only)
	constraints/lock.sh

clean:           ## remove environments and caches
	rm -rf $(SERVE) $(DEV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
