# Every target works from a fresh clone with Go, git and make; `make deps` installs the rest.

SHELL := bash
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Each module is checked as its users get it, whatever workspace stands around the clone.
export GOWORK := off

MODULES := $(sort $(patsubst %/,%,$(dir $(shell git ls-files --cached --others --exclude-standard 'go.mod' '*/go.mod'))))
ifeq ($(MODULES),)
$(error no modules found: this Makefile needs a git checkout)
endif
LIBRARIES := $(filter-out dev/tools,$(MODULES))

# Linters and their kin, at the versions of dev/tools/go.mod. They work on the module that they are run in.
TOOL := go tool -modfile=$(CURDIR)/dev/tools/go.mod
LINT := $(TOOL) golangci-lint

# A program with the race detector waits for a second before it exits, for races of goroutines that
# outlive the tests. A tenth is enough for the tests, of which each ends its goroutines.
export GORACE ?= atexit_sleep_ms=100

# The race detector needs a C compiler; look for it late, because `make deps` may install one.
RACE = $(shell command -v "$$(go env CC)" >/dev/null && echo -race)

BENCH ?= .
COUNT ?= 1
FUZZTIME ?= 10s
SOAKTIME ?= 10m
OPERATIONS ?= 20000000

# $(call each,modules,command): the command in the folder of each module; fails in the end if it failed in one.
each = @failed=0; for dir in $(1); do echo "-- $$dir"; (cd "$$dir" && $(2)) || failed=1; done; exit $$failed

.PHONY: help
help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

# $(call play,example): builds and runs an example. Nothing is shown while it is built, unless that fails or
# takes more than three seconds. With -exec=true, go run builds it into its cache and runs nothing.
play = @log=$$(mktemp) && trap 'rm -f "$$log"' EXIT && { go run -C examples -exec=true ./$(1) >"$$log" 2>&1 & build=$$!; \
	for _ in {1..30}; do sleep 0.1; kill -0 $$build 2>/dev/null || break; done; \
	if kill -0 $$build 2>/dev/null; then echo 'Building the demo. The first time, this takes a minute or two.'; fi; \
	wait $$build || { cat "$$log" >&2; exit 1; }; } && go run -C examples ./$(1)

.PHONY: demo
demo: ## Watch two shops, one of them with weir, lose their payment service
	$(call play,storefront)

.PHONY: demo-fleet
demo-fleet: ## Watch three processes share a limit, a breaker and an alert, if there is a redis-server
	$(call play,fleet)

.PHONY: demo-recording
demo-recording: ## Record the demo again, as docs/demo.svg
	@set -o pipefail; picture=$$(mktemp) && trap 'rm -f "$$picture"' EXIT && \
	go run -C examples ./storefront | go run -C dev/tools ./recording make demo >"$$picture" && cat "$$picture" >docs/demo.svg

# Two modules are tested at a time. The fleet waits for servers most of the time, so it starts first; the
# longest ones follow. Under the race detector tests take four times as long. Here it is for the modules that
# users import, the examples and the soak test; the workflow on GitHub uses it for every module.
# Tables for debuggers take a quarter of the time to link, and vet is a step of its own.
QUICKBUILD := -vet=off -ldflags=-w
GOTEST := go run -C dev/tools ./gotest -jobs=2 -first=fleet,.,exporters/prom,dev/tests,dev/proving -norace=dev/bench,dev/proving,dev/tests,dev/tools -- $(QUICKBUILD)

.PHONY: check
check: ## Check format, vet and lint what changed, and run the quick tests; installs nothing
	@.ci/steps format vet lint-changed test-short

.PHONY: test test-short
test: deps ## Test every module, those for users under the race detector
	$(if $(RACE),,@echo '**** NO RACE DETECTOR: there is no C compiler ****' >&2)
	@$(GOTEST) $(RACE) -shuffle=on -timeout=40m
test-short:
	@$(GOTEST) -short -timeout=5m

.PHONY: deps
deps: ## Install the programs that the tests use, such as Redis
	@.ci/deps

.PHONY: ci
ci: ## All that has to hold before a change lands
	@.ci/steps deps tidy-diff+format+actionlint+words lint+test-valkey vet vet-systems race test-long+consume+api+vuln test-386 examples soak-minute bench-guard proving-quick harm

.PHONY: race
race: deps
	$(if $(RACE),,@echo 'there is no C compiler, so no race detector' >&2; exit 1)
	@$(GOTEST) -race -shuffle=on -timeout=40m

