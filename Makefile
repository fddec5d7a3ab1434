# Two targets do everything on a fresh machine: `make demo` shows the service, `make test` passes the tests.
CARGO ?= cargo
# A private PostgreSQL around one command; `--` twice: the first is cargo's.
WITH_POSTGRES = $(CARGO) run --quiet -p local-postgres --bin with-postgres -- --

.PHONY: help build demo test bench fuzz check postgres pgbouncer python sqlx sqlx-check buf proto-release deny clean

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

build: ## Build target/release/sudoku-batch
	$(CARGO) build --release --locked --bin sudoku-batch

demo: postgres ## Run the main job: private PostgreSQL, server, two workers, a bundled batch
	$(CARGO) run --release --locked --bin sudoku-batch -- demo

test: postgres pgbouncer python ## Run every test on a private PostgreSQL that is started and stopped for it
	$(CARGO) build --locked --workspace --all-targets
	$(WITH_POSTGRES) $(CARGO) test --locked --workspace

bench: ## Measure the solver on generated puzzles, by kind and by width
	$(CARGO) bench --locked -p solver

# Instrumentation takes a nightly toolchain. FUZZ=parse for the other target, FUZZ_SECONDS for how long.
FUZZ ?= answer
FUZZ_SECONDS ?= 600
fuzz: ## Feed the solver made-up batches for ten minutes; needs cargo-fuzz and a nightly toolchain
	cd crates/solver && $(CARGO) +nightly fuzz run $(FUZZ) -- -max_total_time=$(FUZZ_SECONDS) -max_len=3300 -len_control=0

check: ## Run what CI runs
	.ci/run

postgres: ## Install PostgreSQL's programs if there are none
	@.ci/ensure-postgres

# Without it the tests that need it fail by their names, and all others run.
pgbouncer: ## Install PgBouncer's program if there is none, for the tests behind a pooler
	-@.ci/ensure-pgbouncer

python: ## Make target/python, where the Python client runs: its libraries and generated stubs
	@.ci/ensure-python

sqlx: postgres ## Check all SQL against a real PostgreSQL and write .sqlx anew
	$(WITH_POSTGRES) .ci/sqlx .sqlx

sqlx-check: postgres ## Check that .sqlx is what the SQL in the code says
	$(WITH_POSTGRES) .ci/sqlx --check

buf: ## Lint the proto files, and check that clients of the last release are still understood
	.ci/buf lint proto
	.ci/proto-breaking

proto-release: ## Keep the proto files as those of the version in Cargo.toml, for a release
	.ci/proto-release

deny: ## Check the licences, bans and sources of the dependencies
	.ci/deny

clean: ## Remove everything that was built
	$(CARGO) clean
