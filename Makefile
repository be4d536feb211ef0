# make lab         opens JupyterLab on the notebooks (the first call builds .venv)
# make app         serves explorers and lessons as web pages, on this machine
# make test        every test: Python, a real browser, the notebooks (or test-python, test-notebooks)
# make lint        format, lint, types, import contract
# make bench       the benchmark table, answers asserted
# make docs        the pages and the reference as a site, into build/docs
# make notebooks   runs the notebooks and writes their outputs, the way they are committed
# make clean       removes .venv and everything that was built
PYTHON ?= python3

BIN := .venv/bin
CORE := .venv/.core
READY := .venv/.installed
EXTRAS := lab,exact,data,forecast,scale,export,test
# Byte code is made when a module is first used: half a minute less than for all of them.
PIP := $(BIN)/python -m pip install --no-compile --quiet --disable-pip-version-check -c constraints.txt

# Where an environment forbids it, every process would read all of gpuplan as text: two seconds of CPU each.
unexport PYTHONDONTWRITEBYTECODE

NOTEBOOKS := $(sort $(filter-out notebooks/real-%,$(wildcard notebooks/*.ipynb)))
REAL_NOTEBOOKS := $(sort $(wildcard notebooks/real-*.ipynb))
SHARED := $(wildcard ../shared/traces)

# One process more than cores, for tests in the browser wait more than they compute; every file in one of them (see
# tests/conftest.py).
WORKERS := $(shell $(PYTHON) -c 'import os; print(min(4, (os.cpu_count() or 1) + 1))')
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# nbval runs every notebook and compares every output with the committed one.
NBVAL := --nbval --nbval-current-env --nbval-sanitize-with tests/nbval_sanitize.cfg \
	$(NOTEBOOKS) $(if $(SHARED),$(REAL_NOTEBOOKS))

# What has kernels.
WARM := warm-allocation.plan warm-fairshare.run warm-packing.run

.PHONY: lab app test test-python test-notebooks warm $(WARM) notebooks docs bench lint clean
.DELETE_ON_ERROR:

lab: $(READY)
	$(BIN)/gpuplan lab

app: $(READY)
	$(BIN)/gpuplan app

test: $(READY) warm
	$(if $(NOTEBOOKS),,$(error there is no notebook to test))
ifeq ($(SHARED),)
	@echo "Notebooks on real data are left out: ../shared/traces is not there."
endif
	$(PYTEST) $(PYTEST_ARGS) tests $(NBVAL)

test-python: $(READY) warm
	$(PYTEST) $(PYTEST_ARGS)

test-notebooks: $(READY) warm
	$(PYTEST) $(PYTEST_ARGS) $(NBVAL)

# Kernels, compiled once for all processes of the tests (numba keeps them beside their source).
warm: $(WARM)

$(WARM): $(CORE)
	$(BIN)/python -c 'from gpuplan.$(@:warm-%=%) import warm_up; warm_up()'

notebooks: $(READY)
	$(BIN)/python tests/notebooks/execute.py $(NOTEBOOKS) $(if $(SHARED),$(REAL_NOTEBOOKS))

docs: $(READY)
	$(BIN)/python docs/build.py build/docs

bench: $(READY)
	$(BIN)/gpuplan bench
	@if $(BIN)/python tests/chromium.py; then \
		for script in $(sort $(wildcard tests/browser/bench_*.py)); do $(BIN)/python $$script || exit 1; done; \
	else echo "Browser benchmarks are left out: no Chromium."; fi

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# What kernels need comes first: with `make -j 3` they are compiled while the rest is installed.
$(CORE): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("gpuplan needs Python 3.11 or newer; " + sys.executable + " is older. Name another one: make PYTHON=python3.11 lab")'
	$(PYTHON) -m venv .venv
	$(PIP) numba numpy
	@touch $@

$(READY): $(CORE)
	$(PIP) -e '.[$(EXTRAS)]'
	@touch $@

clean:
	rm -rf .venv dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
