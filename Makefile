# make alone prints what there is to do. Everything that is built or cached here
# stays in bin/ and .cache/; what Go downloads and compiles stays in Go's caches.

GO      ?= go
GIT     := git -c safe.directory=*

# What a build is stamped with, from git unless it is given: where there is no
# git, the version is dev and the commit unknown. SOURCE_DATE_EPOCH is the commit's
# time in seconds, for whatever would take the clock's.
VERSION           := $(or $(VERSION),$(patsubst v%,%,$(shell $(GIT) describe --tags --always --dirty 2>/dev/null)),dev)
COMMIT            := $(or $(COMMIT),$(shell $(GIT) describe --always --abbrev=40 --exclude '*' --dirty=-modified 2>/dev/null))
COMMIT_DATE       := $(or $(COMMIT_DATE),$(shell TZ=UTC0 $(GIT) log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null))
SOURCE_DATE_EPOCH := $(or $(SOURCE_DATE_EPOCH),$(shell $(GIT) log -1 --format=%ct 2>/dev/null),0)

# Static binaries, the same wherever they are built. The linker flags say what Go
# would ask git for. They leave the debugger's tables out, a fifth of the
# binary; stacks and profiles do not need them.
LDFLAGS    := -s -w -X main.version=$(VERSION) -X main.revision=$(COMMIT) -X main.committed=$(COMMIT_DATE)
BUILDFLAGS := -trimpath -buildvcs=false -ldflags '$(LDFLAGS)'
export CGO_ENABLED := 0

# Without the path of the clone in them, packages compile once for all clones.
TEST_GOFLAGS := $(shell $(GO) env GOFLAGS) -trimpath
test race cover nightly test-kafka test-kube lint: export GOFLAGS := $(TEST_GOFLAGS)

LINT := GOLANGCI_LINT_CACHE=$(CURDIR)/.cache/golangci-lint $(GO) tool -modfile=$(CURDIR)/tools/go.mod golangci-lint

# PACKAGES narrows test, nightly and cover; TESTFLAGS are added to the
# flags of `go test`, as in `make test PACKAGES=./internal/lockdb TESTFLAGS=-v`.
PACKAGES  ?= ./...
TESTFLAGS ?=
# The suites are a module of their own, so that the program's lists none of their
# libraries. Packages of both are named by their folders; go_test runs the tests of both,
# of the program too when those of the suites fail, unless they were interrupted (130). The
# torture takes longest, and begins first:
# $(1) is the command before go, $(2) flags, $(3) the packages.
SUITES       := test/suite
of_suites     = $(if $(filter ./... ./test/...,$(1)),./torture ./...) $(patsubst ./$(SUITES)/%,./%,$(filter ./$(SUITES)/%,$(1)))
of_program    = $(filter-out ./$(SUITES)/%,$(1))
go_test       = failed=; \
  $(if $(strip $(call of_suites,$(3))),$(1) $(GO) -C $(SUITES) test $(2) $(TESTFLAGS) $(call of_suites,$(3)) || { failed=$$?; [ $$failed -ne 130 ] || exit 130; };) \
  $(if $(call of_program,$(3)),$(1) $(GO) test $(2) $(TESTFLAGS) $(call of_program,$(3)) || failed=1;) \
  [ -z "$$failed" ]
