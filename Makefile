# Type `make` to see what there is. PYTHON, PG_CONFIG, PGRECALL_PG and PGRECALL_DSN may be set.

PYTHON    ?= python3
PG_CONFIG ?= pg_config

VENV      := .venv
BIN       := $(VENV)/bin
INSTALLED := $(VENV)/.installed
DEVELOPED := $(VENV)/.developed
LOG       := $(VENV)/install.log
ALL       := 'pydriver[all,eval,sentence-transformers,dev]'
TORCH     := torch==2.13.0
EXTENSION := pydriver/pgrecall/extension
BUILT     := $(EXTENSION)/pgrecall.control
WEIGHTS   := pydriver/pgrecall/minilm/weights

# The suite runs on each, one after the other; on the server of PGRECALL_DSN alone where that is set.
POSTGRES  := $(if $(PGRECALL_DSN),given,$(or $(PGRECALL_PG),18 16))
STATED     = $(shell sed -n 's/.*= "\(.*\)"/\1/p' pydriver/pgrecall/_version.py)
ROUTES    := extension psql driver
export PIP_DISABLE_PIP_VERSION_CHECK := 1
PYTEST    := $(BIN)/python -m pytest
# A process for each core, each with a server of its own; a file's tests stay together.
PARALLEL  := -n logical --dist loadfile

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-fast test-faults test-all-routes test-adapters check lint readme generate build install bench-smoke bench bench-peers release freeze release-check site dist deb checksums pgxn all clean lock locked sbom audit

help: ## Print what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(INSTALLED) $(BUILT) ## Fill a bank on an embedded server and ask it ten questions
	@$(BIN)/pgrecall demo

test: $(DEVELOPED) $(BUILT) ## Run the tests on PostgreSQL 18 and 16, or on PGRECALL_DSN
	@for version in $(POSTGRES); do \
	  echo "== tests on PostgreSQL: $$version"; \
	  PGRECALL_PG=$$version $(PYTEST) $(PARALLEL) || exit 1; \
	done

test-fast: $(DEVELOPED) $(BUILT) ## Run two cases of each test that is quick, on PostgreSQL 18: for work in between
	@PGRECALL_PG=$(firstword $(POSTGRES)) $(PYTEST) -q --fast $(PARALLEL)

test-faults: $(DEVELOPED) $(BUILT) ## Kill the server's processes in 100 rounds; use a bank for a month in ten minutes
	@for version in $(POSTGRES); do \
	  echo "== faults on PostgreSQL: $$version"; \
	  PGRECALL_PG=$$version PGRECALL_FAULT_ROUNDS=$${PGRECALL_FAULT_ROUNDS:-25} \
	    PGRECALL_SOAK_MINUTES=$${PGRECALL_SOAK_MINUTES:-10} \
	    $(PYTEST) -s tests/faults || exit 1; \
	done

test-all-routes: $(DEVELOPED) $(BUILT) ## Run the tests once for each way to install
	@for route in $(ROUTES); do \
	  echo "== tests with pgrecall installed by: $$route"; \
	  PGRECALL_PG=$(firstword $(POSTGRES)) $(PYTEST) $(PARALLEL) --route $$route || exit 1; \
	done

test-adapters: $(BUILT) ## Test each adapter with its library, newest and oldest, in environments of their own
	@$(PYTHON) tests/adapters/environments.py

check: lint test test-all-routes bench-smoke ## Run everything that must pass before a push

lint: $(DEVELOPED) $(BUILT) ## Check formats, types and the house rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(PYTEST) -q tests/house/test_house_rules.py

readme: $(DEVELOPED) $(BUILT) ## Write sql/README.md from the comments in sql/, bench/README.md from bench/results/
	@PYTHONPATH=tests:. $(BIN)/python tests/house/readme.py
	@$(BIN)/python -m bench.report

generate: $(DEVELOPED) $(BUILT) ## Write client.py, options.py and the graph of the embedder
	@$(BIN)/python pydriver/generate.py
	@$(BIN)/python pydriver/embedder_graph.py

site: $(DEVELOPED) $(BUILT) ## Build the site into pydriver/dist/site, without a network
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build -q -f pydriver/site/mkdocs.yml

all: build

build: $(BUILT) ## Assemble the SQL scripts into pydriver/pgrecall/extension

install: $(BUILT) ## Copy the extension to the server that PG_CONFIG belongs to
	install -d "$(DESTDIR)$$($(PG_CONFIG) --sharedir)/extension"
	install -m 644 $(BUILT) $(EXTENSION)/pgrecall--*.sql "$(DESTDIR)$$($(PG_CONFIG) --sharedir)/extension/"

lock: $(DEVELOPED) ## Write versions and hashes of what the tests run with to tests/house/requirements.lock
	@$(BIN)/python tests/house/supply.py lock

