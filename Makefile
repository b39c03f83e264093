# chatbridge: the targets for developers and CI. Each installs its dependencies on a fresh Debian 12.
#
#   make run                  the demo: IRC on 127.0.0.1:6667 in front of a small chat backend
#   make run CONFIG=file      the bridge, with your configuration
#   make test                 all tests, the built program driven from outside, and two minutes of a soak
#   make soak                 kills, cuts, stalls, a full disk, clock jumps: no message lost, duplicated or reordered
#                             (SOAK=20m, SEED=n)
#   make pictures             those in docs/pictures, of the demo in a headless Chromium
#   make docs                 the site of the documentation, .build-docs/site, by MkDocs
#   make check                scripts, documents, formatting, dependency directions, warnings, what a message costs by count,
#                             sanitizers
#   make conformance          the long suites, each within an hour on two cores: conformance-laws (with many seeds),
#                             conformance-scenarios (the slow ones too), conformance-clients (real IRC clients, a browser) and
#                             conformance-autobahn
#   make bench                the benchmarks; fails where a bar is missed (PAIRS=9; rows alone: scripts/bench-fanout ROW…)
#   make binary               the binary of a release, .build-release/chatbridge, with the Swift runtime inside
#   make install, uninstall   that binary with its unit and documents (PREFIX=/usr/local, DESTDIR=)
#   make archive, deb, image  packages of it, in .build-release/dist; make release: all of them, with SHA256SUMS
#   make test-packaging       builds them, and installs, starts and removes each
#   make format               rewrites the sources in the project's format

SWIFT ?= swift
# Language mode 6, warnings as errors, undeclared dependencies refused.
STRICT = -Xswiftc -warnings-as-errors --explicit-target-dependency-import-check error
TESTS ?=
SOAK ?= 20m
SEED ?=
# The factor of property-test cases relative to `make test`: half an hour on two cores.
LAW_FACTOR ?= 30

.PHONY: setup build run test pictures docs soak check bench format clean
.PHONY: binary install uninstall archive deb image release test-packaging
.PHONY: conformance conformance-laws conformance-scenarios conformance-clients conformance-autobahn

setup:
	@scripts/setup

build: setup
	$(SWIFT) build -c release --product chatbridge

run: build
	@exec "$$($(SWIFT) build -c release --show-bin-path)/chatbridge" $(if $(CONFIG),run --config "$(CONFIG)",demo)

# Tests with real sockets and clocks run separately: among a thousand others they would wait longer than the idle time-outs of
# connections.
SOCKETS = ^TransportTests\.|^BridgeTests\.(HTTPClient|HTTPServer|HTTPStreaming|Health)

test: setup
	$(SWIFT) test $(STRICT) --disable-xctest --filter "$(or $(TESTS),$(SOCKETS))"
	$(if $(TESTS),,$(SWIFT) test $(STRICT) --disable-xctest --skip-build --skip "$(SOCKETS)")
	$(if $(TESTS),,"$$(scripts/test-environment)" Tests/Mirrors/test_tools.py)
	$(if $(TESTS),,CHATBRIDGE="$$($(SWIFT) build --show-bin-path)/chatbridge" scripts/end-to-end --quick)
	$(if $(TESTS),,scripts/soak --self-test)
	$(if $(TESTS),,SOAK=2m SEED=$(or $(SEED),1) CHATBRIDGE="$$($(SWIFT) build --show-bin-path)/chatbridge" scripts/soak)

pictures: setup
	scripts/make-pictures
	scripts/make-plots

docs: setup
	scripts/make-docs

soak: setup
	SOAK=$(SOAK) SEED=$(SEED) scripts/soak

check: setup
	scripts/check-scripts
	scripts/check-documents
	scripts/test-check-documents
	scripts/make-plots --check
	$(SWIFT) format lint --recursive --parallel --strict Package.swift Sources Tests Benchmarks/Package.swift Benchmarks/Sources
	scripts/check-imports
	scripts/test-check-imports
	scripts/test-measure-structure
	scripts/test-setup
	scripts/generate-states --check
	scripts/generate-widths --check
	scripts/test-alerts
	$(SWIFT) build $(STRICT) --build-tests
	CHATBRIDGE="$$($(SWIFT) build --show-bin-path)/chatbridge" scripts/generate-docs --check
	scripts/check-counts
	SOCKETS='$(SOCKETS)' scripts/sanitize

conformance: conformance-laws conformance-scenarios conformance-clients conformance-autobahn

# All tests, since property tests are among them under many names; the others take a minute.
conformance-laws: setup
	CHATBRIDGE_LAW_FACTOR=$(LAW_FACTOR) $(SWIFT) test $(STRICT) --disable-xctest --skip "$(SOCKETS)"

conformance-scenarios: setup
	scripts/end-to-end

conformance-clients: setup
	scripts/real-clients
	scripts/one-account
	scripts/test-studio

conformance-autobahn: setup
	scripts/autobahn full

bench: setup
	$(SWIFT) run -c release --package-path Benchmarks codec-bench
	scripts/bench-fanout

binary: setup
	packaging/binary

# Without a build, so that root needs no toolchain.
install:
	@packaging/install

uninstall:
	@packaging/install --uninstall

archive: binary
	packaging/archive

deb: binary
	packaging/setup deb
	packaging/deb

image: binary
	packaging/setup image
	packaging/image

release: binary
	packaging/setup deb image
	packaging/release

# As root, containers and a whole Debian are started too. Debian's Python, which sees Debian's packages.
test-packaging: binary
	packaging/setup deb image test
	SNAPSHOT=1 packaging/release
	/usr/bin/python3 -m unittest discover --start-directory Tests/Packaging --verbose

format:
	$(SWIFT) format --in-place --recursive --parallel Package.swift Sources Tests Benchmarks/Package.swift Benchmarks/Sources

clean:
	rm -rf .build .build-docs .build-release .build-asan .build-tsan Benchmarks/.build
