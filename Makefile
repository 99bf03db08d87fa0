# Everything works on a machine with only Go, make and git (and a C compiler for
# the race detector). Tools are pinned here and built by the go command.
# `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

GOLANGCI_VERSION  := v2.15.0
BENCHSTAT_VERSION := v0.0.0-20260908200009-22c9c6c9d4da

GO        ?= go
BIN       := bin
GOLANGCI  := $(BIN)/golangci-lint-$(GOLANGCI_VERSION)
BENCHSTAT := $(GO) run golang.org/x/perf/cmd/benchstat@$(BENCHSTAT_VERSION)
TOOLS     := $(GO) run ./internal/tools

# What the targets run over; each can be set on the command line.
PKG       ?= ./...
RUN       ?= .
# Tests wait for the disk: twice as many run at a time as there are processors, packages and parallel tests of each.
ATATIME   ?= $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))
# make lint vets, with more than go test would.
TESTFLAGS ?= -vet=off -shuffle=on -timeout=20m -p=$(ATATIME) -parallel=$(ATATIME)
UNRACED   ?= tests/unraced.tsv
# Where the tests of make race have their files; empty: where all have them. RACEFLAGS=-short: a fifth of the random
# runs of rapid, of the simulation's seeds and of the histories, and of a store's model at one trust level.
SCRATCH   ?=
RACEFLAGS ?=
# A directory in memory with room for them, in which programs may run, if there is one.
MEMORY    ?= $(shell grep -qsE ' /dev/shm [^ ]+ [^ ]*noexec' /proc/mounts || df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 >= 4194304 { print $$6 }')
# What takes longest comes first, so that it is not alone in the end.
FIRST     := $(if $(filter ./...,$(PKG)),./storage/bolt/... ./tests/...)
DEMOFLAGS ?=
FUZZTIME ?= 4s
FUZZ      ?= .
# Where make fuzz-build leaves the programs; make fuzz with it takes them from there, as they are.
FUZZPROGRAMS ?=
SIMSEEDS  ?= 10000
SIMTIME   ?= 0
SIMSEED   ?= 0
HISTORIES ?= 2000
ATTEMPTS  ?= 200000
MUTANTS   ?= .
MUTANTS_SAMPLE ?= 20
MUTANTS_SEED   ?=
# The core, and the store's commit path.
MUTABLE   := internal/sequencer/*.go \
	storage/bolt/internal/logdb/*.go storage/bolt/internal/wal/*.go storage/bolt/internal/boltfile/meta.go storage/bolt/internal/boltfile/sync_*.go \
	storage/bolt/internal/format/witness.go storage/bolt/internal/files/origin.go storage/bolt/internal/statedb/*.go storage/bolt/internal/deque/*.go storage/bolt/internal/tail/*.go storage/bolt/internal/numbers/*.go \
	$(patsubst %,storage/bolt/%*.go,committer admit ahead append project flusher collect ends)
MUTATED   ?= $(sort $(foreach p,$(MUTABLE),$(or $(filter-out %_test.go,$(wildcard $p)),$(error MUTABLE: no file matches $p))))
SOAKTIME  ?= 1h
SOAKDISK  ?= 4294967296
SOAKOUT   ?= $(BIN)/soak.ndjson
PROOF     ?= .
# -allow-skips: do not fail for tests that need what this machine has not.
PROOFFLAGS ?=
BENCH     ?= .
BENCHPKG  ?= ./tests/... ./dumps
BENCHTIME ?= 1s
COUNT     ?= 6
COL       ?=
BASE      ?=
OUT       ?= $(BIN)/bench.txt
KILLS     ?= 200
IMAGES    ?= 2000
FAULTS    ?= 180
FLIPS     ?= 40
CRASH     ?= Crash|CleanChild|PowerLoss|FailingCalls|Unreadable|Flips|Damaged|Truncated|Foreign|Format|ReadOnly|Full|Rebuild|LockedByChild
APPENDFLAGS ?=
APPENDOUT   ?= $(BIN)/append.json
READERSFLAGS ?=
READERSOUT   ?= $(BIN)/readers.json
CLUSTERBENCHFLAGS ?=
MIDNIGHTFLAGS ?= -time 10s
MIDNIGHTOUT   ?= $(BIN)/midnight.json
PARTSROW    ?= ^partita$$
BENCHTAGS   ?= nopeers
EXAMPLES    ?= ./...

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-19s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## run the demo: the history of 20 real projects as an application (DEMOFLAGS=…)
	@$(GO) run ./cmd/demo $(DEMOFLAGS)

.PHONY: test
test: ## run all tests (PKG=./actors/... RUN=TestName)
	$(GO) test $(TESTFLAGS) -run '$(RUN)' $(FIRST) $(PKG)

# What one goroutine does alone has no race. So this leaves out the core and the formats of numbers, which core-check
# keeps without goroutines; and the tests of UNRACED, which are slow and show the race detector nothing that another
# one, which the reason names, does not: the tests of internal/tools check that list.
.PHONY: race
race: ## run what may have races under the race detector (needs a C compiler; UNRACED= or RUN=TestName leaves no test out)
	@what=$$($(GO) list $(FIRST) $(PKG) | grep -vE '/internal/(numfmt|sequencer)$$'); \
	skip=$$(awk -F '\t' '/^Test/ { print $$1 }' $(or $(if $(filter .,$(RUN)),$(UNRACED)),/dev/null) | paste -sd '|' -); set -x; \
	CGO_ENABLED=1 $(GO) test -race $(TESTFLAGS) $(RACEFLAGS) $(if $(SCRATCH),-exec "env TMPDIR=$(SCRATCH) TESTS_DISK=$${TMPDIR:-/tmp}") -run '$(RUN)' -skip "^($$skip)$$" $$what

.PHONY: lint
lint: $(GOLANGCI) core-check deps-check floors-check prose-check cross-check ## run the linters and the checks of imports and of Markdown (BENCHTAGS= those of bench/ with peers)
	$(GOLANGCI) config verify
	$(GOLANGCI) run $(PKG)
	cd bench && ../$(GOLANGCI) run --config ../.golangci.yml --build-tags '$(BENCHTAGS)' ./...

# What differs there has files of its own: CONTRIBUTING.md names them. .goreleaser.yaml releases both processors of each
# system. Linux has fields of other types on ARM; macOS and Windows have not, so one processor of each is enough.
.PHONY: cross-check
cross-check: ## type-check the program for Linux on ARM, macOS and Windows
	$(TOOLS) cross linux/arm64 darwin/arm64 windows/amd64

.PHONY: core-check
core-check: ## check that the core has no goroutine, channel or select
	$(TOOLS) core ./internal/numfmt ./internal/sequencer ./messages

# The tool partita can be a node of several: it links Raft. Programs that do not import cluster do not.
# A program that imports partition links protoactor-go, golang-lru, zap and what they need, and nothing else.
.PHONY: deps-check
deps-check: ## check which modules a program that imports partition links, those of tests/linked.txt, and that one on one node links no Raft
	GOOS=linux $(GO) list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}' ./partition | LC_ALL=C sort -u | diff tests/linked.txt -
	GOOS=linux $(GO) list -deps . ./dumps ./httpapi ./httpclient ./metrics ./partition ./spans ./storage/bolt ./cmd/demo | { ! grep -E 'hashicorp/raft|replog/raftlog|partita/cluster$$'; }

.PHONY: floors-check
floors-check: ## check that imports point down, those of tests too
	$(TOOLS) floors

.PHONY: prose-check
prose-check: ## check that no line of Markdown is longer than 120 characters
	$(TOOLS) prose

.PHONY: errors
errors: ## write docs/errors.md from the comments of the errors
	@mkdir -p $(BIN)
	@$(TOOLS) errors >$(BIN)/errors.md
	@mv $(BIN)/errors.md docs/errors.md

.PHONY: fmt
fmt: $(GOLANGCI) ## format the code
	$(GOLANGCI) fmt

.PHONY: fmt-check
fmt-check: $(GOLANGCI) ## fail if the code is not formatted
	$(GOLANGCI) fmt --diff

.PHONY: tidy-check
tidy-check: ## fail if go.mod or go.sum is not tidy, or a module is not what go.sum says
	$(GO) mod tidy -diff
	$(GO) mod verify

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME (FUZZ=regexp selects)
	$(TOOLS) fuzz -time $(FUZZTIME) -match '$(FUZZ)' -programs '$(FUZZPROGRAMS)'

.PHONY: fuzz-build
fuzz-build: ## only build what make fuzz runs (FUZZPROGRAMS=directory)
	$(TOOLS) fuzz -build -match '$(FUZZ)' -programs '$(FUZZPROGRAMS)'

# An empty cell of the matrix is a failure from 10,000 seeds on.
.PHONY: sim
sim: ## run the deterministic simulation (SIMSEEDS=n, SIMTIME=10m instead, SIMSEED=n replays one and prints its history)
	@mkdir -p $(BIN)
	@$(GO) test -c -o $(BIN)/sim.test ./tests/sim
	@$(BIN)/sim.test -test.run '^TestSimulation$$' -test.timeout 0 -sim.matrix -sim.seeds $(SIMSEEDS) -sim.time $(SIMTIME) -sim.seed $(SIMSEED)

# The names of the histories are left out: there is one for each.
.PHONY: linear
linear: ## check histories of concurrent clients with porcupine (HISTORIES=n, ATTEMPTS=n of the long one)
	LINEAR_HISTORIES=$(HISTORIES) LINEAR_ATTEMPTS=$(ATTEMPTS) $(GO) test -count=1 -v -timeout 0 ./tests/linear | { grep -Ev '^( *=== RUN| +--- PASS)' || true; }

# Each is a test: a wrong number ends it with 1. The clients and the nodes are on one machine.
CLUSTERFLAGS ?=
.PHONY: cluster
cluster: ## start three nodes on loopback, load them, kill the owner, bring it back, and say what happened (CLUSTERFLAGS='CLUSTER_KILLS=5 CLUSTER_WRITERS=64 CLUSTER_SHARDS=3')
	@mkdir -p $(BIN)
	@$(GO) test -c -o $(BIN)/cluster.test ./tests/cluster
	@env CLUSTER_SAY=1 CLUSTER_FAILOVER_MS=500 CLUSTER_WRITERS=32 CLUSTER_APPENDS=100 CLUSTER_KILLS=1 $(CLUSTERFLAGS) \
		$(BIN)/cluster.test -test.timeout 1h -test.run '^TestCluster$$'

.PHONY: cluster-faults
cluster-faults: ## kill, pause and restart nodes, and cut their links, under load; then look what is there (FAULTS=n; CLUSTERFLAGS)
	@mkdir -p $(BIN)
	@$(GO) test -c -o $(BIN)/cluster.test ./tests/cluster
	@env CLUSTER_SAY=1 CLUSTER_FAILOVER_MS=500 CLUSTER_WRITERS=32 FAULTS=$(if $(filter file,$(origin FAULTS)),40,$(FAULTS)) $(CLUSTERFLAGS) \
		$(BIN)/cluster.test -test.timeout 0 -test.run '^TestClusterFaults$$'

# What is not there is skipped, and said so: strace, mount, mkfs.ext4.
.PHONY: crash
crash: ## kill processes, cut the power, fail the disk and flip bits of their files (KILLS, IMAGES, FAULTS, FLIPS, CRASH=regexp; all output is in bin/crash.txt)
	@mkdir -p $(BIN)
	@CRASH_KILLS=$(KILLS) POWER_IMAGES=$(IMAGES) CALL_FAULTS=$(FAULTS) FLIPS=$(FLIPS) \
		$(GO) test -count=1 -timeout=2h -v -run '$(CRASH)' ./tests >$(BIN)/crash.txt 2>&1 \
		|| { grep -vE 'first Start|appends unanswered|=== RUN' $(BIN)/crash.txt | tail -n 200; exit 1; }
	@grep -hoE '(crash|exchanged|subscriptions|power|faults|unreadable|flips|truncated|full): .*=.*|--- SKIP.*|.* (apt-get install|mounted here|made here).*|^ok .*' $(BIN)/crash.txt

# What the tests cannot notice is excused in tests/mutants/equivalent.tsv, with the reason.
# Nothing is written into the checkout, so that a run can be interrupted.
.PHONY: mutants
mutants: mutants-listed mutants-small ## plant faults: each listed one (MUTANTS=regexp), and MUTANTS_SAMPLE small changes (0: all; MUTANTS_SEED, MUTATED=files)

.PHONY: mutants-listed
mutants-listed:
	$(TOOLS) mutants -match '$(MUTANTS)' tests/mutants/*.txt

.PHONY: mutants-small
mutants-small:
	$(TOOLS) mutate -sample $(MUTANTS_SAMPLE) $(if $(MUTANTS_SEED),-seed $(MUTANTS_SEED)) -excused tests/mutants/equivalent.tsv $(MUTATED)

# The stores are on the disk of the checkout. One is checked, removed and followed by
# another when its files are as large as SOAKDISK.
.PHONY: soak
soak: ## full load with undeployments, restarts and faults; what may not grow is judged (SOAKTIME=1h, SOAKDISK=bytes)
	@mkdir -p $(BIN)/soak
	@SOAK_TIME=$(SOAKTIME) SOAK_DISK=$(SOAKDISK) SOAK_DIR=$(CURDIR)/$(BIN)/soak SOAK_OUT=$(CURDIR)/$(SOAKOUT) \
		$(GO) test -count=1 -v -timeout 0 -run '^TestSoak$$' ./tests/soak

.PHONY: soak-plot
soak-plot: bench-build ## draw docs/soak.svg from what soak wrote (SOAKOUT)
	$(BIN)/bench soak-plot <$(SOAKOUT) >$(BIN)/soak.svg
	@mv $(BIN)/soak.svg docs/soak.svg

.PHONY: proof
proof: ## short versions of all that looks for faults, in ten minutes: one line each, details in bin/proof (PROOF=regexp, PROOFFLAGS=-allow-skips)
	@$(TOOLS) proof -match '$(PROOF)' -out $(BIN)/proof $(PROOFFLAGS)

.PHONY: bench
bench: ## run the benchmarks and summarize them (BENCH, COUNT, BENCHTIME; COL=/key side by side; BASE=old.txt compares)
	@mkdir -p $(dir $(OUT))
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -count $(COUNT) -benchmem -timeout 0 $(BENCHPKG) | tee $(OUT)
	$(BENCHSTAT) $(if $(COL),-col '$(COL)') $(BASE) $(OUT)
	$(TOOLS) bars <$(OUT)

# The comparison is a module of its own: what it needs is no business of those
# who use the library. Its directory is on the disk of the checkout.
.PHONY: bench-build
bench-build:
	@mkdir -p $(BIN)
	@$(GO) build -C bench -o $(CURDIR)/$(BIN)/bench .

.PHONY: bench-append
bench-append: bench-build ## compare durable appends with the bare disk and other stores, with a verdict for each bar (APPENDFLAGS='-time 5s -repeat 3')
	$(BIN)/bench -dir $(BIN) -json $(APPENDFLAGS) | tee $(APPENDOUT) | $(BIN)/bench table

.PHONY: bench-readers
bench-readers: bench-build ## count what readers skip, see twice or out of order, and how late they are: partita and PostgreSQL (READERSFLAGS='-time 10s')
	$(BIN)/bench readers -dir $(BIN) -json $(READERSFLAGS) | tee $(READERSOUT) | $(BIN)/bench table

.PHONY: bench-midnight
bench-midnight: bench-build ## count numbers that are doubled or missing where they begin anew each day: partita and PostgreSQL (MIDNIGHTFLAGS='-time 10s')
	$(BIN)/bench midnight -dir $(BIN) -json $(MIDNIGHTFLAGS) | tee $(MIDNIGHTOUT) | $(BIN)/bench table

# What is compared is measured in turn. It takes about twelve minutes.
.PHONY: bench-cluster
bench-cluster: bench-build ## measure three nodes on this machine beside one, NATS JetStream and etcd, with a verdict for each bar (CLUSTERBENCHFLAGS='-steady 10m', '-only etcd')
	$(BIN)/bench cluster -dir $(BIN) $(CLUSTERBENCHFLAGS) | tee $(BIN)/cluster.txt

.PHONY: bench-plot
bench-plot: bench-build ## draw docs/performance.svg from what bench-append wrote (APPENDOUT)
	$(BIN)/bench plot <$(APPENDOUT) >$(BIN)/performance.svg
	@mv $(BIN)/performance.svg docs/performance.svg

.PHONY: bench-parts
bench-parts: bench-build ## show where the time of an append goes, by a CPU profile (PARTSROW=regexp, APPENDFLAGS)
	@rm -rf $(BIN)/parts; mkdir -p $(BIN)/parts
	$(BIN)/bench -dir $(BIN) $(APPENDFLAGS) -rows '$(PARTSROW)' -cpuprofile $(BIN)/parts
	$(GO) tool pprof -top -cum -nodecount=60 $(BIN)/parts/*.pprof

.PHONY: bench-peers-install
bench-peers-install: ## install what bench-append and bench-readers need beyond Go and a C compiler: a PostgreSQL server (Debian)
	@if command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; then \
		echo 'a PostgreSQL server is installed'; \
	else \
		root=; [ "$$(id -u)" = 0 ] || root='sudo -n'; \
		$$root apt-get update -qq; \
		DEBIAN_FRONTEND=noninteractive $$root apt-get install -y -qq --no-install-recommends postgresql; \
	fi

.PHONY: bench-check
bench-check: ## check and test the module of bench-append and bench-readers, without peers (BENCHTAGS= with those that need no installation)
	$(GO) mod tidy -C bench -diff
	$(GO) test -C bench -tags '$(BENCHTAGS)' $(TESTFLAGS) ./...

# A module of its own, as the comparison is. NATS takes a minute to compile: make ci leaves it out.
.PHONY: examples-check
examples-check: ## check and test the examples in Go (EXAMPLES=./invoicing those without peers)
	$(GO) mod tidy -C examples -diff
	$(GO) test -C examples $(TESTFLAGS) $(EXAMPLES)

.PHONY: smoke
smoke: ## run the demo as a script would, as text and as JSON
	@mkdir -p $(BIN)
	$(GO) build -o $(BIN)/demo ./cmd/demo
	$(BIN)/demo $(DEMOFLAGS) </dev/null >$(BIN)/smoke.txt
	$(TOOLS) plain <$(BIN)/smoke.txt
	$(BIN)/demo --json $(DEMOFLAGS) </dev/null >$(BIN)/smoke.json
	$(TOOLS) json <$(BIN)/smoke.json

# Two checks at a time: what computes gives way to tests (nice), by so much that both sides end together. What stands
# behind a colon comes first. Fuzz targets are given time, not work: nothing runs beside them, and nobody waits
# for the disk. The disk is met by make test. Alone, make race has its files on the disk, and make race and make fuzz
# do more. Nobody debugs these programs: without DWARF they take a tenth less to compile.
CHECKS := $(addprefix ci-,fmt-check tidy-check lint bench-check examples-check smoke fuzz-build test race fuzz)

# What the last lines of a failure say: where the tests stood that ran when the time was over, and which tests failed or
# ran then.
STOOD = '^[[:space:]]+/[^ ]*_test[.]go:[0-9]+ [+]0x'
TOLD  = '^ *--- FAIL: |^panic: |^fatal error: |^WARNING: DATA RACE|^[[:space:]]+Test[^ ]* [(][0-9.hms]+[)]$$'

CI_race = SCRATCH=$(MEMORY) RACEFLAGS=-short
CI_examples-check = EXAMPLES=./invoicing
CI_fuzz-build = FUZZPROGRAMS=$(BIN)/ci/fuzz
CI_fuzz = FUZZTIME=1s $(CI_fuzz-build) $(if $(MEMORY),TMPDIR=$(MEMORY))

ci: export GOFLAGS += -gcflags=all=-dwarf=false
ci-tidy-check: ci-fmt-check
ci-lint: ci-tidy-check
ci-bench-check: ci-lint
ci-examples-check: ci-bench-check
ci-smoke: ci-examples-check
ci-fuzz-build: ci-smoke
ci-race: ci-test
ci-fuzz: ci-race ci-fuzz-build

.PHONY: $(CHECKS)
$(CHECKS): ci-%:
	@out=$(BIN)/ci/$*.txt; started=$$SECONDS; printf '\n=== make $*\n' >$$out; \
	if $(if $(filter test race,$*),,nice -n 4) $(MAKE) $* $(CI_$*) >>$$out 2>&1; then end=ok; else end=FAILED; fi; \
	printf '=== make $*: %s, %d s\n' $$end $$((SECONDS - started)) >>$$out; \
	cat $$out; [ $$end = ok ]

.PHONY: ci
ci: ## all checks, some beside each other: fmt-check tidy-check lint bench-check examples-check smoke fuzz-build, test race, fuzz (bin/ci has the output)
	@rm -rf $(BIN)/ci; mkdir -p $(BIN)/ci; end=ok; \
	$(MAKE) -j2 $(CHECKS) || end=FAILED; \
	printf '\n'; if [ $$end != ok ]; then for lines in $(STOOD) $(TOLD); do \
		awk -v lines="$$lines" 'FNR == 1 { n = 0 } $$0 ~ lines && !seen[$$0]++ && n++ < 25' $(BIN)/ci/*.txt; \
	done; fi; \
	grep -h '^=== make [a-z-]*: ' $(BIN)/ci/*.txt; \
	printf '=== make ci: %s, %d s\n' $$end $$SECONDS; [ $$end = ok ]

.PHONY: clean
clean: ## remove what the other targets made (tools too)
	rm -rf $(BIN) coverage.out

# The version is part of the name: a new one is installed beside the old one.
$(GOLANGCI):
	@echo 'building golangci-lint $(GOLANGCI_VERSION), once; this takes a minute or two'
	@mkdir -p $(BIN)/install
	GOBIN=$(CURDIR)/$(BIN)/install $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@mv $(BIN)/install/golangci-lint $@
	@rmdir $(BIN)/install
