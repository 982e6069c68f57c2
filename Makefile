# make serve     sets everything up and serves the embedded model (the main job), or MODEL: a model, a hub id or a folder
# make test      sets everything up and runs all tests
# make install   the command `vqa` in .venv, with all that scoring and evaluating need
# make fine-tune a model of your own from a CSV file
# The rest: install-dev, install-export, test-fast, lint, format, fuzz, evaluate, bench-score, bench-decoding, bench-peers,
# loadtest, simulate, locust, random-vilt, vilt-shapes, calibrate-vilt-shapes, measure-vilt-shapes, clean.

PYTHON ?= python3
VENV := .venv
EXPORT_VENV := .venv-export
PIP := -m pip install --quiet --disable-pip-version-check
# `gpu` in place of `cpu` installs onnxruntime-gpu; then serve with VQA_DEVICE=cuda.
ORT ?= cpu
HOST ?= 127.0.0.1
PORT ?= 8000
# The name of a model below models/; for `make serve` also a ViLT checkpoint, from the hub or in a folder, of which the
# model is made first. INT8=1 makes and serves the 8-bit one.
MODEL ?= vilt-shapes

.PHONY: vilt-shapes calibrate-vilt-shapes measure-vilt-shapes fine-tune own-data fine-tune-given
.PHONY: install install-dev install-export serve add int8-of-a-source test test-fast lint format fuzz evaluate bench-score bench-decoding bench-peers peers loadtest simulate locust random-vilt system system-test clean

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

# Tests start a real Redis, read WordNet (for the WUPS of DAQUAR) and load servers with wrk, as does bench-peers; where one
# is missing and we are not root, its tests are skipped and say so.
system-test:
	@missing=; command -v redis-server >/dev/null || missing="$$missing redis-server"; \
	  command -v wrk >/dev/null || missing="$$missing wrk"; \
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

# The core alone: serving needs none of what evaluations need; and a model that is there needs no export environment.
PRECISION := $(filter 1,$(INT8))
NAMED := $(wildcard models/$(MODEL)/model.toml)
SERVED = $(if $(NAMED),$(MODEL),$(notdir $(if $(wildcard $(MODEL)/.),$(realpath $(wildcard $(MODEL))),$(MODEL)))$(if $(PRECISION),-int8))
serve: $(if $(NAMED),$(if $(PRECISION),int8-of-a-source)) $(VENV)/.core-$(ORT) $(if $(NAMED),,add)
	$(VENV)/bin/vqa serve --host $(HOST) --port $(PORT) --classifier "$(SERVED)"

add: $(VENV)/.core-$(ORT) install-export
	$(VENV)/bin/vqa models add "$(MODEL)" --name "$(SERVED)" --keep $(if $(PRECISION),--int8)

int8-of-a-source:
	@echo "INT8=1 makes a model of a source: MODEL=OWNER/NAME or MODEL=FOLDER; models/$(MODEL) is a model already, serve it without" >&2; exit 1

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
EASY_TEST = "$$($(VENV)/bin/python -c 'from models.vilt.easyvqa import data_folder; print(data_folder())')/test/questions.json"
BLIND := --blind blank --blind shuffled --blind noise
evaluate: install-dev
	$(VENV)/bin/vqa eval --fresh --model $(MODEL) --dataset easyvqa --out $(RUNS)/easy-vqa $(BLIND) \
	  --annotations $(EASY_TEST)
ifdef REAL
	$(VENV)/bin/vqa eval --fresh --model $(MODEL) --dataset jsonl --annotations "$(REAL)" \
	  --out $(RUNS)/real-photographs $(BLIND) $(EVAL_FLAGS)
endif
	$(VENV)/bin/vqa report $(RUNS)/easy-vqa $(if $(REAL),$(RUNS)/real-photographs) --out $(RUNS)/evaluation.html

# Scoring beside a straight loop that gives the same results: 450,000 answers, two minutes.
bench-score: install-dev
	$(VENV)/bin/python -m loadtest.scoring $(FLAGS)

# From a JPEG to a model's input beside other libraries, which go into a folder of their own: a minute.
DECODERS := build/decoders
bench-decoding: install-dev
	$(VENV)/bin/python $(PIP) --target $(DECODERS) --upgrade --no-deps --requirement loadtest/decoders.txt
	PYTHONPATH=$(DECODERS) $(VENV)/bin/python -m loadtest.decoding $(FLAGS)

