# `make demo` and `make test` need nothing but Python 3.11 or newer; all else is set up here.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
OLDEST := .venv-oldest
# Marks of the tests that `make test` leaves out, as in pyproject.toml.
OTHERS := slow or browser or server or gpu or cluster or data or repo or fuzz
# What touches another library, in every room; the checks of orbits take minutes.
OLDEST_TESTS := src tests/cli tests/images tests/_pictures tests/plotting tests/assignment \
	$(addprefix tests/_run/test_,compile.py import.py parallel.py) tests/repo/test_package.py \
	$(filter-out tests/orbits/%, $(wildcard tests/*/test_scikit_learn.py)) \
	$(wildcard tests/*/test_known_answers.py) \
	$(addprefix tests/kernels/test_,gram.py mixtures.py text.py) tests/cluster \
	tests/svm/test_set_aligner.py \
	$(addprefix tests/web/test_,security.py serve.py session.py)

.PHONY: demo test test-all test-elsewhere test-oldest fuzz lint format bench bench-check papers docs package clean

demo: $(VENV)/base.stamp
	$(BIN)/unshuffle demo

# What every change should pass, in minutes and a gigabyte.
test: $(VENV)/test.stamp
	$(BIN)/pytest -n auto --dist loadgroup $(ARGS)

# All that `make test` leaves out: browsers, servers, PyTorch, clusters, real data, docs.
test-all: $(VENV)/dev.stamp
	$(BIN)/pytest -n auto --dist loadgroup --hypothesis-profile=ci -m "$(OTHERS)" $(ARGS)

# `make test` and the guides as on another processor: other BLAS kernels, other compiled loops.
# BLAS may be Haswell, SkylakeX or Sandybridge, whatever this processor can run.
BLAS ?= Haswell
test-elsewhere: $(VENV)/dev.stamp
	OPENBLAS_CORETYPE=$(BLAS) NUMBA_CPU_NAME=generic $(BIN)/pytest -n auto --dist loadgroup $(ARGS)
	OPENBLAS_CORETYPE=$(BLAS) NUMBA_CPU_NAME=generic $(BIN)/pytest -n auto --dist loadgroup \
		-m "" tests/repo/docs/test_guides.py $(ARGS)

fuzz: $(VENV)/dev.stamp
	$(BIN)/python -m tests.fuzz $(ARGS)

# Part of the tests with the lowest versions that pyproject.toml allows, .ci/oldest.txt; without
# PyTorch.
test-oldest: $(OLDEST)/dev.stamp
	$(OLDEST)/bin/pytest -n auto --dist loadgroup -m "not (slow or gpu or data)" $(OLDEST_TESTS)

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/python .ci/prose.py
	.ci/types.sh

format: $(VENV)/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/bench.stamp
	$(BIN)/python -m benchmarks $(ARGS)

papers: $(VENV)/dev.stamp
	$(BIN)/python -m benchmarks.papers $(ARGS)

# Fails if a ratio to another library fell by more than a third since it was recorded.
bench-check: $(VENV)/bench.stamp
	$(BIN)/python -m benchmarks --check $(ARGS)

# The site, in docs/_build/html; examples that changed are run again for the gallery.
docs: $(VENV)/docs.stamp
	$(BIN)/sphinx-build --fresh-env --fail-on-warning --keep-going --quiet $(ARGS) docs docs/_build/html

# Wheel, source archive and bill of materials in dist/, each checked; nothing is published.
package: $(VENV)/test.stamp
	$(BIN)/python .ci/package.py

$(VENV)/venv.stamp:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "unshuffle needs Python 3.11 or newer; run e.g. make PYTHON=python3.12 demo")'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/base.stamp: $(VENV)/venv.stamp pyproject.toml
	$(BIN)/pip install --quiet --editable '.[plot]'
	touch $@

$(VENV)/test.stamp: $(VENV)/venv.stamp pyproject.toml
	$(BIN)/pip install --quiet --editable '.[test]'
	touch $@ $(VENV)/base.stamp

$(VENV)/dev.stamp: $(VENV)/venv.stamp pyproject.toml
	$(BIN)/pip install --quiet --editable '.[test-all,api,lint,gpu,content,encoders]'
	touch $@ $(VENV)/base.stamp $(VENV)/test.stamp

$(VENV)/docs.stamp: $(VENV)/venv.stamp pyproject.toml
	$(BIN)/pip install --quiet --editable '.[docs]'
	touch $@ $(VENV)/base.stamp

$(VENV)/bench.stamp: $(VENV)/venv.stamp pyproject.toml
	$(BIN)/pip install --quiet --editable '.[bench]'
	touch $@ $(VENV)/base.stamp

$(OLDEST)/dev.stamp: pyproject.toml .ci/oldest.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] not in {(3, 11), (3, 12)} and "The oldest versions need Python 3.11 or 3.12; run e.g. make PYTHON=python3.11 test-oldest")'
	$(PYTHON) -m venv --clear $(OLDEST)
	$(OLDEST)/bin/pip install --quiet --constraint .ci/oldest.txt --editable '.[test-all]'
	touch $@

clean:
	rm -rf $(VENV) $(OLDEST) .venv-release build dist docs/_build docs/gallery docs/generated .pytest_cache .mypy_cache .ruff_cache .hypothesis unshuffle-demo
