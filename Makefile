# Every target creates or brings up to date what it needs in .venv/, then does its work.
SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.PHONY: help demo check test test-all test-torch versions supply wheel lint hooks docs pictures bench env clean

ifneq ($(wildcard ../shared/data/.),)
export BAYESRBF_DATA ?= $(abspath ../shared/data)
endif

bin := .venv/bin

help:
	@echo "make demo    fit, check and report on a real table with hidden cells and labels: report/"
	@echo "make check   style, import directions and the quick tests, in about a minute"
	@echo "make test    the tests (ARGS='-k name' chooses)"
	@echo "make test-all  the tests with long simulations"
	@echo "make test-torch  the tests of bayesrbf.torch, in .venv-torch/ with PyTorch (5 GB)"
	@echo "make versions  quick tests with the lowest and the newest versions of what is needed"
	@echo "make supply  the wheel twice, a bill of materials, known weaknesses, the workflows"
	@echo "make wheel   the package and what it needs as wheels, for machines without network: dist/"
	@echo "make lint    style, types, import directions, docstrings"
	@echo "make hooks   the checks of lint before every commit"
	@echo "make docs    the documentation: docs/_build/html/index.html"
	@echo "make pictures  the pictures of the README, of the demo's report and page: docs/*.png"
	@echo "make bench   the figures of docs/measured/, in two to three hours"
	@echo "make env     the environment of test and lint: .venv/"

demo: .venv/.with-report
	$(bin)/bayesrbf demo --out report

# One thread and one process per worker: two workers with two each are slower than two with one.
check test test-all: export OPENBLAS_NUM_THREADS ?= 1
check test test-all: export LOKY_MAX_CPU_COUNT ?= 1
# Without bytecode every process that a test starts compiles all sources again.
check test test-all: export PYTHONDONTWRITEBYTECODE :=
pytest := $(bin)/python -m pytest -n 2 --dist loadfile

# Array functions and tables: what a change breaks first. What goes through every structure, or loads
# compiled kernels or graphs, is left to make test.
longer := compiled or kernels or log_posterior or discriminative or weighted or rbf_network or \
    fitting or the_graph
check: .venv/.with-test
	$(bin)/ruff check
	$(bin)/ruff format --check
	$(bin)/lint-imports
	$(pytest) -q -m "not slow" -k "not ($(longer))" tests/base tests/mixture tests/table \
	    tests/reading $(ARGS)

test: .venv/.with-test
	$(pytest) -m "not slow" --hypothesis-profile=quick --durations=20 $(ARGS)

test-all: .venv/.with-test
	$(pytest) --durations=40 $(ARGS)

# PyTorch is large, and the other tests have no use for it: an environment of its own.
test-torch: export OPENBLAS_NUM_THREADS ?= 1
test-torch: .venv-torch/.with-test-torch
	.venv-torch/bin/python -m pytest tests/torch bayesrbf/torch tests/test_torch_extra.py \
	    examples/reproduce/tests/test_sdgm_images.py \
	    'tests/test_examples.py::test_script_runs_and_draws[plot_sdgm_head]' $(ARGS)

# Each makes environments of its own, with the Python of .venv/.
versions: .venv/bin/python
	PYTHON=$(bin)/python .ci/versions lowest
	PYTHON=$(bin)/python .ci/versions newest

supply: .venv/bin/python
	PYTHON=$(bin)/python .ci/supply

# What an earlier build left behind would be packed, too.
wheel: .venv/bin/python
	rm -rf build
	@$(bin)/python -m pip --version >/dev/null 2>&1 || $(bin)/python -m ensurepip
	$(bin)/python -m pip wheel --quiet --wheel-dir dist ".[$(or $(EXTRAS),report)]"

lint: .venv/.with-test
	$(bin)/ruff check
	$(bin)/ruff format --check
	$(bin)/mypy
	$(bin)/lint-imports
	$(bin)/python -m tests.reference

hooks: .venv/.with-hooks
	$(bin)/pre-commit install

docs: .venv/.with-docs
	$(bin)/sphinx-build -W --keep-going -b html docs docs/_build/html

pictures: demo .venv/.with-test
	$(bin)/python -m tests.pictures report

# The tables of papers take hours: they are run by their name.
bench: .venv/.with-test
	$(bin)/python -m pytest examples/bench --benchmark -s \
	    $(or $(ARGS),--ignore=examples/bench/test_published.py)

env: .venv/.with-test

clean:
	rm -rf .venv .venv-torch build dist docs/_build docs/generated docs/gallery report

# A new pyproject.toml brings the environment up to date.
define install
@echo "Installing bayesrbf[$*] into $(@D)"
@if $(@D)/bin/python -m pip --version >/dev/null 2>&1; \
then $(@D)/bin/python -m pip install --quiet --editable ".[$*]"; \
else uv pip install --quiet --python $(@D)/bin/python --editable ".[$*]"; fi
@touch $@
endef

.venv/.with-%: pyproject.toml | .venv/bin/python
	$(install)

.venv-torch/.with-%: pyproject.toml | .venv-torch/bin/python
	$(install)

# A uv that is found need not run here: pyenv's stand-in fails in a folder with .python-version.
# For the same reason every interpreter is tried, and not only looked for.
.venv/bin/python .venv-torch/bin/python:
	@if uv --version >/dev/null 2>&1; then exec uv venv --quiet --allow-existing --python '>=3.12' $(@:/bin/python=); fi; \
	for python in $$(type -ap python3.14 python3.13 python3.12 python3 python); do \
	    if "$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1; \
	    then echo "Creating $(@:/bin/python=) with $$python"; exec "$$python" -m venv $(@:/bin/python=); fi; \
	done; \
	echo "bayesrbf needs Python 3.12 or newer with its venv module (on Debian: python3-venv), and none of python3.14, python3.13, python3.12, python3 and python is one: install it, or uv, and run make again." >&2; exit 1
