# What developers and the CI run. `make help` lists it.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= $(firstword $(foreach name,python3 python3.13 python3.12 python3.11,\
  $(if $(shell $(name) -c 'import sys; print(sys.version_info >= (3, 11) or "")' 2>/dev/null),$(name))))
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup-done
CHROMIUM := $(shell command -v chromium chromium-browser google-chrome 2>/dev/null | head -n 1)

.PHONY: help setup demo run test check format bench lock

help:  ## list the commands
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

setup: $(STAMP)  ## make .venv with the locked dependencies (and Chromium, where that is possible)

$(STAMP): requirements.lock pyproject.toml
	@if [ -z "$(PYTHON)" ]; then \
	  echo "Python 3.11 or newer is needed: install it, or name it with make PYTHON=/path/to/python3" >&2; exit 1; fi
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed, $(PYTHON) is $$($(PYTHON) -V 2>&1)" >&2; exit 1; }
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV) || { \
	  echo "Python's venv module is needed (on Debian and Ubuntu: apt-get install python3-venv)" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(if $(CHROMIUM),true,$(MAKE) --no-print-directory chromium || echo "no Chromium: browser tests will be skipped")
	@touch $@

# Only where nobody has to be asked: as root, with apt.
.PHONY: chromium
chromium:
	@[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null
	@install() { DEBIAN_FRONTEND=noninteractive timeout 300 apt-get install -y -qq --no-install-recommends chromium; }; \
	  { install || { timeout 120 apt-get update -qq && install; }; } >/dev/null 2>&1

demo: setup  ## the gateway with an offline agent and the web page: no account, no key
	@$(BIN)/threadgate demo $(ARGS)

run: setup  ## the gateway with config.toml
	@$(BIN)/threadgate run $(ARGS)

test: setup  ## all tests (ARGS="-k word" for some)
	@$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile $(ARGS)

check: setup  ## format, lint, types, import rules
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: setup  ## put the code into its format
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: setup  ## measure beside peers, write benchmarks/results.md (ROUNDS=5 SCENARIOS=S1,S2,S3,S5)
	@$(MAKE) --no-print-directory -C benchmarks VENV_PYTHON=$(abspath $(BIN))/python

lock:  ## pin all dependencies anew into requirements.lock
	@[ -x $(BIN)/uv ] || $(MAKE) --no-print-directory setup
	@$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --all-extras --group dev \
	  --no-header --no-emit-index-url --no-annotate --quiet -o requirements.lock pyproject.toml
