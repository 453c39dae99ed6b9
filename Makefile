# Everything that a developer types; `make help` lists it.

SHELL := /bin/bash
BIN := .venv/bin
# Each worker keeps a core busy; more than eight would only crowd the one test server.
WORKERS ?= $(shell cores=$$(nproc); echo $$((cores < 2 ? 2 : cores > 8 ? 8 : cores)))
TESTS ?= tests
# As PGXS has them: which PostgreSQL is meant, and where its root is while a package is built.
PG_CONFIG ?= pg_config
PYTHON ?= python3
EXTENSION = PYTHONPATH=. $(PYTHON) -m pg_mdistinct.install.extension \
	--pg-config '$(PG_CONFIG)' --destdir '$(DESTDIR)'
MAJOR ?= 15

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint image bench clean install-extension uninstall-extension

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1 \t\2/p' $(MAKEFILE_LIST) | expand -t 28

setup: ## set up what is missing: Debian packages, virtual environment
	@scripts/setup.sh

demo: setup ## publish the paper's hospital twice on the embedded server
	@$(BIN)/pg-mdistinct demo

test: lint ## run the linters and the whole test suite, also on the images (TESTS=path for a part)
ifeq ($(TESTS),tests)
	@scripts/test.sh -n $(WORKERS) --dist worksteal
else
	$(BIN)/pytest -n $(WORKERS) --dist worksteal $(TESTS)
endif

image: ## build the Docker image (MAJOR=17 for the one with PostgreSQL 17)
	@scripts/docker-image.sh $(MAJOR)

lint: setup ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup ## measure, as ratios within one run (BENCH=risk for one benchmark)
	@$(BIN)/python -c 'import anonypy' 2>/dev/null || $(BIN)/pip install --quiet --editable '.[bench]'
	$(BIN)/python -m benchmarks $(BENCH)

install-extension: ## install the files for CREATE EXTENSION pg_mdistinct (PG_CONFIG=, DESTDIR=)
	@$(EXTENSION)

uninstall-extension: ## remove them
	@$(EXTENSION) --remove

clean: ## remove the virtual environment and all caches; the server's data stays
	@if [ -x $(BIN)/pg-mdistinct ]; then $(BIN)/pg-mdistinct server stop; fi
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -path ./.pg-mdistinct -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
