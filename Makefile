# Two commands matter: `make course` and `make test`. `make help` lists all.
# PYTHON=python3.12 names the Python to use; it counts when .venv is made.

KAFKALAB = .venv/bin/kafkalab
PY = .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help course setup test test-quick test-docker setup-test labs notebooks bench lock clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' Makefile

course: setup ## set everything up and open the course
	@$(KAFKALAB) lab

setup: ## set everything up, into .venv and the cache
	@PYTHON="$(PYTHON)" tools/setup.sh course
	@$(KAFKALAB) fetch
	@.venv/bin/jupyter trust notebooks/*.ipynb labs/*/*.ipynb solutions/*/*.ipynb >/dev/null # else stored pictures are not shown

setup-test:
	@PYTHON="$(PYTHON)" tools/setup.sh test

test: setup-test ## set everything up and run all tests
	@tools/test.sh all

test-quick: setup-test ## run the unit tests
	@tools/test.sh quick

test-docker: setup-test ## run notebooks, solutions and contract tests on Docker
	@tools/test.sh docker

labs: setup-test ## write labs/ anew from solutions/
	@$(PY) tools/make_labs.py

notebooks: setup-test ## run chapters and solutions, and store their outputs
	@$(KAFKALAB) fetch
	@$(KAFKALAB) run --backend local --save -j 2 notebooks/*.ipynb solutions/*/*.ipynb

bench: setup-test ## measure, and print the table of figures
	@$(KAFKALAB) fetch
	@$(PY) tools/bench.py

lock: setup-test ## write the locks anew from pyproject.toml
	@PATH="$(CURDIR)/.venv/bin:$$PATH" requirements/lock.sh
	@$(PY) tools/pins.py

clean: ## end what crashed runs left and remove .venv (the cache stays: kafkalab clean --cache)
	@if [ -x $(KAFKALAB) ]; then $(KAFKALAB) clean; fi
	@rm -rf .venv
