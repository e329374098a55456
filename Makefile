# Everything below works on a machine with only Python >= 3.11, pip and make; nothing is installed outside .venv.
# Messages of `make run` itself go to stderr: stdout belongs to the engine.

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help setup run play web pictures test quick steady fuzz guided soak crash-only test-clusters check audit sbom licences docs wheel dist format bench warmup clean

ARGS ?=
WORKERS ?= 5
BIN := .venv/bin
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' Makefile
	@echo '  ARGS="..." is handed on: make run ARGS="--variant brandubh", make test ARGS="-k perft"'

setup: .venv/.ready-dev ## .venv with hnefi and everything for working on it

run: .venv/.ready ## the engine on standard input and output (type: help)
	@exec $(BIN)/hnefi engine $(ARGS)

play: .venv/.ready ## a game at the terminal
	@exec $(BIN)/hnefi play $(ARGS)

web: .venv/.ready-web ## the board in the browser (http://127.0.0.1:8080)
	@exec $(BIN)/hnefi web --open $(ARGS)

# All tests of a file run in one process, as they share what is slow to start. Many tests wait for other processes, so five
# workers keep two cores busy. WORKERS=0 runs all tests in one process.
# HNEFI_ORDER=word shuffles the files. Byte code is written even where the user's settings forbid it: otherwise each engine that
# a test starts would compile every source again, a sixth of its start.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest
INNER := not process and not broker and not slow and not exhaustive

test: .venv/.ready-dev ## all tests, in five processes (WORKERS=5)
	@awk -F ' *[|] *' '$$2 == "`make test`" {print "from an empty cache all tests take " $$3 " on two idle cores"}' MEASUREMENTS.md >&2
	@# Once, rather than by every process: pytest's own byte code of the tests, meanwhile the kernels, if they can be kept (4).
	@NUMBA_DISABLE_JIT=1 $(PYTEST) --collect-only -qq -W ignore > /dev/null 2>&1 & \
	$(BIN)/hnefi warmup --quiet || status=$$?; wait; [ $${status:-0} = 0 ] || [ $$status = 4 ]
	@$(PYTEST) --numprocesses $(WORKERS) --dist loadfile $(ARGS)

# None of these tests waits, so more processes than cores would only load the same code more often.
quick: WORKERS := logical
quick: .venv/.ready-dev ## tests without processes, brokers and what takes long: the inner loop
	@$(PYTEST) --numprocesses $(WORKERS) --dist loadfile -m '$(INNER)' $(ARGS)

FILES ?= tests
TIMES ?= 50
MARKS ?= process or broker
steady: .venv/.ready-dev ## tests that wait, TIMES=50 times beside busy processors (FILES=tests MARKS='process or broker')
	@$(BIN)/python tests/steady.py --times $(TIMES) --marks '$(MARKS)' $(FILES) $(ARGS)

MINUTES ?= 60
fuzz: .venv/.ready-dev ## made-up input at every door for MINUTES=60; what fails is kept in tests/corpus
	@HNEFI_FUZZ_SECONDS=$$(($(MINUTES) * 60)) $(PYTEST) --numprocesses $(WORKERS) --timeout 0 \
		tests/house/test_doors.py tests/protocol/test_fuzz.py $(ARGS)

DOOR ?= all
guided: .venv/.ready-guided ## made-up input led by coverage (atheris) at DOOR=all for MINUTES=60
	@$(BIN)/python tests/guided.py $(DOOR) $$(($(MINUTES) * 60))

LINES ?= 2000000
soak: .venv/.ready-dev ## LINES=2000000 of the protocol for one engine process: flat memory, no answer lost (Linux)
	@$(BIN)/python tests/soak.py --lines $(LINES) $(ARGS)

KILLS ?= 50
crash-only: .venv/.ready-dev ## every command that keeps its work ended at KILLS=50 random moments, and the power cut (Linux)
	@HNEFI_KILLS=$(KILLS) $(PYTEST) --numprocesses $(WORKERS) --timeout 0 \
		tests/house/test_crash_only.py tests/house/test_crash_adapters.py tests/house/test_power_loss.py tests/arena/test_arena_kill.py $(ARGS)

