# Every target does its own set-up; `make` alone prints this list.

PREFIX  ?= /usr/local
DESTDIR ?=

# The compiler is part of the build: this exact version, which an older Go fetches by itself.
export GOTOOLCHAIN := $(shell sed -n 's/^toolchain //p' go.mod)
# The version is stamped by us, so Go's own stamp, which depends on the checkout, stays off; nothing else may come in from
# the caller's environment.
export GOFLAGS := -buildvcs=false
export GOWORK := off
# sudo drops the directory where Go's own packages put it.
export PATH := $(PATH):/usr/local/go/bin

# A checkout that belongs to another user than the caller (sudo make) is still ours to read.
export GIT_CONFIG_COUNT := 1
export GIT_CONFIG_KEY_0 := safe.directory
export GIT_CONFIG_VALUE_0 := $(CURDIR)

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

VERSION := $(shell [ -e .git ] && GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0=$(CURDIR) git describe --always --dirty --tags 2>/dev/null || echo devel)
BUILD := CGO_ENABLED=0 go build -trimpath

.PHONY: help build demo test check lint bench clean install deps force
.DEFAULT_GOAL := help

help: ## print this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | while IFS=$$'\t' read -r target what; do printf 'make %-8s %s\n' "$$target" "$$what"; done

build: bin/gaol bin/runsc ## build bin/gaol and the bin/runsc that it runs

demo: ## analyse two real tables in a sandbox, and check the answers
	@.ci/deps demo
	@$(MAKE) --no-print-directory build
	@.ci/demo

test: ## run every test; as root also as a new ordinary user
	@.ci/deps test
	@$(MAKE) --no-print-directory build
	@.ci/test

check: lint test ## lint and test: what a change has to pass

lint: ## gofmt, vet, golangci-lint, tidy modules, known vulnerabilities
	@.ci/deps build
	@.ci/lint

bench: ## measure cold starts beside bare runsc
	@.ci/deps demo
	@$(MAKE) --no-print-directory build
	@bin/gaol bench start

install: ## install gaol and runsc under PREFIX (/usr/local), below DESTDIR
	@[ -x bin/gaol ] && [ -x bin/runsc ] || { echo "error: nothing is built yet" >&2; echo "hint: make build" >&2; exit 1; }
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/gaol $(DESTDIR)$(PREFIX)/share/doc/gaol
	install -m 0755 bin/gaol bin/runsc $(DESTDIR)$(PREFIX)/lib/gaol/
	ln -sfn ../lib/gaol/gaol $(DESTDIR)$(PREFIX)/bin/gaol
	install -m 0644 README.md SECURITY.md LICENSE config.toml $(DESTDIR)$(PREFIX)/share/doc/gaol/

clean: ## remove what was built here (not the images in the store)
	rm -rf bin .cache

deps: ## install what demo and test need (Debian and Ubuntu, as root)
	@.ci/deps test

bin/gaol: force
	@.ci/deps build
	$(BUILD) -ldflags "-s -w -X main.version=$(VERSION)" -o $@ ./cmd/gaol

# runsc takes long to link and changes only with its module or the compiler, so those, not dates, decide.
bin/runsc: .cache/runsc.inputs
	cd runtime/gvisor && $(BUILD) -ldflags "-s -w -X gvisor.dev/gvisor/runsc/version.version=$$(go list -m -f '{{.Version}}' gvisor.dev/gvisor)" \
	  -o $(CURDIR)/$@ gvisor.dev/gvisor/runsc

.cache/runsc.inputs: force
	@.ci/deps build
	@mkdir -p .cache
	@{ go env GOVERSION GOARCH; sha256sum Makefile runtime/gvisor/go.mod runtime/gvisor/go.sum; } > $@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