# This service side by side with seven peers (loadtest/README.md): the same work behind each with the embedded model and with
# one of ViLT-B/32's size, then what an hour's user writes. About three hours on two cores that do nothing else, after the
# environments and models have been made once; FLAGS=--resume goes on where it was stopped.
PEERS := build/peers
PEER_NAMES := fastapi litserve mosec bentoml mlserver kserve ray torch
bench-peers: install-dev system-test peers $(PEERS)/.models
	$(VENV)/bin/python -m loadtest.peers --force --comparison same --model models/vilt-shapes $(FLAGS)
	$(VENV)/bin/python -m loadtest.peers --force --comparison same --model build/vilt-b32-random $(FLAGS)
	$(VENV)/bin/python -m loadtest.peers --force --comparison hour $(FLAGS)

# An environment each, pinned exactly; 4.5 GB in all.
peers: $(PEER_NAMES:%=$(PEERS)/%/.installed)
$(PEERS)/%/.installed: loadtest/peers/requirements/%.txt | system
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python $(PIP) --requirement $<
	@touch $@

# The same random weights three times: fp32 and int8 for this service, a checkpoint in the hub's format for the peers.
$(PEERS)/.models: loadtest/random_vilt.py models/vilt/quantise.py models/vilt/embedding.py | $(EXPORT_VENV)/.installed
	rm -rf build/vilt-b32-random build/vilt-b32-random-int8 build/vilt-b32-checkpoint
	$(EXPORT_VENV)/bin/python -m loadtest.random_vilt build/vilt-b32-random --checkpoint build/vilt-b32-checkpoint
	$(RECIPE).quantise build/vilt-b32-random --out build/vilt-b32-random-int8
	@mkdir -p $(@D) && touch $@

# Every measured command (loadtest/README.md) against the embedded model, about ten minutes; ONLY='leavers overload' picks
# some, MODEL=FOLDER takes another model, FLAGS=--quick makes miniatures.
SCENARIOS := leavers overload one_client memory identical layouts
ONLY ?= $(SCENARIOS)
loadtest: install-dev
	@for name in $(ONLY); do $(VENV)/bin/python -m loadtest.$$name --model $(MODEL) $(FLAGS) || exit 1; done

# Replicas by the thousand on a simulated clock, with service times that were measured: two minutes on two idle cores.
# MEASURE='FOLDER FOLDER' measures those models anew first.
simulate: install-dev
ifdef MEASURE
	$(VENV)/bin/python -m loadtest.simulation.measure $(foreach model,$(MEASURE),--model $(model))
endif
	$(VENV)/bin/python -m loadtest.simulation $(FLAGS)

# Users of four kinds for a minute against a server that runs already.
locust: install-dev
	$(VENV)/bin/locust -f loadtest/locustfile.py --headless --only-summary --users 20 --spawn-rate 5 --run-time 1m \
	  --host http://$(HOST):$(PORT) $(FLAGS)

# The embedded model anew: drawn and trained (some two hours on a core, or THREADS=2; an interrupted run goes on where it
# was, a finished one is used as it is, one of another recipe refused, until build/vilt-shapes/run is removed), exported,
# calibrated and measured, its card included. REAL as above measures on photographs, too.
WORK := build/vilt-shapes
THREADS ?= 1
RECIPE := $(EXPORT_VENV)/bin/python -m models.vilt
EVAL := $(VENV)/bin/vqa eval --fresh
vilt-shapes: install-dev install-export
	$(RECIPE).train --out $(WORK)/run --threads $(THREADS) $(if $(wildcard $(WORK)/run/state.pt),--resume)
	$(RECIPE).package $(WORK)/run --out models/vilt-shapes --demo --license MIT \
	  --description "A small ViLT that answers questions about drawn circles, rectangles and triangles; a demo model"
	$(MAKE) calibrate-vilt-shapes

# Only what follows its training: the calibration, then all figures of the card.
calibrate-vilt-shapes: install-dev install-export
	$(VENV)/bin/python -m models.vilt.splits --out $(WORK)
	$(EVAL) --model vilt-shapes --dataset vqav2 --annotations $(WORK)/calibration/annotations.json \
	  --questions $(WORK)/calibration/questions.json --out $(WORK)/runs/calibration
	$(VENV)/bin/vqa calibrate $(WORK)/runs/calibration --model vilt-shapes --json \
	  --fitted-on "drawn shapes (calibration split) and held-out easy-VQA training pictures, in wordings of their own" \
	  > $(WORK)/calibration-report.json.part
	mv $(WORK)/calibration-report.json.part $(WORK)/calibration-report.json
	$(MAKE) measure-vilt-shapes