test-clusters: .venv/.ready-clusters ## tournaments and evolution on local clusters of dask and ray
	@HNEFI_CLUSTERS=1 $(BIN)/python -m pytest tests/arena/test_arena_fanout.py tests/evolve/test_evolve_fanout.py tests/solve/test_solve_uses.py \
		tests/tools/test_fanout.py $(ARGS)

check: .venv/.ready-dev ## formatting, lint, types, direction of imports, what documents say
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(PYTEST) --quiet -m "not slow" tests/house/test_docs.py

audit: .venv/.ready-audit ## known weaknesses of what uv.lock names (needs the network; says so without)
	@$(BIN)/python .ci/dependencies.py audit $(ARGS)

sbom: .venv/.ready-dev ## what is installed and under which licence, as CycloneDX (dist/hnefi.cdx.json)
	@$(BIN)/python .ci/dependencies.py sbom --out dist/hnefi.cdx.json

licences: .venv/.ready-dev ## writes docs/licences.md anew
	@$(BIN)/python .ci/dependencies.py licences --out docs/licences.md

docs: .venv/.ready-docs ## the documentation as a site (build/site); make docs ARGS=--serve shows it at 127.0.0.1:8000
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs $(if $(filter --serve,$(ARGS)),serve,build)
	@$(if $(filter --serve,$(ARGS)),,echo 'build/site/index.html; its search needs a server: python3 -m http.server --bind 127.0.0.1 --directory build/site')

wheel: .venv/.ready-dev ## a wheel with the machine code of all kernels for x86-64-v3 (dist/)
	@$(BIN)/python .ci/wheel.py $(ARGS)

dist: .venv/.ready-dist ## sdist and wheel (dist/), checked, installed into a new environment and played with; ARGS=--machine-code: as make wheel
	@$(BIN)/python .ci/dist.py $(ARGS)

format: .venv/.ready-dev ## format the code, mend what lint can mend
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

pictures: .venv/.ready-browser ## the pictures of docs/web.md (needs Chromium)
	@$(BIN)/python tests/pictures.py $(ARGS)

bench: .venv/.ready ## the search's signature and speed
	@exec $(BIN)/hnefi bench $(ARGS)

warmup: .venv/.ready ## compile every kernel now rather than at the first start
	@exec $(BIN)/hnefi warmup $(ARGS)

clean: ## remove what was built (.venv stays)
	@rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

.venv/pyvenv.cfg:
	@test -n '$(PYTHON)' || { echo 'hnefi needs Python 3.11 or newer: none found (make PYTHON=/path/to/python names one)' >&2; exit 1; }
	@echo 'creating .venv ...' >&2
	@$(PYTHON) -m venv .venv >/dev/null 2>&1 || { $(PYTHON) -m venv --clear --without-pip .venv \
		&& $(PYTHON) -m pip --python .venv/bin/python install --quiet pip; } >&2

.venv/.ready: .venv/pyvenv.cfg pyproject.toml setup.py
	@echo 'installing hnefi into .venv ...' >&2
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . >&2
	@touch $@

.venv/.ready-web: .venv/.ready
	@echo 'installing what the web needs into .venv ...' >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[web]' >&2
	@touch $@

.venv/.ready-browser: .venv/.ready-dev
	@echo 'installing playwright and axe-core into .venv ...' >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'playwright>=1.50' 'axe-playwright-python>=0.1.7' >&2
	@touch $@

.venv/.ready-docs: .venv/.ready-dev
	@echo 'installing mkdocs-material into .venv ...' >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]' >&2
	@touch $@

.venv/.ready-dist: .venv/.ready-dev
	@echo 'installing build and twine into .venv ...' >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'build>=1.2' 'twine>=6' >&2
	@touch $@

.venv/.ready-clusters: .venv/.ready-dev
	@echo 'installing dask and ray into .venv ...' >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dask,ray]' >&2
	@touch $@

.venv/.ready-guided: .venv/.ready-dev
	@echo 'installing atheris into .venv ...' >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'atheris>=2.3' >&2
	@touch $@

.venv/.ready-audit: .venv/.ready-dev
	@echo 'installing pip-audit into .venv ...' >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip-audit>=2.7' >&2
	@touch $@

.venv/.ready-dev: .venv/.ready
	@echo 'installing what tests and checks need into .venv ...' >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' >&2
	@touch $@
