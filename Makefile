# Every recipe sets up what it needs in .venv; only Python >= 3.11, git and make are required.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint attack bench docs clean

.venv/.base: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

.venv/.test: .venv/.base
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test,lint]"
	@touch $@

.venv/.demo: .venv/.base
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[plot]"
	@touch $@

.venv/.bench: .venv/.base
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[bench]"
	@touch $@

demo: .venv/.demo  ## train, choose alpha by exact hold-out, compare, show rankings; writes demo-digits.png
	$(BIN)/python -m rankrls demo

lint: .venv/.test  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint  ## style, types, tests
	$(BIN)/python -m pytest

attack: .venv/.test  ## 100,000 random problems against independent oracles; prints what was tried and what deviated
	$(BIN)/python -m tests.attack --cases 100000

.venv/.docs: .venv/.base
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	@touch $@

docs: .venv/.docs  ## build/docs/index.html; runs the examples; a warning or a broken link fails
	$(BIN)/python -m sphinx -W --keep-going -E -q -j auto docs build/docs
	@echo "the documentation is build/docs/index.html"

bench: .venv/.bench  ## time, memory and quality beside bare BLAS, scikit-learn and other rankers, in one run
	$(BIN)/python -m benchmarks.run

clean:
	rm -rf .venv build dist docs/gallery docs/reference .mypy_cache .ruff_cache
