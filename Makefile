# make app   set up a virtual environment and open the app on the sample workspace
# make test  set it up with the development tools and run all checks
# Needs Python 3.11 or later, nothing else.

# The first Python that runs and is new enough; a name on the path may be a mere shim.
PYTHON ?= $(shell for name in python3 python3.14 python3.13 python3.12 python3.11; do \
  $$name -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
  && echo $$name && exit; done; echo python3)
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: app test check screenshots clean

app: $(VENV)/.app
	$(BIN)/streamlit run app.py --server.headless=false --server.showEmailPrompt=false

test: check
	$(BIN)/python -m pytest -n auto

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or later is needed; $(PYTHON) is $$($(PYTHON) --version 2>&1)."; \
	  echo "Install a newer Python, or name one: make PYTHON=/path/to/python3 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "This Python cannot make virtual environments."; \
	  echo "On Debian or Ubuntu: sudo apt-get install python3-venv, then run make again."; exit 1; }
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.app: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@ $(VENV)/.app

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .import_linter_cache