# make race looks at the packages in which nodes, sources and sinks work side by side.
# TestBalance… are left out: they count shares for minutes there, by code that other
# tests of schedule run. So are two contracts of Oracle's source, for which the
# emulator, in one goroutine, takes a minute there, the contest with Spring's locks,
# whose leases other tests of lockdb race for, and 200 callers of one lock on SQLite, which
# take two to five minutes there and the others' time. Tests of what roles, paths, encodings,
# types and other tables do to our statements share nothing between goroutines, and migrate, for
# which goose takes 4 MiB a file there. Nor do large chunks on SQLite, which took half of lockdb's time,
# nor stray timestamps, nor DATE beside TIMESTAMP in Oracle's contract. Nodes of app that stand beside others do so on PostgreSQL alone. Those of systemd that start nodes wait for half a
# minute, for programs that are built without the detector. Where INT_LOCK has EXPIRED_AFTER,
# statements have other text, and the same code runs them. These come last: the first that matches
# the beginning of a name decides.
RACE_PACKAGES ?= $(addprefix ./internal/,admin app lock/... lockdb/... observer/... relay schedule sink/... source/... systemd web wiring) ./locks/...
RACE_SQL_ONLY := ^Test(Decoy|NobodyElseRunsCode|TextsOfAnySession|TableOf.*IsRefused|OursNeedsNoMore|NothingHangsOn|EncodingOf|SweepsAndAccountsNeedTheRights|MigrationsBehind|StatementsAreAccepted|EachLogHasAnId|KeysOfEveryType|Stray|RelationsOfManyColumns|ErrorsWithholdValues)
RACE_PROCESS  := ^Test(ReadyOnlyWhenItPolls|ANodeThatIsSwitchedOff|WatchdogStops|Reload$$|ReloadGoesBack|ReloadWhile|StopDuringAReload|AReloadHidesNoLoop)
RACE_OF_ONE   := ^Test(NodesThatDefine|NodesWith|DisabledNode|LagOfARelay)/^sqlite$$|^TestContract$$/^DATE$$
RACE_SKIP     ?= $(RACE_SQL_ONLY)|$(RACE_PROCESS)|$(RACE_OF_ONE)|^TestManyTypesAtOneTick$$/sqlite|^TestManyObservedRows$$|./^2500$$/^sqlite$$|^TestBalance|^TestSpringAndOursExcludeEachOther$$|^TestOurOwnQueueEndsNoWait$$|^TestContract$$/^(extremes|normal_keys)|^TestContract$$/./^(extremes|normal_keys)|^TestContract/./polls:_(rows_without_a_timestamp_have_a_share|statements_end_among_equal_timestamps)|./^postgres_with_EXPIRED_AFTER$$|././^postgres_with_EXPIRED_AFTER$$
# SQLite's C, translated to Go, is five times slower under the detector and has no
# races of ours: it is left out. Its driver, which shares memory with us, is not. Regular
# expressions, which share nothing either, were a third of the time of lockdb.
RACE_GCFLAGS  := $(foreach package,modernc.org/sqlite/lib modernc.org/memory regexp,-gcflags=$(package)=-race=false)
FUZZTIME  ?= 10s

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## Print this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/observerd
	$(GO) build $(BUILDFLAGS) -o bin/observerd ./cmd/observerd

.PHONY: run
run: build ## Run config.yaml against a sample warehouse that really moves
	bin/observerd run --config config.yaml --with-sample

# The tests share one PostgreSQL cluster and one MariaDB server, which this command
# starts and removes.
.PHONY: pgtest
pgtest:
	@$(GO) build -o bin/pgtest ./test/kit/pgtest/cmd/pgtest

# Random tests begin with this seed, so that a run judges the change and not its
# luck; RAPID_SEED=0 draws one. rapid reads the variable, and so does simtest. What is
# to find something new draws one for all packages, unless it is given.
RAPID_SEED ?= 1
FRESH_SEED  = $(if $(filter file,$(origin RAPID_SEED)),$$(od -An -N4 -tu4 /dev/urandom | tr -d ' '),$(RAPID_SEED))
test race cover: export RAPID_SEED := $(RAPID_SEED)

# Two packages at a time, on any machine: ten tests of each may use one server.
.PHONY: test
test: pgtest ## Run all tests, on SQLite and throw-away servers of PostgreSQL and MariaDB
	@$(call go_test,bin/pgtest -memory,-p 2 -timeout 15m,$(PACKAGES))

