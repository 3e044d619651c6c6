# Thin: the commands people type. The build itself is CMake's.
BUILD = build/release
NORI = $(BUILD)/nori

.PHONY: all setup build run test test-all bench package clean
all: build

setup:
	@tools/setup.sh

build: setup
	@cmake --preset release >/dev/null
	@ninja -C $(BUILD) $(if $(VERBOSE),,--quiet)

run: build
	@sh examples/digits/demo.sh $(NORI)

test: build
	@ctest --test-dir $(BUILD) -LE slow --output-on-failure $(if $(VERBOSE),,--quiet -O $(BUILD)/tests.log) \
	    && grep -E 'tests passed|Total Test' $(BUILD)/tests.log || { cat $(BUILD)/tests.log; exit 1; }

test-all: build
	@ctest --test-dir $(BUILD) --output-on-failure

bench: build
	@for m in examples/digits/digits.onnx; do $(NORI) bench $$m --runs 200 --profile; done

package: build
	@cd $(BUILD) && cpack -G "DEB;TGZ"

clean:
	rm -rf build
