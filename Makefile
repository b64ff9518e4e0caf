# sallyport: `make` lists what can be made. Everything installs what it needs and says so.

GO       ?= go
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS   = -s -w -X sallyport/internal/door/api.build=$(VERSION)
# Notes for a debugger are a fifth of the work of compiling, and stripped from what is linked here.
BARE      = -gcflags=all=-dwarf=false
STATIC    = CGO_ENABLED=0 $(COMPILES) $(GO) build -mod=readonly -trimpath $(BARE)
# The race detector watches our code and the standard library. SQLite is C that was written into Go: its data lie behind its own
# locks, no race in there is ours to mend, and watched it is a fifth of what the programs of a story cost. Nor are the sums of a hash,
# a hundred thousand of them for a code, what matches a pattern, and what reads Go.
unwatched = '-gcflags=$(1)/...=-race=false -dwarf=false'
RACE      = -race $(BARE) $(foreach p,modernc.org crypto/internal/fips140 regexp go sallyport/internal/base/code,$(call unwatched,$(p)))
# No table of symbols is read of a test's program: what a panic and the race detector print, they have from elsewhere. To link is a fifth less.
LEAN      = -ldflags '-s -w'
# A compiler that collects its garbage a quarter as often takes a twelfth less of the processor, and 1 GiB instead of two thirds of one
# for the largest package, SQLite. Not so for tests: those that were measured gained nothing.
COMPILES  = GOGC=$${GOGC:-400}
# One package more at a time than there are processors: many wait, for a limit, an interval or a disk.
AT_ONCE  ?= $(shell expr $$(nproc) + 1)
# Loops over every point where power can go take a sample of them, which the seed chooses; `make soak` takes all. So do properties of
# any input (rapid). Each committed tree has a seed of its own, so that what fails fails again.
ifndef SALLYPORT_SEED
SALLYPORT_SEED := $(shell printf %d 0x0$$(git rev-parse 'HEAD^{tree}' 2>/dev/null | cut -c-7))
endif
RAPID_SEED ?= $(SALLYPORT_SEED)
export SALLYPORT_SEED RAPID_SEED
# The packages whose tests take longest, the longest first.
LONGEST   = ./cmd/sallyport ./internal/e2e ./internal/drive/... ./internal/port/sandbox/... ./internal/path/...
LINT      = github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.5.0
GREMLINS  = github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0

.DEFAULT_GOAL := help
.PHONY: help setup setup-test setup-bench agents build demo test soak check fmt vet lint mutants docs bench bench-quick release release-check clean

help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install what running needs (bubblewrap, git)
	@scripts/setup run

setup-test: ## install what the tests need as well (gcc for the race detector, strace, ssh-keygen, gpg, IRC servers)
	@scripts/setup test

setup-bench: ## install what the benchmarks compare with as well (PostgreSQL, podman)
	@scripts/setup bench

agents: ## install the real agents that the tests run into a cache; AGENTS='opencode qwen' for those that they may skip
	@scripts/agents $(AGENTS)

# sallyport knows its runner by content, and uses no other: so the runner is made first.
build: ## bin/sallyport, and beside it sallyport-runner, sallyport-keeper and sallyport-tool, static
	@mkdir -p bin
	@echo "build: compiles four programs and what they link; the first time that takes minutes"
	$(STATIC) -ldflags '$(LDFLAGS)' -o bin/sallyport-runner ./cmd/sallyport-runner
	@chmod go-w bin/sallyport-runner
	$(STATIC) -ldflags "$(LDFLAGS) -X sallyport/internal/port/sandbox/bwrap.runnerSum=$$(sha256sum bin/sallyport-runner | cut -c -64)" -o bin/sallyport ./cmd/sallyport
	$(STATIC) -ldflags '$(LDFLAGS)' -o bin/sallyport-keeper ./cmd/sallyport-keeper
	$(STATIC) -ldflags '$(LDFLAGS)' -o bin/sallyport-tool ./cmd/sallyport-tool

demo: setup build ## changes land, go on trial and are rolled back; under two minutes
	@demo/run

