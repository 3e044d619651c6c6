# Thin: the commands people type. The build itself is CMake's.
BUILD = build/release
NORI = $(BUILD)/nori
PREFIX = /usr/local

TIME = 60
ENGINE = libfuzzer
SEED = 0

.PHONY: all setup build run test test-all analyze coverage bench fuzz install package clean
all: build

setup:
	@tools/setup.sh

build: setup
	@cmake --preset release >/dev/null
	@ninja -C $(BUILD) $(if $(VERBOSE),,--quiet)

run: build
	@sh examples/digits/demo.sh $(NORI)

# Twice where it fails: some tests wait for servers and clocks, which a neighbour's load can spoil once.
test: build
	@echo "tests: some ten minutes on two cores; $(BUILD)/tests.log says how far they are"
	@ctest --test-dir $(BUILD) -LE slow -j$$(nproc) --repeat until-pass:2 --output-on-failure $(if $(VERBOSE),,--quiet -O $(BUILD)/tests.log) \
	    && grep -E 'tests passed|Total Test' $(BUILD)/tests.log || { cat $(BUILD)/tests.log; exit 1; }

test-all:
	@tools/setup.sh $$(grep -v '^#' tools/packages_all.txt)
	@$(MAKE) --no-print-directory build
	@ctest --test-dir $(BUILD) --output-on-failure

# gcc -fanalyzer and cppcheck, with TOOLS=gcc,tidy,cppcheck clang-tidy too; files that did not change are not
# looked at again.
analyze:
	@tools/setup.sh clang-tidy cppcheck
	@tools/analyze.py $(if $(TOOLS),--tools $(TOOLS))

# Lines of src/ that the tests of some labels reach, a row a folder: LABELS='fast|full' for more of them.
LABELS = fast
coverage:
	@tools/setup.sh gcovr
	@cmake --preset coverage >/dev/null
	@ninja -C build/coverage --quiet
	@find build/coverage -name '*.gcda' -delete
	@ctest --test-dir build/coverage -L '$(LABELS)' -j$$(nproc) --quiet -O build/coverage/tests.log \
	    || grep -E 'Failed|Timeout' build/coverage/tests.log
	@tools/coverage.py build/coverage --files 10

bench: build
	@$(NORI) bench examples/digits/digits.onnx --runs 200 --profile
	@NORI_TEST_TIMES=1 ctest --test-dir $(BUILD) -R '^(creation|cpu_half|memory)$$' || true
	@bench/targets.py --build $(BUILD) $(if $(MODELS),--models $(MODELS)) $(TARGETS)

# Each fuzz target for TIME seconds, one after another, then a table. ENGINE=afl: by AFL++. SEED: the same
# changes each time, from the same corpus.
fuzz:
	@tools/setup.sh clang libclang-rt-dev $(if $(filter afl,$(ENGINE)),afl++)
	@fuzz/campaign.py --seconds $(TIME) --engine $(ENGINE) --seed $(SEED) $(TARGETS)

# Installs what `make build` made; DESTDIR is put before every path.
install:
	@[ -x $(NORI) ] || { echo "nothing is built yet: run make first" >&2; exit 1; }
	@cmake --install $(BUILD) --prefix $(PREFIX) --strip $(if $(VERBOSE),,>/dev/null)
	@echo "installed to $(DESTDIR)$(PREFIX)"

package: build
	@tools/setup.sh dpkg-dev file
	@tools/make_packages.sh $(BUILD)

clean:
	rm -rf build
