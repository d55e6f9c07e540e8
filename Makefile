# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# The environments are made by tests/tools/env.py in a cache folder outside of the checkout.
ENV := python3 tests/tools/env.py
PYTHON = $$($(ENV) bin)/python
IN_ENV = PATH="$$($(ENV) bin):$$PATH" PYTHONPATH="$$($(ENV) tree)" ANSIBLE_COLLECTIONS_PATH="$$($(ENV) tree)"

.DEFAULT_GOAL := help
.PHONY: help demo test test-all bench lab-test docs env deps build release clean

help: ## Show what can be made
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

demo: ## Run the main job: from an inventory to verified rails, on an embedded lab
	@python3 tests/demo/demo.py

test: ## Run what finds most in the least time (ten minutes); CHECK="unit kernel": these checks; ONLY=tests/unit/plugins/filter: one folder or file
	@$(if $(ONLY),$(IN_ENV) $(PYTHON) -m pytest -q $(ONLY),python3 tests/tools/check.py $(CHECK))

test-all: ## Run all other tests, linters and sanity (half an hour); with `make test` it is what CI runs
	@python3 tests/tools/check.py --rest

bench: ## Measure all rows of docs/project/performance.md on a quiet machine, and write it (root; half an hour); BENCH=host prints some
	@$(IN_ENV) $(PYTHON) tests/benchmark $(BENCH)

lab-test: ## The full matrix of guests, into the test evidence, and the tests on a pristine machine (root; some hours; resumes)
	@$(IN_ENV) $(PYTHON) tests/lab/matrix.py
	@python3 tests/tools/check.py long bare-tests

docs: ## Build the documentation site into dist/site
	@python3 tests/docs/site.py

env: ## Make the development environment and print its folder
	@$(ENV) bin

deps: ## Install the Debian packages that demo and tests can use (root)
	@python3 tests/tools/packages.py install

build: ## Build the collection's tarball into dist/; REPOSITORY=https://... links README's pages there
	@python3 tests/tools/build.py $(REPOSITORY)

release: build ## Build it, and put an SBOM and checksums beside it; nothing is published
	@python3 tests/tools/release.py

clean: ## Remove what was built in the checkout (the cache stays: `tests/tools/env.py cache` prints it)
	rm -rf dist plan .ansible .pytest_cache .mypy_cache .ruff_cache .hypothesis tests/output