locked: ## Set up .venv with the packages of the lock file, each checked by its hash
	@mkdir -p $(VENV); : >$(LOG)
	@$(call step,virtual environment in $(VENV),$(PYTHON) -m venv $(VENV))
	@$(call step,torch,$(BIN)/python -m pip install $(TORCH))
	@$(call step,the packages of the lock,$(BIN)/python -m pip install --no-deps --only-binary :all: --require-hashes -r tests/house/requirements.lock)
	@$(call step,pgrecall,$(BIN)/python -m pip install --no-deps --no-build-isolation -e pydriver)
	@touch $(INSTALLED) $(DEVELOPED)

sbom: $(DEVELOPED) ## Write the bill of materials to pydriver/dist/pgrecall.cdx.json
	@$(BIN)/python tests/house/supply.py sbom

audit: $(DEVELOPED) ## Look the packages of the lock file up in the database of vulnerabilities
	@$(BIN)/python tests/house/supply.py audit

bench-smoke: $(DEVELOPED) $(BUILT) ## Run every benchmark on little data, under a minute each
	@$(call run_benchmarks,--smoke)

bench: $(DEVELOPED) $(BUILT) ## Run every benchmark in full, and write bench/README.md
	@$(call run_benchmarks,--full)
	@$(BIN)/python -m bench.report

bench-peers: $(DEVELOPED) $(BUILT) ## Measure pgrecall beside its peers: make bench-peers ARGS='--smoke'
	@$(BIN)/python -m bench.peers.peers $(ARGS)
	@$(BIN)/python -m bench.report

release: $(DEVELOPED) ## Check everything and freeze a release: make release VERSION=1.2.3
	@test -n "$(VERSION)" || { echo "Say which: make release VERSION=1.2.3" >&2; exit 2; }
	$(PYTHON) -I pydriver/pgrecall/server/build.py --set-version $(VERSION)
	$(MAKE) check
	$(MAKE) freeze

freeze: ## Only freeze what was checked already: make freeze VERSION=1.2.3
	@test -n "$(VERSION)" || { echo "Say which: make freeze VERSION=1.2.3" >&2; exit 2; }
	$(PYTHON) -I pydriver/pgrecall/server/build.py --set-version $(VERSION) --release $(VERSION)
	@echo "Now commit migrations/ and the version, tag the commit v$(VERSION), and run make release-check."

dist: $(DEVELOPED) $(BUILT) ## Build the driver and the package of the models, sdist and wheel, into pydriver/dist
	@$(BIN)/python pydriver/dist.py driver
	@$(BIN)/python pydriver/dist.py models

deb: $(DEVELOPED) $(BUILT) ## Build a Debian package of the extension for each version of PostgreSQL
	@$(BIN)/python pydriver/dist.py deb

checksums: $(DEVELOPED) ## Write the checksums of pydriver/dist
	@$(BIN)/python pydriver/dist.py checksums

release-check: $(DEVELOPED) $(BUILT) ## Build and check all that a release consists of, and print one table
	@$(BIN)/python pydriver/dist.py check

pgxn: ## Write the archive for PGXN into pydriver/dist
	@mkdir -p pydriver/dist
	git archive --format=zip --prefix=pgrecall-$(STATED)/ --add-file=migrations/META.json \
	  --output=pydriver/dist/pgrecall-$(STATED).zip HEAD

clean: ## Remove everything that make made, the virtual environment too
	rm -rf $(VENV) $(EXTENSION) $(WEIGHTS) pydriver/dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find pydriver tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

# What the demo needs; the weights of the embedder come with the build.
$(INSTALLED): pydriver/pyproject.toml pydriver/hatch_build.py
	@mkdir -p $(VENV); : >$(LOG)
	@$(call step,virtual environment in $(VENV); the log is $(LOG),$(PYTHON) -m venv $(VENV))
	@$(call step,pgrecall with the models that it runs,$(BIN)/python -m pip install -e 'pydriver[all]')
	@touch $@

# What the tests need as well. torch goes first and alone, for its version: where the package index
# has a CPU build of it, that is the one.
$(DEVELOPED): $(INSTALLED)
	@$(call step,torch for the tests; the largest download,$(BIN)/python -m pip install $(TORCH))
	@$(call step,sentence-transformers and what tests need,$(BIN)/python -m pip install -e $(ALL))
	@touch $@

# Needs Python alone, no virtual environment: make install runs on database servers.
SOURCES := sql migrations sql/order.txt $(wildcard sql/*/*.sql migrations/*.sql migrations/frame/*.sql) \
           pydriver/pgrecall/server/build.py pydriver/pgrecall/_version.py
$(BUILT): $(SOURCES)
	@$(PYTHON) -I pydriver/pgrecall/server/build.py

# A line for the reader, the rest for the log; its end where the step fails.
define step
echo "== $(1)"; $(2) >>$(LOG) 2>&1 || { \
  echo "failed; the end of $(LOG):" >&2; tail -n 20 $(LOG) >&2; exit 1; }
endef

define run_benchmarks
for file in $$(grep -l '__main__' bench/*/*.py | grep -vE '^bench/(training|peers)/'); do \
  echo "== $$file $(1)"; \
  $(BIN)/python -m $$(echo $${file%.py} | tr / .) $(1) || exit 1; \
done
endef