.PHONY: test-valkey
test-valkey: ## Test the fleet on Valkey too, where it can be had; without the table of faults, which takes a minute
	@server=$$(.ci/valkey) && [ -z "$$server" ] || WEIR_REDIS_SERVER="$$server" go test -C fleet $(QUICKBUILD) -skip='^TestFaults$$' -timeout=5m ./...

.PHONY: test-long
test-long: ## Test the simulation with all seeds and guards
	@WEIR_SOAK=true go test -C dev/proving $(QUICKBUILD) -timeout=10m ./internal/sim

.PHONY: test-386
test-386: ## Test the core as on a 32-bit machine, where 64-bit atomics may be misaligned
	@export GOARCH=386 CGO_ENABLED=0; program=$$(mktemp) && trap 'rm -f "$$program"' EXIT && go build -o "$$program" cmd/test2json && \
	if "$$program" true 2>/dev/null; then go test $(QUICKBUILD) -timeout=5m ./...; \
	else echo '**** NOT TESTED: this machine does not run 386 programs ****' >&2; fi

.PHONY: vet vet-systems
vet: ## Vet every module
	$(call each,$(MODULES),go vet ./...)
vet-systems: ## Vet the modules for users as for a 32-bit machine, and the core as for macOS and Windows
	$(call each,$(filter-out dev/%,$(LIBRARIES)),GOARCH=386 CGO_ENABLED=0 go vet ./...)
	@for system in darwin/arm64 windows/amd64; do GOOS=$${system%/*} GOARCH=$${system#*/} CGO_ENABLED=0 go vet ./... || exit 1; done
	@cd weirconfig && GOOS=js GOARCH=wasm go build . # a program in a browser can read a config

# The ports of the first class: see go.dev/wiki/PortingPolicy. The standard library is compiled for each,
# which takes minutes, so the workflow on GitHub has a job per port.
PORTS ?= darwin/amd64 darwin/arm64 linux/386 linux/amd64 linux/arm linux/arm64 windows/386 windows/amd64
.PHONY: build-ports
build-ports: ## Build the modules for users for PORTS=linux/arm, or for all first-class ports
	@for port in $(PORTS); do for dir in $(filter-out dev/% examples,$(MODULES)); do echo "-- $$port $$dir"; \
		(cd "$$dir" && GOOS=$${port%/*} GOARCH=$${port#*/} CGO_ENABLED=0 go build ./...) || exit 1; done; done

.PHONY: lint
lint: ## Verify .golangci.yml and lint every module with it
	@$(LINT) config verify
	$(call each,$(MODULES),$(LINT) run --config=$(CURDIR)/.golangci.yml ./...)

.PHONY: lint-changed
lint-changed: ## Lint the packages that differ from main
	@go run -C dev/tools ./lintchanged

# Not in dev/tools/go.mod, because it needs a version of a YAML library that golangci-lint cannot use.
.PHONY: actionlint
actionlint: ## Check the workflows of GitHub Actions
	@go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

.PHONY: words
words: ## Fail where more places are hard to read than dev/tools/words/limit allows
	@go test -C dev/tools $(QUICKBUILD) ./words && go run -C dev/tools ./words ../..

.PHONY: format fmt
format: ## Fail where a file is not formatted
	@files=$$($(TOOL) gofumpt -l .) && if [ -n "$$files" ]; then echo "not formatted, run make fmt:"; echo "$$files"; exit 1; fi
fmt: ## Format every file and order its imports
	@$(LINT) fmt

.PHONY: tidy tidy-diff
tidy: ## Tidy every go.mod
	$(call each,$(MODULES),go mod tidy)
tidy-diff: ## Fail where a go.mod is not tidy
	$(call each,$(MODULES),go mod tidy -diff)

.PHONY: examples
examples: ## Build every example, and run the storefront and the fleet to their last lines
	@go build -C examples -o /dev/null ./...
	@set -o pipefail; go run -C examples ./storefront | go run -C dev/tools ./lastline \
		failed failed_weir sent sent_weir opened alerts
	@go run -C examples ./model
	@set -o pipefail; go run -C examples ./fleet -for 8s | go run -C dev/tools ./lastline \
		processes calls succeeded failed refused_open refused_limited breakers_opened_by_the_fleet breakers_closed \
		alerts_fired alerts_resolved

.PHONY: bench bench-quick bench-guard bench-results
bench: deps ## Compare with other libraries and the machine's floor; fails where a bound is missed
	@go run -C dev/bench . compare
