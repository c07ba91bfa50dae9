# One menu for everything; each target does its own set-up from a fresh checkout (Python >= 3.11, pip and make).

PYTHON ?= python3
VENV ?= .venv
CACHE ?= .cache
# Your own demo: make demo MODEL=<id or folder> DOCUMENTS=<folder, .csv or .jsonl> PERMISSION="..." REVIEW="..."
MODEL ?=
DOCUMENTS ?=
PERMISSION ?=
REVIEW ?=
# Environments of the load tools that make peers compares with, and a Python 3.12 for the one that needs it
PEERS ?= $(CACHE)/peers
PYTHON312 ?= python3.12
DEMO ?= $(if $(DOCUMENTS),trial,demo)
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
export PERMISSION REVIEW
export PIP_CONSTRAINT := $(CURDIR)/.ci/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help demo ranking-model samples sample-engines test test-tiers test-all lint types format schemas benchmarks peers peer-tools clean

help: ## show this menu
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

$(INSTALLED): pyproject.toml .ci/constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

demo: $(if $(MODEL),$(INSTALLED),$(CACHE)/demo-model.path) ## a small trial: demo/dossier.pdf; or yours: MODEL=<id or folder> DOCUMENTS=<folder or file>
	@# Your own documents stay: labels and statements written into the trial's folder are taken up by the next call.
	@# The small trial is made anew, but only over one that this target made: its mark is written first.
	@test -n "$(DOCUMENTS)" || test ! -e $(DEMO) || test -e $(DEMO)/.made-by-make-demo || \
	  { echo "$(DEMO) is there and make demo did not make it: name another DEMO=, or DOCUMENTS= to continue your own" >&2; exit 2; }
	@test -z "$(DOCUMENTS)$${PERMISSION}$${REVIEW}" || test ! -e $(DEMO)/protocol.toml || \
	  echo "$(DEMO) is continued as it is: DOCUMENTS, PERMISSION and REVIEW speak to a new one; edit its protocol.toml" >&2
	$(if $(DOCUMENTS),test -e $(DEMO)/protocol.toml ||,rm -rf $(DEMO) && mkdir -p $(DEMO) && touch $(DEMO)/.made-by-make-demo &&) \
	  $(BIN)/collector init $(DEMO) --model "$(if $(MODEL),$(MODEL),$$(cat $(CACHE)/demo-model.path))" $(if $(DOCUMENTS), \
	  --from "$(DOCUMENTS)" $${PERMISSION:+--permission "$$PERMISSION"} $${REVIEW:+--review "$$REVIEW"},--small)
	$(BIN)/collector check $(DEMO)/protocol.toml
	$(BIN)/collector freeze $(DEMO)/protocol.toml
	$(BIN)/collector run $(DEMO)/protocol.toml --out $(DEMO)/runs || [ $$? -eq 5 ]
	$(BIN)/reporter html $(DEMO)/runs --campaign $(DEMO)/campaign.toml -o $(DEMO)/dossier.html
	$(BIN)/reporter pdf $(DEMO)/runs --campaign $(DEMO)/campaign.toml -o $(DEMO)/dossier.pdf

ranking-model: $(CACHE)/ranking-model.path ## a small model for rankings by embedding (84 MB); prints its folder
	@cat $<

samples: $(CACHE)/demo-model.path $(CACHE)/ranking-model.path ## record the campaigns of sample_runs again (over an hour, on an idle machine)
	BIN=$(abspath $(BIN)) sample_runs/record.sh labelled all-tiers ranking

sample-engines: $(CACHE)/demo-model.path ## record sample_runs/engines through real servers (builds .servers, 5 GB; a quarter of an hour, on an idle machine)
	BIN=$(abspath $(BIN)) sample_runs/servers/record.sh

test: lint types ## the default tier: tests, ruff, mypy strict
	$(BIN)/python -m pytest -n 2 --dist worksteal -m 'not slow and not browser and not server and not gpu'

test-tiers: $(INSTALLED) $(CACHE)/demo-model.path $(CACHE)/ranking-model.path ## the slow, browser, server and gpu tiers that this machine can run
	$(BIN)/python -m pytest -m 'slow or browser or server or gpu'

test-all: test test-tiers ## every tier this machine can run

lint: $(INSTALLED) ## ruff
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .

types: $(INSTALLED) ## mypy strict
	$(BIN)/python -m mypy

format: $(INSTALLED) ## rewrite the sources in the house format
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

benchmarks: $(INSTALLED) $(CACHE)/demo-model.path ## ratios within one run: decode loop, command start-up, a campaign of 180,000 requests
	$(BIN)/python tests/benchmarks/decode_loop.py --cache $(CACHE)
	$(BIN)/python tests/benchmarks/help_time.py
	$(BIN)/python tests/benchmarks/campaign_time.py

peers: $(INSTALLED) peer-tools $(CACHE)/demo-model.path ## our client beside five load tools: tests/benchmarks/peers/table.md (25 minutes, idle machine, gcc)
	$(BIN)/python tests/benchmarks/peer_table.py --environments $(PEERS) --cache $(CACHE) -o tests/benchmarks/peers/table.md

peer-tools: ## the tools of make peers, pinned, an environment each (8 GB)
	PYTHON=$(PYTHON) PYTHON312=$(PYTHON312) bash tests/benchmarks/peers/environments.sh $(PEERS)

$(CACHE)/demo-model.path: $(INSTALLED)
	mkdir -p $(CACHE)
	$(BIN)/python -m collector.starter.demo_model --cache $(CACHE) > $@.part
	mv $@.part $@

$(CACHE)/ranking-model.path: $(INSTALLED)
	mkdir -p $(CACHE)
	$(BIN)/python -m collector.starter.ranking_model --cache $(CACHE) > $@.part
	mv $@.part $@

clean: ## remove what make made
	rm -rf $(VENV) $(CACHE) .servers demo build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
