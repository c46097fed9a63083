# make alone prints what there is to do. Everything that is built or cached here
# stays in bin/ and .cache/; what Go downloads and compiles stays in Go's caches.

GO      ?= go
GIT     := git -c safe.directory=*
VERSION ?= $(shell $(GIT) describe --tags --always --dirty 2>/dev/null || echo dev)

# Static binaries, the same wherever they are built. The version comes from the
# linker flag, so Go need not ask git for it.
BUILDFLAGS := -trimpath -buildvcs=false -ldflags '-X main.version=$(VERSION)'
export CGO_ENABLED := 0

LINT := GOLANGCI_LINT_CACHE=$(CURDIR)/.cache/golangci-lint $(GO) tool -modfile=tools/go.mod golangci-lint

# PACKAGES narrows test, cover and fuzz; TESTFLAGS are added to the
# flags of `go test`, as in `make test PACKAGES=./internal/lockdb TESTFLAGS=-v`.
PACKAGES  ?= ./...
TESTFLAGS ?=
# The race detector makes clusters of real processes on real clocks too slow to
# be fair to each other, and does not look into other processes anyway.
RACE_PACKAGES ?= $(shell $(GO) list ./... | grep -v -e /clustertest -e /bench)
FUZZTIME  ?= 10s

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## Print this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/observerd
	$(GO) build $(BUILDFLAGS) -o bin/observerd ./cmd/observerd

.PHONY: run
run: build ## Run config.yaml against a sample warehouse that really moves
	bin/observerd run --config config.yaml --with-sample

# The tests share one PostgreSQL cluster, which this command starts and removes.
.PHONY: pgtest
pgtest:
	@$(GO) build -o bin/pgtest ./internal/pgtest/cmd/pgtest

# One package at a time: each runs its own tests side by side, and clusters of
# real processes should not have to share the cores with others' too.
.PHONY: test
test: pgtest ## Run all tests, on SQLite and a throw-away PostgreSQL
	bin/pgtest $(GO) test -p 1 -timeout 15m $(TESTFLAGS) $(PACKAGES)

.PHONY: race
race: pgtest ## Run the tests of single packages under the race detector (needs a C compiler)
	@command -v $$($(GO) env CC) >/dev/null || { \
	  echo "make race: the race detector needs the C compiler $$($(GO) env CC), which is not in PATH;" >&2; \
	  echo "install it (Debian: apt-get install gcc libc6-dev) or name another one in CC" >&2; exit 1; }
	CGO_ENABLED=1 bin/pgtest $(GO) test -race -timeout 20m $(TESTFLAGS) $(RACE_PACKAGES)

.PHONY: cover
cover: pgtest ## Measure the coverage by all tests together
	@mkdir -p .cache
	bin/pgtest $(GO) test -timeout 15m -coverpkg=./... -coverprofile=.cache/cover.out $(TESTFLAGS) $(PACKAGES)
	$(GO) tool cover -func=.cache/cover.out | tail -n 1

.PHONY: bench
bench: pgtest ## Measure against the goals; BENCHFLAGS='-write docs/performance.md' keeps the figures
	@$(GO) build -trimpath -o bin/bench ./internal/bench
	bin/pgtest bin/bench $(BENCHFLAGS)

# Go fuzzes one target of one package at a time.
.PHONY: fuzz
fuzz: ## Fuzz each target for FUZZTIME (10s)
	@grep -rHo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sed 's|/[^/]*:func | |' | \
	while read -r package target; do \
	  echo "$$package $$target"; \
	  $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$package" </dev/null || exit 1; \
	done

.PHONY: fmt
fmt: ## Format the code
	$(LINT) fmt

.PHONY: lint
lint: ## Look for defects, broken import rules and unformatted code
	$(LINT) run

.PHONY: generate
generate: ## Write the generated files anew
	$(GO) generate ./...

.PHONY: verify
verify: ## Check that go.mod, tools/go.mod and generated files are up to date
	$(GO) mod tidy -diff
	$(GO) -C tools mod tidy -diff
	$(GO) mod verify
	@before=$$($(GIT) diff | $(GIT) hash-object --stdin); $(MAKE) --no-print-directory generate; \
	after=$$($(GIT) diff | $(GIT) hash-object --stdin); \
	[ "$$before" = "$$after" ] || { echo "make verify: generated files were stale; commit what make generate wrote" >&2; exit 1; }

.PHONY: ci
ci: ## Do what CI does
	.ci/run

# var/ is not ours to remove: it may hold somebody's events.
.PHONY: clean
clean: ## Remove what was built and cached here; var/ stays
	rm -rf bin .cache
