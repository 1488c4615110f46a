# Two commands matter: `make course` and `make test`. `make help` lists all.
# PYTHON=python3.12 names the Python to use; it counts when .venv is made.

KAFKALAB = .venv/bin/kafkalab
PY = .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help course setup test test-quick test-all setup-test labs new-lab notebooks film badges site slides handouts wheels \
	bench faults lock clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' Makefile

course: setup ## set everything up and open the course in your workspace
	@$(KAFKALAB) lab

setup: ## set everything up, into .venv and the cache
	@PYTHON="$(PYTHON)" tools/setup.sh course
	@$(KAFKALAB) fetch

setup-test:
	@PYTHON="$(PYTHON)" tools/setup.sh test

test: setup-test ## set everything up and test what a change can break
	@tools/test.sh all

test-quick: setup-test ## lint, types and unit tests; starts no broker
	@tools/test.sh quick

test-all: setup-test ## test at length, on both back ends; takes hours
	@tools/test.sh full

labs: setup-test ## write the links between notebooks, and labs/ anew from solutions/
	@$(PY) tools/link_notebooks.py
	@$(PY) tools/make_labs.py

new-lab: setup-test ## begin a lab: make new-lab CHAPTER=02_cluster_failover STEM=leaders
	@$(PY) tools/new_lab.py "$(CHAPTER)" "$(STEM)"

notebooks: setup-test ## run chapters and solutions, store their outputs, and the pictures in docs
	@$(KAFKALAB) fetch
	@$(KAFKALAB) run --backend local --save -j 2 notebooks/*.ipynb solutions/*/*.ipynb
	@$(PY) tools/stored_pictures.py

film: setup-test ## film a failover for README: docs/failover.gif
	@$(KAFKALAB) fetch
	@$(PY) tools/make_film.py

badges: setup-test ## write README's badges, with those that need the repository's address: KAFKALAB_REPOSITORY=https://…
	@$(PY) tools/write_badges.py

site: setup-test ## write the course as pages that need no server: build/site/html
	@$(PY) tools/make_site.py

slides: setup-test ## write a deck of slides for each chapter, as HTML and PDF: build/slides
	@$(PY) tools/make_slides.py

handouts: setup-test ## write each chapter's tasks for printing, without and with answers: build/handouts
	@$(PY) tools/make_handouts.py

wheels: setup-test ## build the two wheels that carry the course: dist
	@.venv/bin/uv build --quiet --wheel --out-dir dist .
	@.venv/bin/uv build --quiet --wheel --out-dir dist pipeline

bench: setup-test ## measure, and print the table of figures
	@$(KAFKALAB) fetch
	@$(PY) tools/bench.py

faults: setup-test ## kill each part of the truck pipeline in three rounds, and compare its tables with the ledger; takes an hour
	@$(KAFKALAB) fetch
	@$(PY) tools/pipeline_faults.py

lock: setup-test ## write the locks anew from pyproject.toml
	@PATH="$(CURDIR)/.venv/bin:$$PATH" requirements/lock.sh

clean: ## end what crashed runs left and remove .venv (the cache stays: kafkalab clean --cache)
	@if [ -x $(KAFKALAB) ]; then $(KAFKALAB) clean; fi
	@rm -rf .venv
