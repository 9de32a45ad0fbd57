# The four commands of the project (docs/cli.md has the rest). Set BUILD to build elsewhere, TYPE for another build type.
BUILD ?= build
TYPE ?= RelWithDebInfo
JOBS ?= $(shell nproc)
CMAKE_FLAGS ?=

.PHONY: setup build test quickstart gpu-test bench sanitize fuzz format clean

setup:
	@bash scripts/setup.sh

$(BUILD)/build.ninja: CMakeLists.txt
	@cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=$(TYPE) $(CMAKE_FLAGS)

build: setup
	@test -f $(BUILD)/build.ninja || $(MAKE) --no-print-directory $(BUILD)/build.ninja
	@cmake --build $(BUILD) -j $(JOBS)

test: build
	@ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS) --timeout 300 -LE gpu
	@bash scripts/gpu_skip_count.sh $(BUILD)

quickstart: build
	@bash scripts/quickstart.sh $(BUILD)

gpu-test:
	@bash scripts/gpu_test.sh $(BUILD)

bench: build
	@for b in $(BUILD)/bin/*_bench; do echo "== $$b"; $$b || exit 1; done

# AddressSanitizer and UndefinedBehaviorSanitizer over the unit tests.
sanitize: setup
	@cmake -S . -B $(BUILD)-asan -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DPTXB_SANITIZE=ON -DPTXB_BENCH=OFF
	@cmake --build $(BUILD)-asan -j $(JOBS)
	@ctest --test-dir $(BUILD)-asan --output-on-failure -j $(JOBS) --timeout 600 -LE gpu

fuzz: setup
	@CC=clang CXX=clang++ cmake -S . -B $(BUILD)-fuzz -G Ninja -DPTXB_FUZZ=ON -DPTXB_BENCH=OFF -DBUILD_TESTING=OFF
	@cmake --build $(BUILD)-fuzz -j $(JOBS)

format:
	@git ls-files '*.cc' '*.h' | xargs clang-format -i

clean:
	@rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-fuzz
