# Every recipe sets up what it needs in a virtual environment; only Python >= 3.11, git and make are required.
PYTHON ?= python3
BIN := .venv/bin
LOWEST := .venv-lowest
SDIST := build/sdist
INSTALL := -m pip install --quiet --disable-pip-version-check

# The main part of the suite, run with the lowest versions. Left out: what hardly depends on them, and what takes long.
LOWEST_TESTS ?= $(filter-out $(addprefix tests/test_,accuracy.py attack.py distributed.py docs.py download.py habits.py \
	properties.py pyterrier.py report.py types.py), $(wildcard tests/test_*.py))
# Tests that read files beside them, run from the unpacked source distribution.
SDIST_TESTS ?= tests/test_docs.py tests/test_cli.py tests/test_persistence.py tests/test_architecture.py tests/test_habits.py

.PHONY: demo test test-lowest test-notebooks test-sdist lint attack bench papers docs clean

.venv/.base: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python $(INSTALL) --upgrade "pip>=25.1"  # dependency groups
	$(BIN)/python $(INSTALL) -e .
	@touch $@

.venv/.test: .venv/.base
	$(BIN)/python $(INSTALL) -e ".[all]" --group test --group lint
	@touch $@

.venv/.demo: .venv/.base
	$(BIN)/python $(INSTALL) -e ".[plot]"
	@touch $@

.venv/.docs: .venv/.base
	$(BIN)/python $(INSTALL) -e . --group docs
	@touch $@

.venv/.bench: .venv/.base
	$(BIN)/python $(INSTALL) -e ".[fast,arrow,onnx,workbench]" --group bench
	@touch $@

.venv/.build: .venv/.base
	$(BIN)/python $(INSTALL) --group build
	@touch $@

$(LOWEST)/.done: pyproject.toml .ci/lowest.py
	@test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python .ci/lowest.py > $(LOWEST)/lowest.txt
	$(LOWEST)/bin/python $(INSTALL) -r $(LOWEST)/lowest.txt
	$(LOWEST)/bin/python $(INSTALL) --no-deps -e .
	@touch $@

demo: .venv/.demo  ## train, choose alpha by exact hold-out, compare, show rankings; writes demo-digits.png
	$(BIN)/python -m rankrls demo

lint: .venv/.test  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint  ## style, types, tests
	$(BIN)/python -m pytest -n auto

attack: .venv/.test  ## 100,000 random problems against independent oracles; prints what was tried and what deviated
	$(BIN)/python -m tests.attack --cases 100000 --seed 2026

test-lowest: $(LOWEST)/.done  ## the main part of the tests, with the lowest versions that pyproject.toml allows
	$(LOWEST)/bin/python -m pytest -n auto -W default -W ignore::DeprecationWarning $(LOWEST_TESTS)

test-notebooks: .venv/.test  ## the workbench in JupyterLab and marimo (200 MB more), in a headless Chromium
	$(BIN)/python $(INSTALL) --group notebook-test
	$(BIN)/python -m pytest tests/test_workbench_notebook.py

test-sdist: .venv/.test .venv/.build  ## build wheel and sdist, install the wheel, run tests from the unpacked sdist
	rm -rf dist $(SDIST)
	$(BIN)/python -m build --outdir dist > /dev/null
	mkdir -p $(SDIST) && tar -xzf dist/*.tar.gz -C $(SDIST) --strip-components 1
	$(BIN)/python -m pip install --quiet --no-deps --target $(SDIST)/installed dist/*.whl
	cd $(SDIST) && PYTHONPATH=installed $(CURDIR)/$(BIN)/python -m pytest $(SDIST_TESTS)

docs: .venv/.docs  ## build/docs/index.html; runs the examples; a warning or a broken link fails
	$(BIN)/python -m sphinx -W --keep-going -E -q -j auto docs build/docs
	@echo "the documentation is build/docs/index.html"

bench: .venv/.bench  ## time, memory and quality beside bare BLAS, scikit-learn and other rankers, in one run
	$(BIN)/python -m benchmarks.run

DATA ?= ../shared/data
papers: .venv/.bench  ## every table of the papers from the data sets in DATA; goes on where it was interrupted
	$(BIN)/python -m benchmarks.papers --data $(DATA)

clean:
	rm -rf .venv $(LOWEST) build dist docs/gallery docs/reference .mypy_cache .ruff_cache