.PHONY: race
race: pgtest ## Run the tests of RACE_PACKAGES under the race detector (needs a C compiler)
	@command -v $$($(GO) env CC) >/dev/null || { \
	  echo "make race: the race detector needs the C compiler $$($(GO) env CC), which is not in PATH;" >&2; \
	  echo "install it (Debian: apt-get install gcc libc6-dev) or name another one in CC" >&2; exit 1; }
	@$(call go_test,CGO_ENABLED=1 bin/pgtest -memory,-race $(RACE_GCFLAGS) -vet=off -p 2 -timeout 30m -skip '$(RACE_SKIP)',$(RACE_PACKAGES))

# It does not look into other processes, and makes clusters of them too slow to be fair.
.PHONY: race-all
race-all: RACE_PACKAGES = $(shell $(GO) list ./... | grep -v /kit/testbed) $(addprefix ./$(SUITES)/torture/,audit check cmd/... history pglog)
race-all: RACE_SKIP =
race-all: race ## Run the tests of all packages but clusters of processes under the race detector

# Each module writes a profile below its own folder. Packages of both are found from that
# of the suites.
.PHONY: cover
cover: pgtest ## Measure the coverage by all tests together
	@mkdir -p .cache $(SUITES)/.cache; rm -f .cache/cover.part $(SUITES)/.cache/cover.part
	@$(call go_test,bin/pgtest -memory,-p 2 -timeout 15m -coverpkg=github.com/observerd/observerd/... -coverprofile=.cache/cover.part,$(PACKAGES))
	@cat .cache/cover.part $(SUITES)/.cache/cover.part 2>/dev/null | awk 'NR == 1 || !/^mode:/' >.cache/cover.out
	$(GO) -C $(SUITES) tool cover -func=$(CURDIR)/.cache/cover.out | tail -n 1

.PHONY: bench
bench: pgtest ## Measure against the goals; BENCHFLAGS='-runs 5 -write docs/performance.md' keeps the figures
	@$(GO) -C $(SUITES) build -trimpath -ldflags '-X main.commit=$(COMMIT)' -o $(CURDIR)/bin/bench ./bench
	bin/pgtest bin/bench $(BENCHFLAGS)

# A figure of this checkout beside that of BASE, in turns, and beside its own noise. PAIRS
# says what is measured, as the flags of make bench do.
PAIRS       ?= -only locks,quiet,backlog,snapshot,file,idle-nodes -rows 200000 -rounds 1 -chunks= -loops=
PAIR_ROUNDS ?= 3
.PHONY: bench-pairs
bench-pairs: pgtest ## Measure this checkout and BASE=COMMIT in turns; PAIRS='-only sinks' says what
	@commit=$$(git rev-parse --verify --quiet '$(BASE)^{commit}') || { echo "make bench-pairs: BASE='$(BASE)' is not a commit; use BASE=main" >&2; exit 1; }; \
	rm -rf .cache/base && mkdir -p .cache/base && git archive $$commit | tar -x -C .cache/base; \
	for folder in . .cache/base; do \
	  $(GO) -C $$folder/$(SUITES) build -trimpath -o "$$(cd $$folder && pwd)/bin/bench" ./bench || exit; \
	done; \
	bin/pgtest bin/bench pairs -base .cache/base -rounds $(PAIR_ROUNDS) -- $(PAIRS)

# SEED=0 takes one from the clock. TORTUREFLAGS are further flags of the run, as
# `-ttl 60s`, or of the hunt for mutants, as `-only takes-repeats`.
SEED    ?= 0
MINUTES ?= 3
NODES   ?= 3
MUTANTS ?=

.PHONY: bin/torture
bin/torture:
	@$(GO) -C $(SUITES) build -trimpath -o $(CURDIR)/bin/torture ./torture/cmd/torture