SHAPES_TEST := --dataset vqav2 --annotations $(WORK)/test/annotations.json --questions $(WORK)/test/questions.json
measure-vilt-shapes: install-dev install-export
	rm -rf build/vilt-shapes-int8
	$(RECIPE).quantise models/vilt-shapes --out build/vilt-shapes-int8
	$(EVAL) --model vilt-shapes --dataset easyvqa --annotations $(EASY_TEST) --out $(WORK)/runs/easy
	$(EVAL) --model vilt-shapes $(SHAPES_TEST) --out $(WORK)/runs/shapes --blind blank
	$(EVAL) --models-dir build --model vilt-shapes-int8 --dataset easyvqa --annotations $(EASY_TEST) --out $(WORK)/runs/int8-easy
	$(EVAL) --models-dir build --model vilt-shapes-int8 $(SHAPES_TEST) --out $(WORK)/runs/int8
ifdef REAL
	$(EVAL) --model vilt-shapes --dataset jsonl --annotations "$(REAL)" --out $(WORK)/runs/real
endif
	$(VENV)/bin/python -m models.vilt.measure models/vilt-shapes --easy $(WORK)/runs/easy --shapes $(WORK)/runs/shapes \
	  --int8 $(WORK)/runs/int8 --int8-easy $(WORK)/runs/int8-easy --int8-model build/vilt-shapes-int8 \
	  --calibration $(WORK)/calibration-report.json $(if $(REAL),--real $(WORK)/runs/real)

# A model of your own from a CSV file of picture, question, answer (README): DATA=seal.csv NAME=seal; it starts from the
# embedded model, or from FROM=FOLDER. TUNE passes further options to the training.
FROM ?= models/vilt-shapes
OWN = build/$(NAME)
fine-tune: own-data install-export
	rm -rf $(OWN)/run $(OWN)/models
	$(RECIPE).train --out $(OWN)/run --dataset jsonl --annotations $(OWN)/data/train.jsonl --checkpoint "$(FROM)" \
	  --ruined 0.1 --questions-a-picture 3 --steps 600 --rate 0.3 --evaluate-every 100 $(TUNE)
	$(RECIPE).package $(OWN)/run --out $(OWN)/models/$(NAME) --description "Fine-tuned on $(notdir $(DATA))"
	$(EVAL) --models-dir $(OWN)/models --model $(NAME) --dataset jsonl --annotations $(OWN)/data/calibration.jsonl \
	  --out $(OWN)/runs/calibration
	$(VENV)/bin/vqa calibrate $(OWN)/runs/calibration --models-dir $(OWN)/models --model $(NAME) \
	  --fitted-on "held-out pictures of $(notdir $(DATA))"
	$(EVAL) --models-dir $(OWN)/models --model $(NAME) --dataset jsonl --annotations $(OWN)/data/test.jsonl \
	  --out $(OWN)/runs/test --blind blank
	$(VENV)/bin/python -m models.vilt.place --take $(OWN)/models/$(NAME) -- "$(NAME)"
	@echo "models/$(NAME) is ready: make serve MODEL=$(NAME). Its report: $(OWN)/runs/test/report.html"

# What is wrong with the name or the file is said before the training's own environment is made.
own-data: fine-tune-given install
	$(VENV)/bin/python -m models.vilt.place -- "$(NAME)"
	$(VENV)/bin/python -m models.vilt.own_data "$(DATA)" --out $(OWN)/data

fine-tune-given:
	$(if $(and $(DATA),$(NAME)),,$(error make fine-tune DATA=questions.csv NAME=name-of-the-model))

# A model folder of ViLT-B/32's size with random weights (471 MB), to be given as MODEL of the load tests.
RANDOM_VILT ?= build/vilt-b32-random
random-vilt: install-export
	$(EXPORT_VENV)/bin/python -m loadtest.random_vilt $(RANDOM_VILT)

clean:
	rm -rf $(VENV) $(EXPORT_VENV) *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
