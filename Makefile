# make serve     sets everything up and serves the embedded model (the main job)
# make test      sets everything up and runs all tests
# make install   the command `vqa` in .venv, with all that scoring and evaluating need
# The rest: install-dev, install-export, test-fast, lint, format, fuzz, evaluate, bench-score, loadtest, locust, random-vilt, clean.

PYTHON ?= python3
VENV := .venv
EXPORT_VENV := .venv-export
PIP := -m pip install --quiet --disable-pip-version-check
# `gpu` in place of `cpu` installs onnxruntime-gpu; then serve with VQA_DEVICE=cuda.
ORT ?= cpu
HOST ?= 127.0.0.1
PORT ?= 8000
MODEL ?= vilt-shapes

.PHONY: install install-dev install-export serve test test-fast lint format fuzz evaluate bench-score loadtest locust random-vilt system system-test clean

# The stamps name the kind of ONNX Runtime, so that changing it installs the other one.
install: $(VENV)/.eval-$(ORT)
install-dev: $(VENV)/.dev-$(ORT)
install-export: $(EXPORT_VENV)/.installed

# Debian's python3 comes without venv; as root we can mend that, else we say what is missing.
system:
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get update -qq && apt-get install -y -qq --no-install-recommends python3 python3-venv python3-pip; \
	  else echo "python3 with venv is missing (Debian: python3-venv)" >&2; exit 1; fi; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed" >&2; exit 1; }

# Tests start a real Redis and read WordNet (for the WUPS of DAQUAR); where one is missing and we are not root, its tests
# are skipped and say so.
system-test:
	@missing=; command -v redis-server >/dev/null || missing="$$missing redis-server"; \
	  [ -e /usr/share/wordnet/data.noun ] || missing="$$missing wordnet-base"; \
	  if [ -n "$$missing" ]; then \
	    if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	      apt-get update -qq && apt-get install -y -qq --no-install-recommends $$missing; \
	    else echo "missing (Debian packages):$$missing: the tests that need them are skipped" >&2; fi; fi

$(VENV)/.core-$(ORT): pyproject.toml constraints.txt | system
	$(PYTHON) -m venv $(VENV)
	@if ls $(VENV)/.core-* >/dev/null 2>&1; then \
	  $(VENV)/bin/python -m pip uninstall --quiet --yes onnxruntime onnxruntime-gpu; rm -f $(VENV)/.core-* $(VENV)/.eval-* $(VENV)/.dev-*; fi
	$(VENV)/bin/python $(PIP) --constraint constraints.txt --editable '.[$(ORT)]'
	@touch $@

$(VENV)/.eval-$(ORT): $(VENV)/.core-$(ORT)
	$(VENV)/bin/python $(PIP) --constraint constraints.txt --editable '.[$(ORT),eval]'
	@touch $@

$(VENV)/.dev-$(ORT): $(VENV)/.core-$(ORT)
	$(VENV)/bin/python $(PIP) --constraint constraints.txt --editable '.[$(ORT),eval,dev]'
	@touch $@

$(EXPORT_VENV)/.installed: pyproject.toml models/constraints.txt | system
	$(PYTHON) -m venv $(EXPORT_VENV)
	$(EXPORT_VENV)/bin/python $(PIP) --requirement models/constraints.txt
	@touch $@

# The core alone: serving needs none of what evaluations need.
serve: $(VENV)/.core-$(ORT)
	$(VENV)/bin/vqa serve --host $(HOST) --port $(PORT) --classifier $(MODEL)

test: install-dev install-export system-test
	$(VENV)/bin/python -m pytest --cov --cov-report=term --cov-fail-under=90

# No export environment: what needs torch is skipped.
test-fast: install-dev system-test
	$(VENV)/bin/python -m pytest -m "not export"

lint: install-dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

format: install-dev
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

# The long fuzz of the picture decoder; `make test` runs a miniature of it.
fuzz: install-dev
	$(VENV)/bin/python -m tests.fuzz.decoder --count 20000

# A model on the official easy-VQA test split, sighted and blind, as one table and a page; REAL=FILE adds real photographs:
# JSON Lines with a picture, a question and the answers of people. EVAL_FLAGS='--only kind=vqa_v2_human' picks among them.
RUNS := build/runs
BLIND := --blind blank --blind shuffled --blind noise
evaluate: install-dev
	$(VENV)/bin/vqa eval --fresh --model $(MODEL) --dataset easyvqa --out $(RUNS)/easy-vqa $(BLIND) \
	  --annotations "$$($(VENV)/bin/python -c 'from models.vilt.easyvqa import data_folder; print(data_folder())')/test/questions.json"
ifdef REAL
	$(VENV)/bin/vqa eval --fresh --model $(MODEL) --dataset jsonl --annotations "$(REAL)" \
	  --out $(RUNS)/real-photographs $(BLIND) $(EVAL_FLAGS)
endif
	$(VENV)/bin/vqa report $(RUNS)/easy-vqa $(if $(REAL),$(RUNS)/real-photographs) --out $(RUNS)/evaluation.html

# Scoring beside a straight loop that gives the same results: 450,000 answers, two minutes.
bench-score: install-dev
	$(VENV)/bin/python -m loadtest.scoring $(FLAGS)

# Every measured command (loadtest/README.md) against the embedded model, about ten minutes; ONLY='leavers overload' picks
# some, MODEL=FOLDER takes another model, FLAGS=--quick makes miniatures.
SCENARIOS := leavers overload one_client memory identical layouts
ONLY ?= $(SCENARIOS)
loadtest: install-dev
	@for name in $(ONLY); do $(VENV)/bin/python -m loadtest.$$name --model $(MODEL) $(FLAGS) || exit 1; done

# Users of four kinds for a minute against a server that runs already.
locust: install-dev
	$(VENV)/bin/locust -f loadtest/locustfile.py --headless --only-summary --users 20 --spawn-rate 5 --run-time 1m \
	  --host http://$(HOST):$(PORT) $(FLAGS)

# A model folder of ViLT-B/32's size with random weights (471 MB), to be given as MODEL.
RANDOM_VILT ?= build/vilt-b32-random
random-vilt: install-export
	$(EXPORT_VENV)/bin/python -m loadtest.random_vilt $(RANDOM_VILT)

clean:
	rm -rf $(VENV) $(EXPORT_VENV) *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