.PHONY: torture
torture: bin/torture ## Run real nodes under faults and judge them: SEED, MINUTES, NODES; MUTANTS=1 removes safety steps
ifeq ($(MUTANTS),)
	@$(GO) build $(BUILDFLAGS) -tags failpoints -o bin/observerd-failpoints ./cmd/observerd
	@$(GO) -C $(SUITES) build -trimpath -tags failpoints -o $(CURDIR)/bin/holder ./torture/cmd/holder
	bin/torture run -seed $(SEED) -minutes $(MINUTES) -nodes $(NODES) -binary bin/observerd-failpoints -holder bin/holder $(TORTUREFLAGS)
else
	bin/torture mutants $(TORTUREFLAGS)
endif

# SINK is SQL, Webhook or Kafka, and empty for all of them.
.PHONY: torture-sinks
torture-sinks: pgtest ## Deliver to real servers under faults, and compare what they have with the log: SINK, SEED, MINUTES
	OBSERVERD_TORTURE_SEED=$(SEED) OBSERVERD_TORTURE_TIME=$(MINUTES)m \
	bin/pgtest $(GO) -C $(SUITES) test -tags nightly -count=1 -v -timeout 0 -run '$(SINK)UnderAllFaults' $(TESTFLAGS) ./torture/delivery

# Maven's downloads and all that is built stay in .cache. INTEROPFLAGS narrows it
# down, as in INTEROPFLAGS='-only spring7 -spring7 7.1.0-M2 -time 5m'.
.PHONY: interop-spring
interop-spring: ## Let Spring's real lock registry contend with Go nodes (needs a JDK and Maven)
	@$(GO) build -o bin/interop ./test/kit/springtest/cmd/interop
	bin/interop $(INTEROPFLAGS)

# Each round draws a seed and prints it. A failure prints the seed of its history:
# TESTFLAGS='-rapid.seed=…' runs that one again.
CHECKS ?= 5000

.PHONY: simulate
simulate: ## Run histories in simulated time for MINUTES, CHECKS of each kind a round
	@end=$$(($$(date +%s) + 60 * $(MINUTES))); \
	while RAPID_SEED=$(FRESH_SEED) RAPID_CHECKS=$(CHECKS) $(GO) test -count=1 -timeout 2h -v -run '^TestSimulated' \
	    ./internal/lock ./internal/schedule ./internal/relay ./internal/observer $(TESTFLAGS); do \
	  [ $$(date +%s) -lt $$end ] || exit 0; \
	done; exit 1

# Go fuzzes one target of one package at a time.
.PHONY: fuzz
fuzz: ## Fuzz each target for FUZZTIME (10s)
	@grep -rHo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sed 's|/[^/]*:func | |' | \
	while read -r package target; do \
	  echo "$$package $$target"; \
	  $(GO) -C "$$package" test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) . </dev/null || exit 1; \
	done

# All tests, and those behind the build tag nightly, which need minutes of real time,
# install packages into systems of their own, or run other people's servers. One
# package at a time: shares and takeovers are measured on the clock.
.PHONY: nightly
nightly: pgtest ## Run all tests and those that take too long for every day, random ones with a fresh seed
	@export RAPID_SEED=$(FRESH_SEED) RAPID_CHECKS=1000; echo "make nightly: RAPID_SEED=$$RAPID_SEED"; \
	$(call go_test,bin/pgtest,-tags nightly -count=1 -p 1 -timeout 60m,$(PACKAGES))

# Some of make nightly: consumers with a real broker, which Maven fetches into .cache.
.PHONY: test-kafka
test-kafka: pgtest ## Deliver to a real Kafka that is killed, and let consumers fail before it (needs a JDK and Maven)
	bin/pgtest $(GO) test -tags nightly -count=1 -timeout 20m $(TESTFLAGS) ./test/kit/kafkatest ./internal/sink/kafka
	bin/pgtest $(GO) -C $(SUITES) test -tags nightly -count=1 -timeout 60m -run 'Kafka|UnderAllFaults' $(TESTFLAGS) ./contend

