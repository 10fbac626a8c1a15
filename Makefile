# Needs Python 3.11+ and make; everything else is installed into .venv from pinned versions.
PYTHON ?= python3
BIN := .venv/bin
# One BLAS thread a process: parallelism comes from whole runs, and small matrices are faster without threads.
export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: test lint types contracts pytest test-core coverage reproduce compare bench tune clean

test: lint types contracts pytest test-core

.venv/ready: requirements/dev.txt requirements/data.txt pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --no-deps -r requirements/data.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/ready
	$(BIN)/mypy

contracts: .venv/ready
	$(BIN)/lint-imports

pytest: .venv/ready
	$(BIN)/pytest -n auto

# The core alone, in a virtual environment that has no extra installed.
.venv-core/ready: requirements/core.txt pyproject.toml
	$(PYTHON) -m venv .venv-core
	.venv-core/bin/python -m pip install --quiet -r requirements/core.txt
	.venv-core/bin/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

test-core: .venv-core/ready
	.venv-core/bin/python tests/core_smoke.py

coverage: .venv/ready
	$(BIN)/pytest -n auto --cov --cov-report=term:skip-covered

# Most of its time goes into trained networks; QUICK=1 plays one seed of everything.
reproduce: .venv/ready
	$(BIN)/python -m driftbandits.cli reproduce $(if $(QUICK),--seeds 1)

# All policies, tuned alike, on switches and slow drift (about half an hour on two cores).
compare: .venv/ready
	$(BIN)/python -m driftbandits.cli compare

bench: .venv/ready
	$(BIN)/python -m benchmarks

tune: .venv/ready
	$(BIN)/python -m driftbandits.cli tune constants
	$(BIN)/python -m driftbandits.cli tune neural

clean:
	rm -rf .venv .venv-core build results
