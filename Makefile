.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SDK := sdks/ibm
READY := $(VENV)/.ready

.PHONY: help setup engine sdk sdk-check up test lint docs docs-check bench clean

help: ## show this
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(READY) ## make .venv with everything that is needed

$(READY): pyproject.toml constraints.txt $(SDK)/pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 or newer is needed: apt install python3 python3-venv"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed, found $$($(PYTHON) --version)"; exit 1; }
	@echo "setting up $(VENV) (about a minute, once)"
	@$(PYTHON) -m venv $(VENV) || { echo "python3-venv is missing: apt install python3-venv"; exit 1; }
	@$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt ./$(SDK) --editable '.[dev]'
	@touch $(READY)

engine: $(READY) ## find or build the Pulumi engine and IBM's provider
	@$(BIN)/python -m tools.engine ensure

sdk: $(READY) ## generate sdks/ibm from the provider
	@$(BIN)/python -m tools.sdk generate

sdk-check: $(READY) ## hold sdks/ibm against the provider
	@$(BIN)/python -m tools.sdk check

up: $(READY) ## vela up local: everything, on this machine
	@$(BIN)/vela up local

test: $(READY) ## run the tests
	@$(BIN)/python -m pytest -n auto --dist loadfile

lint: $(READY) ## types, style, layers, playbooks
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy .
	@$(BIN)/lint-imports
	@$(BIN)/yamllint --strict environments hardware playbooks
	@$(BIN)/ansible-lint --offline --profile production playbooks

docs: $(READY) ## generate docs/model.md and docs/rules.md
	@$(BIN)/python -m tools.reference

docs-check: $(READY) ## hold the generated pages against the code
	@$(BIN)/python -m tools.reference --check

bench: $(READY) ## print the figures of benchmarks/
	@for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python $$file; done

clean: ## remove .venv (state and caches stay)
	rm -rf $(VENV) *.egg-info