# Some of make nightly: locks in Leases on a real API server, which is built into .cache.
.PHONY: test-kube
test-kube: pgtest ## Let locks and deploy/kubernetes pass on a real API server of Kubernetes (needs etcd, and minutes to build it once)
	bin/pgtest $(GO) test -tags nightly -count=1 -timeout 60m -run 'Kubernetes|TestServer$$' $(TESTFLAGS) ./test/kit/kubeapitest ./internal/lock/kubelease
	bin/pgtest $(GO) -C $(SUITES) test -tags nightly -count=1 -timeout 10m -run Kubernetes $(TESTFLAGS) ./deploy/kubernetes

# deploy/packages/nfpm.yaml says what they hold.
PACKAGE_ARCHS ?= amd64 arm64

.PHONY: packages
packages: build ## Build the deb and rpm of PACKAGE_ARCHS (amd64 arm64) in bin/packages
	deploy/packages/build $(PACKAGE_ARCHS)

# VULNDB=file:///… or https://… is another copy of the database.
.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities; VULNCHECK=optional goes on where the database does not answer
	@tools/vuln/check ./...
	@VULNREPORT=bin/vulncheck-suites.txt tools/vuln/check -C $(SUITES) ./...

# What .goreleaser.yaml, its hooks and the scripts take from here.
packages vulncheck snapshot release: export GO := $(GO)
packages snapshot release: export VERSION := $(VERSION)
packages snapshot release: export COMMIT := $(COMMIT)
packages snapshot release: export COMMIT_DATE := $(COMMIT_DATE)
packages snapshot release: export SOURCE_DATE_EPOCH := $(SOURCE_DATE_EPOCH)
packages: export BUILDFLAGS := $(BUILDFLAGS)
snapshot release: export LDFLAGS := $(LDFLAGS)

.PHONY: snapshot
snapshot: ## Build all of a release in bin/release, and publish nothing
	tools/release/run --snapshot

.PHONY: release
release: ## Build the release of a tag and publish it as a draft; see docs/release.md
	tools/release/run

.PHONY: fmt
fmt: ## Format the code
	$(LINT) fmt
	cd $(SUITES) && $(LINT) fmt

.PHONY: lint
lint: ## Look for defects, broken import rules and unformatted code
	$(LINT) run
	cd $(SUITES) && $(LINT) run

# CHECKOUTS='../before .' has a column for each. They are built, and bin/ is written in them.
CHECKOUTS ?= .

.PHONY: figures
figures: ## Count lines, functions and types of CHECKOUTS (.), and keep the last one below tools/figures/ceilings
	@$(GO) run tools/figures/main.go -ceilings tools/figures/ceilings $(CHECKOUTS)

.PHONY: generate
generate: ## Write the generated files anew
	$(GO) generate ./...
	$(GO) -C $(SUITES) generate ./...

# The modules of goreleaser and syft are too large for that: a nightly test looks at them.
.PHONY: verify
verify: ## Check that go.mod, the tools' and generated files are up to date
	$(GO) mod tidy -diff
	$(GO) -C $(SUITES) mod tidy -diff
	$(GO) -C test/kubeapi mod tidy -diff
	$(GO) -C tools mod tidy -diff
	$(GO) -C tools/nfpm mod tidy -diff
	$(GO) -C tools/vuln mod tidy -diff
	$(GO) mod verify
	@$(GIT) ls-files -z | xargs -0 du -k | awk '$$1 > 1024 { print "make verify: " $$2 " is larger than 1 MiB; was it built?"; bad = 1 } END { exit bad }' >&2
	@before=$$($(GIT) diff | $(GIT) hash-object --stdin); $(MAKE) --no-print-directory generate; \
	after=$$($(GIT) diff | $(GIT) hash-object --stdin); \
	[ "$$before" = "$$after" ] || { echo "make verify: generated files were stale; commit what make generate wrote" >&2; exit 1; }

.PHONY: ci
ci: ## Do what CI does
	.ci/run

# var/ is not ours to remove: it may hold somebody's events.
.PHONY: clean
clean: ## Remove what was built and cached here; var/ stays
	rm -rf bin .cache $(SUITES)/.cache