# The tests start themselves again many times, and a race binary sleeps a second at each exit. The longest packages come first, so that
# none ends alone. Vet has looked at all of it by then, and would look again at a part. What is compiled twice, with the race detector and
# without, is compiled side by side: each has moments in which all waits for one large package.
test: setup-test agents ## every test, with the race detector; as root also as an ordinary user
	@$(MAKE) --no-print-directory -j2 build vet
	@echo "test: SALLYPORT_SEED=$(SALLYPORT_SEED) takes the same points of the loops, and the same cases of properties, again"
	GORACE=atexit_sleep_ms=0 scripts/in-memory $(GO) test -mod=readonly $(RACE) $(LEAN) -vet=off -p $(AT_ONCE) -timeout 45m $(LONGEST) ./...
	@scripts/in-memory scripts/test-as-user

SOAK     ?= 10m
soak: setup-test agents build ## every point of every loop, and a day of use in ten minutes (SOAK=10m): hours
	SALLYPORT_LONG=1 SALLYPORT_SOAK=$(SOAK) $(GO) test -mod=readonly -p 1 -timeout 8h -v -run TestADayOfUse ./internal/e2e
	SALLYPORT_LONG=1 $(GO) test -mod=readonly -p 1 -timeout 8h -v -run "TestScripts/(self|schema)" ./cmd/sallyport
	SALLYPORT_LONG=1 $(GO) test -mod=readonly -timeout 8h ./internal/base/... ./internal/path/... ./internal/chat/... ./internal/drive/... ./internal/e2e

check: fmt lint test ## what a reviewer runs: format, vet, lint, every test

fmt: ## fail on what gofmt would change
	@bad=$$(gofmt -l cmd internal); test -z "$$bad" || { echo "not gofmt'ed: $$bad"; exit 1; }

# With the flags of the tests, so that what both need is compiled once.
vet: fmt ## go vet
	$(COMPILES) $(GO) vet -mod=readonly $(RACE) ./...

lint: ## golangci-lint, pinned
	$(GO) run $(LINT) run ./...

# A mutant is the package with one operator or condition turned round; the package's own tests shall fail on it. What no test
# reaches is told too. MUTANTS takes gremlins' own flags, such as --diff main.
mutants: ## which small faults a package's own tests let live: make mutants PACKAGE=./internal/path/trial
	@test -n "$(PACKAGE)" || { echo "name the package: make mutants PACKAGE=./internal/path/trial"; exit 2; }
	$(GO) run $(GREMLINS) unleash --workers 2 --timeout-coefficient 20 $(MUTANTS) $(PACKAGE)

docs: ## write what comes from code: cli.md, schemas, states, linked modules, the pictures, schema.sql, the table of rules
	UPDATE_DOCS=1 $(GO) test -mod=readonly ./internal/path/change ./internal/door/api/apitest ./internal/rule/config ./internal/screen/cli ./internal/rule/metric ./internal/rule/secret ./internal/store/sqlite
	UPDATE_DOCS=1 $(GO) test -mod=readonly -run TestThePictureOfA ./cmd/sallyport

# It is of the same build as what it speaks to.
BENCH = $(GO) test -mod=readonly -ldflags '-X sallyport/internal/door/api.build=$(VERSION)' -timeout 0 -run '^$$' -bench . -benchtime 1x ./internal/bench -v -args

bench: setup-bench build ## ours and the rival in turn, into docs/benchmarks.md; an hour and more
	$(BENCH) -report ../../docs/benchmarks.md -sizes 1000,10000,100000 -rounds 10 -landings 300 -agents 100

bench-quick: setup-bench build ## the same, small, and only printed; a minute or two
	$(BENCH) -sizes 1000 -rounds 3 -landings 20 -agents 5

release: ## dist/: static binaries and Debian packages for amd64 and arm64, with checksums
	@scripts/release

release-check: ## make the release twice, the second time from a clone elsewhere, and compare every byte
	@scripts/release check

clean: ## remove what was built
	rm -rf bin dist
