# Two commands do everything: `make demo` and `make test`. Each sets up what it needs first.
SHELL := /bin/sh
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# The demo takes a third of what the tests take; where all of it is there, it takes that.
DEMO := $(if $(wildcard $(READY)),$(READY),$(VENV)/.ready-demo)
# The whole suite waits for processes more than it computes: two workers a core.
WORKERS ?= $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1))))
PEERS := $(VENV)-peers
DIST := $(VENV)-dist
DOCS := $(VENV)-docs

.DEFAULT_GOAL := help
.PHONY: help demo test collected quick check lint web-types bench peers evidence simulate docs dist lock clean

help: ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /|/' | awk -F'|' '{printf "  make %-8s %s\n", $$1, $$2}'

demo: $(DEMO) ## the whole way on real data: 20,190 devices to sealed estimates, a page at a printed URL
	@$(BIN)/hubbub demo $(ARGS)

test: $(READY) ## every test, with real processes, real databases and kill -9
	@OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n $(WORKERS) --dist loadgroup $(ARGS)

collected: $(READY)  # compiles every test once: workers that begin together would each do it
	@$(BIN)/pytest --collect-only -qq >/dev/null

quick: $(READY) ## the tests of the edit loop, under a minute on two quiet cores
	@OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -q -n auto --dist loadgroup -m check: lint web-types ## lint, format, types, the direction of imports, docstrings; types of the browser's device where npm is

lint: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python tests/harness/docstrings.py

web-types:
	@if command -v npm >/dev/null; \
	    then cd client/web && { [ -d node_modules/typescript ] || npm ci --silent; } && npm run --silent check; \
	    else echo "npm is not at hand: the types of client/web were not checked" >&2; fi

bench: $(READY) ## speed and size as ratios, measured in one run
	@$(BIN)/python bench/run.py $(ARGS)

peers: $(PEERS)/.ready ## other libraries beside this one, in one run; their own virtual environment (900 MB)
	@$(PYTHON) bench/peers/peers.py $(ARGS)

evidence: $(READY) ## what is too long for CI, kept in evidence/: NAME=...; without it the names
	@$(BIN)/python bench/evidence.py $(NAME) $(ARGS)

simulate: $(READY) ## a node's life in virtual time: SEED=17 tells one, SEEDS=1000 runs many
	@PYTHONPATH=tests/harness $(BIN)/python tests/simulation/simulate.py $(if $(SEED),--seed $(SEED)) $(if $(SEEDS),--seeds $(SEEDS)) $(ARGS)

docs: $(DOCS)/.ready ## the site, into build/site; it is read offline
	@$(DOCS)/bin/sphinx-build -q -W --keep-going -j auto -b html docs build/site
	@echo "build/site/index.html"

dist: $(READY) $(DIST)/.ready ## wheel, source archive, bill of materials and their sums, into dist/
	@$(BIN)/python client/web/tools/inline.py verify dist/verify.html
	@$(BIN)/python deploy/dist/dist.py --cyclonedx $(DIST)/bin/cyclonedx-py $(ARGS)

# One lock serves all that CI installs. An extra that CI does not need (peers, fuzzing, notebooks) gets a lock of its own
# when something uses it: the second command with `--extra NAME ... -o requirements-NAME.lock` and the same -c.
lock: ## compile requirements.lock and the image's from pyproject.toml (needs uv)
	uv pip compile --no-config --universal --generate-hashes --no-emit-index-url \
	    --extra server --extra design --extra bench --extra export --extra results --extra speed --extra dev \
	    --custom-compile-command "make lock" --upgrade -q -c requirements-constraints.txt pyproject.toml -o requirements.lock
	uv pip compile --no-config --universal --generate-hashes --no-emit-index-url --extra cluster \
	    --custom-compile-command "make lock" -q -c requirements.lock pyproject.toml -o deploy/compose/requirements.lock
	uv pip compile --no-config --universal --generate-hashes --no-emit-index-url --extra peers \
	    --custom-compile-command "make lock" -q -c requirements.lock pyproject.toml -o requirements-peers.lock
	uv pip compile --no-config --universal --generate-hashes --no-emit-index-url --extra demo --group demo \
	    --custom-compile-command "make lock" -q -c requirements.lock pyproject.toml -o requirements-demo.lock
	uv pip compile --no-config --universal --generate-hashes --no-emit-index-url --extra node --extra cluster \
	    --group docs --custom-compile-command "make lock" -q -c requirements.lock pyproject.toml -o requirements-docs.lock
	uv pip compile --no-config --universal --generate-hashes --no-emit-index-url --group dist \
	    --custom-compile-command "make lock" -q -o requirements-dist.lock

clean: ## remove what was made
	rm -rf $(VENV) $(PEERS) $(DIST) $(DOCS) $(VENV)-fuzz $(VENV)-3.* dist build out .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Debian may ship python3 without ensurepip: then the venv is made bare, and the system's pip fills it.
define FILL
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
    || { echo "Hubbub needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 2; }
@$(PYTHON) -m venv $(VENV) 2>/dev/null \
    || { $(PYTHON) -m venv --clear --without-pip $(VENV) && $(PYTHON) -m pip --python $(BIN)/python install -q pip; }
@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r $<
@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
@touch $@
endef

$(READY): requirements.lock pyproject.toml
	@echo "setting up $(VENV) (once; about a minute)" >&2
	$(FILL)

$(VENV)/.ready-demo: requirements-demo.lock pyproject.toml
	@echo "setting up $(VENV) for the demo (once; half a minute)" >&2
	$(FILL)

# The audit looks for a fault of pure-ldp 1.1.2 that the locked version has mended, so that one lies beside it.
$(PEERS)/.ready: requirements-peers.lock bench/peers/pure-ldp-1.1.2.lock
	@echo "setting up $(PEERS) (once; some minutes)" >&2
	@$(PYTHON) -m venv $(PEERS) 2>/dev/null \
	    || { $(PYTHON) -m venv --clear --without-pip $(PEERS) && $(PYTHON) -m pip --python $(PEERS)/bin/python install -q pip; }
	@$(PEERS)/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-peers.lock
	@$(PEERS)/bin/python -m pip install -q --disable-pip-version-check --require-hashes --no-deps --upgrade \
	    --target $(PEERS)/pure-ldp-1.1.2 -r bench/peers/pure-ldp-1.1.2.lock
	@touch $@

# A virtual environment of its own: $(call OWN,FOLDER,LOCK)
define OWN
@echo "setting up $(1) (once)" >&2
@$(PYTHON) -m venv $(1) 2>/dev/null \
    || { $(PYTHON) -m venv --clear --without-pip $(1) && $(PYTHON) -m pip --python $(1)/bin/python install -q pip; }
@$(1)/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r $(2)
@touch $(1)/.ready
endef

$(DIST)/.ready: requirements-dist.lock
	$(call OWN,$(DIST),requirements-dist.lock)

$(DOCS)/.ready: requirements-docs.lock
	$(call OWN,$(DOCS),requirements-docs.lock)
