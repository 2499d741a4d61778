# Every target sets itself up. `make` alone lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help demo test check verify bench build release package qoe-app fmt fmt-check lint unit unit-here \
	docs vectors deny deny-if-there fuzz setup setup-video setup-test setup-packages clean-lab

export CARGO_TERM_PROGRESS_WHEN := never
TARGET := $(or $(CARGO_TARGET_DIR),target)
LAB := $(TARGET)/debug/plait-lab
SECONDS_EACH ?= 60
HERE := --lib --bins --test tidy --test dependencies --test bad_configs --test commands \
	--test link_properties --test seeded
# Without clang and libelf the crate for programs in the kernel is left out.
CRATES = --workspace $(shell scripts/bpf-flags)
say = @printf '\n== %s\n' "$(1)"

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

demo: setup build ## Bond a DSL and an LTE link on this machine; tables, and a page in out/
	$(call say,Demo: two gateways and two emulated links in namespaces of their own)
	@mkdir -p out
	@$(LAB) demo --html out/demo.html $(ARGS)

test: setup-test qoe-app fmt-check lint unit vectors docs deny-if-there ## All checks and tests, then a short demo; what CI runs
	$(call say,A short demo by the tests' programs: the whole way through two gateways)
	@if why=$$($(LAB) selftest list 2>&1 >/dev/null); then \
		$(LAB) demo --short; \
	else \
		printf 'SKIPPED, as were the tests in namespaces: %s\n' "$$why"; \
		[ "$${PLAIT_REQUIRE_NETNS-}" != 1 ]; \
	fi

check: fmt-check lint unit-here docs ## All checks, and the tests that need no namespaces

verify: release ## Check plait's promises, each with its figure and band
	$(call say,Promises)
	@$(TARGET)/release/plait-lab verify $(ARGS)

bench: release ## Measure what this machine can carry
	$(call say,Bench: links without a limit)
	@$(TARGET)/release/plait-lab bench $(ARGS)

build: qoe-app
	$(call say,Build the gateway and the lab)
	@scripts/cargo build --locked $(CRATES) --bins

release: setup qoe-app ## Build the gateway and the lab for speed, by a profile of what they do
	$(call say,Build the gateway and the lab for speed)
	@scripts/wireguard-go
	@scripts/release

package: setup-packages ## Make a Debian package, a tarball, checksums and an SBOM, in target/package
	$(call say,Package)
	@scripts/package

# The lab's build takes the page in, so it comes first. Without node or npm's registry the lab is
# built without it; in CI that fails.
qoe-app:
	$(call say,Build the page of plait-lab qoe)
	@scripts/qoe-app || { echo 'SKIPPED: the page; plait-lab qoe will say so'; \
		[ "$${PLAIT_REQUIRE_NETNS-}" != 1 ]; }

fmt: ## Format the code
	@cargo fmt --all

fmt-check:
	$(call say,Format)
	@cargo fmt --all --check

lint:
	$(call say,Lints)
	@scripts/cargo clippy --locked $(CRATES) --all-targets -- -D warnings
# As users build them: without what only tests ask of other crates, and without clang.
	@scripts/cargo clippy --locked -p plait-cli -p plait-lab --bins -- -D warnings

unit:
	$(call say,Tests: units, properties, parsers on random bytes, house rules, namespaces)
	@scripts/cargo test --locked $(CRATES) --no-run
	@cargo test --locked --quiet $(CRATES)

unit-here:
	$(call say,Tests that need no namespaces)
	@scripts/cargo test --locked $(CRATES) --no-run $(HERE)
	@cargo test --locked --quiet $(CRATES) $(HERE)

vectors: ## Check the test vectors with a second implementation, in Python
	$(call say,Test vectors of docs/spec: a second implementation makes and opens each message)
	@for python in python3 /usr/bin/python3; do \
		if $$python -c 'import cryptography' 2>/dev/null; then break; fi; \
	done; \
	$$python docs/spec/verify_vectors.py

docs:
	$(call say,Documentation)
	@RUSTDOCFLAGS='-D warnings' scripts/cargo doc --locked $(CRATES) --no-deps \
		--document-private-items

# Licences, bans and sources are checked by a test: docs/decisions/0012-dependencies.md.
deny-if-there:
	@if cargo deny --version >/dev/null 2>&1; then $(MAKE) deny; else \
		echo 'SKIPPED: advisories of dependencies; cargo-deny is missing'; fi

deny: ## Check licences and advisories of dependencies
	@if cargo deny --version >/dev/null 2>&1; then cargo deny check; else \
		echo 'cargo-deny is missing; install it with: cargo install --locked cargo-deny' >&2; \
		exit 1; fi

fuzz: ## Fuzz every target longer: SECONDS_EACH=60, ARGS='hostile_peer'; prints what was reached
	$(call say,Fuzzing: $(SECONDS_EACH) s for each target)
	@scripts/fuzz $(SECONDS_EACH) $(ARGS)

setup:
	@scripts/setup

setup-video:
	@scripts/setup --video

setup-test:
	@scripts/setup --video --live --bpf

setup-packages:
	@scripts/setup --packages

clean-lab: build ## Remove what a killed lab left behind
	@$(LAB) clean