bench-quick: ## The main rows of that, in about a minute
	@go run -C dev/bench . quick
bench-guard: ## Fail where a cost has doubled
	@go run -C dev/bench . guard
bench-results: deps ## Measure everything and write dev/bench/RESULTS.md
	@go run -C dev/bench . results

.PHONY: proving proving-quick
proving: ## Compare how well guards protect, in virtual time, and write docs/protection.md; 45 minutes
	@go run -C dev/proving . whole
proving-quick: ## The main rows of that, in about a minute; fails where a goal that was reached is lost
	@go run -C dev/proving . quick

# How long to search, and the seed of the worlds that the search begins with.
FOR ?= 10m
SEED ?= 1

.PHONY: harm harm-search harm-page
harm: ## Judge known worlds; fails where a guard breaks a promise that is not in dev/proving/harm/broken.txt
	@go run -C dev/proving ./cmd/harm -check harm -guards recommended,weir,host,queue
harm-search: ## Look for worlds in which a guard harms for FOR=10m from SEED=1, into dev/proving/found
	@mkdir -p dev/proving/found
	@go run -C dev/proving ./cmd/harm -for $(FOR) -seed $(SEED) -guards recommended,weir,host,queue -out found
harm-page: ## Judge 200 random worlds and the known ones, and write "Whom it harms" of docs/protection.md; ten minutes
	@go run -C dev/proving ./cmd/harm -worlds 200 -seed 2026 -check harm -page ../../docs/protection.md

.PHONY: benchmarks benchstat
benchmarks: ## Run the packages' own benchmarks: BENCH=regexp COUNT=10, kept with > bench-new.txt
	@for dir in $(LIBRARIES); do (cd "$$dir" && go test -run='^$$' -bench='$(BENCH)' -benchmem -count=$(COUNT) ./...) || exit 1; done
benchstat: ## Compare what two runs of make benchmarks printed: OLD=file NEW=file
	@$(TOOL) benchstat $(OLD) $(NEW)

.PHONY: fuzz
fuzz: ## Fuzz every fuzz test for FUZZTIME=10s
	$(call each,$(LIBRARIES),for pkg in $$(go list ./...); do \
		targets=$$(go test -list='^Fuzz' "$$pkg") || exit 1; \
		for target in $$(grep '^Fuzz' <<<"$$targets"); do \
			go test -run='^$$' -fuzz="^$$target$$" -fuzztime=$(FUZZTIME) "$$pkg" || exit 1; \
		done; done)

.PHONY: soak soak-random soak-tests soak-minute
soak: soak-random soak-tests ## Wear everything down for SOAKTIME=10m, under the race detector
	@go run -C dev/soak $(RACE) . -for $(SOAKTIME)
soak-random:
	@WEIR_RANDOM_OPERATIONS=$(OPERATIONS) go test -run='^TestEveryVerbOfEveryLimiterAgainstAnOracle$$' -timeout=3h ./limiter
soak-tests: # with their searches repeated more often
	@WEIR_SOAK=true go test $(RACE) -count=1 -timeout=3h ./...
	@WEIR_SOAK=true go test -C fleet $(RACE) -count=1 -timeout=3h -run='^TestFleetLimitersKeepThePromisesOfLimiters$$' .
	@WEIR_SOAK=true go test -C dev/soak $(RACE) -count=1 -timeout=3h ./linear
	@WEIR_SOAK=true go test -C weirconfig $(RACE) -count=1 -timeout=3h -run='^TestWholeFilesUnderLoad$$' .
soak-minute:
	@go run -C dev/soak $(RACE) . -for 1m

.PHONY: consume
consume: ## Show that the next release can be used from outside: release a copy, and build users of it
	@go run -C dev/tools ./consume

# V reaches the shell as a variable, so that no text in it is a command.
.PHONY: release release-check
release: ## Prepare a release after make ci: V=v0.1.0 makes the commit and the tags, and pushes nothing
	@go run -C dev/tools ./release -- "$$V"
release-check: ## Fail if the release V=v0.1.0 is not what make release makes
	@go run -C dev/tools ./release -check -- "$$V"

.PHONY: api
api: ## Say what of the API has changed since the last release, or API_BASE, so that users have to change too; fails if V=v0.1.1 must not have that
	@.ci/api "$$API_BASE" "$$V"

.PHONY: vuln
vuln: ## Look for known vulnerabilities, where the database can be reached
	@.ci/vuln $(LIBRARIES)
