# `make demo` and `make test` need nothing but Python 3.11 or newer; all else is set up here.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test test-fast lint format bench clean

demo: $(VENV)/base.stamp
	$(BIN)/unshuffle demo

test: $(VENV)/dev.stamp
	$(BIN)/pytest -n 2 --dist loadgroup

test-fast: $(VENV)/dev.stamp
	$(BIN)/pytest -n 2 --dist loadgroup -m "not slow"

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/bench.stamp
	$(BIN)/python -m benchmarks $(ARGS)

$(VENV)/venv.stamp:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "unshuffle needs Python 3.11 or newer; run e.g. make PYTHON=python3.12 demo")'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/base.stamp: $(VENV)/venv.stamp pyproject.toml
	$(BIN)/pip install --quiet --editable '.[plot]'
	touch $@

$(VENV)/dev.stamp: $(VENV)/venv.stamp pyproject.toml
	$(BIN)/pip install --quiet --editable '.[test,lint,plot]'
	touch $@ $(VENV)/base.stamp

$(VENV)/bench.stamp: $(VENV)/venv.stamp pyproject.toml
	$(BIN)/pip install --quiet --editable '.[bench]'
	touch $@ $(VENV)/base.stamp

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis unshuffle-demo
