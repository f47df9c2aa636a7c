# Targets to build, test and measure Weft. Each installs missing packages first: see
# scripts/setup.sh.

JOBS         ?= $(shell nproc 2>/dev/null || echo 2)
FUZZ_SECONDS ?= 300
PREFIX       ?= /usr/local

.DEFAULT_GOAL := weft
.PHONY: weft demo lib wheel install test test-gpu test-thorough bench bench-gpu bench-peers bench-faults bench-wires goldens fuzz format lint clean help

weft: ## build the program, build/release/weft (plain `make`)
	@scripts/setup.sh build
	@scripts/build.sh release $(JOBS) weft

demo: weft ## run examples/demo.weft: plan, prove and run a training step on 4 ranks, and write a page
	@echo "\$$ weft run examples/demo.weft"
	@build/release/weft run examples/demo.weft

lib: ## build the library for C, build/release/libweft.so
	@scripts/setup.sh build
	@scripts/build.sh release $(JOBS) weft_library

wheel: ## build the wheel for Python, build/release/weft-*.whl (docs/python.md)
	@scripts/setup.sh build wheel
	@scripts/build.sh release $(JOBS) installed
	@python3 python/weft_wheel.py --build build/release --out build/release

install: ## install program, library and headers under DESTDIR and PREFIX (/usr/local)
	@scripts/setup.sh build
	@scripts/build.sh release $(JOBS) installed
	@DESTDIR="$(DESTDIR)" cmake --install build/release --prefix "$(PREFIX)"

test: ## build everything with sanitizers and run all tests
	@scripts/setup.sh build test
	@scripts/test.sh $(JOBS)

test-thorough: export WEFT_THOROUGH = 1
test-thorough: test ## the same, with all cases of the long tests: about 40 minutes

test-gpu: ## run the execution tests on this machine's GPU (without f64, which GPU plans do not support)
	@scripts/setup.sh build test
	@scripts/build.sh dev $(JOBS) unit_exec unit_run
	@ASAN_OPTIONS=protect_shadow_gap=0:detect_leaks=0 WEFT_TEST_DEVICE='cuda:0 exact' \
	  build/dev/unit_exec --gtest_filter='Execution*:MaskedRegions*:OwnKernels*:ProgramProperty*-Execution.EveryOperator*'
	@ASAN_OPTIONS=protect_shadow_gap=0:detect_leaks=0 build/dev/unit_run --gtest_filter='Gpu*'

test-%: ## build and run the unit tests of one module of src/weft: make test-cost
	@scripts/setup.sh build test
	@scripts/build.sh dev $(JOBS) unit_$*
	@ctest --preset dev -j $(JOBS) -L '^$*$$'

bench: ## measure planning, rules, memory, kernels and training, and print the numbers
	@scripts/setup.sh build bench
	@scripts/build.sh release $(JOBS) bench

bench-gpu: ## measure training steps on this machine's GPU, and compare with PyTorch
	@scripts/setup.sh build
	@scripts/build.sh release $(JOBS) weft
	@bench/gpu.sh build/release/weft

bench-peers: ## build the peers that `weft bench` compares with: Open MPI, MPICH, Gloo
	@scripts/setup.sh build bench
	@scripts/build.sh release $(JOBS) weft bench-peers

bench-wires: ## measure training over slow links, with bucketed, compressed or averaged gradients, and compare with PyTorch DDP
	@scripts/setup.sh build bench
	@scripts/build.sh release $(JOBS) weft
	@bench/slow_links.sh build/release/weft 2 1gbit
	@bench/slow_links.sh build/release/weft 4 1gbit
	@bench/slow_links.sh build/release/weft 2 10gbit

bench-faults: ## inject faults into ranks and training jobs, and check that they recover
	@scripts/setup.sh build
	@scripts/build.sh release $(JOBS) bench_faults bench_soak weft
	@build/release/bench_faults
	@build/release/bench_soak --seconds 60
	@bench/faults_of_jobs.sh build/release/weft

goldens: ## rewrite the expected output of the golden tests; read the diff
	@scripts/setup.sh build test
	@scripts/build.sh dev $(JOBS) weft_golden
	@scripts/rewrite-goldens

fuzz: ## fuzz each reader for FUZZ_SECONDS (300)
	@scripts/setup.sh build test
	@scripts/fuzz.sh $(JOBS) $(FUZZ_SECONDS)

format: ## format the C++ sources with clang-format
	@scripts/setup.sh format
	@find src apps test bench -name '*.h' -o -name '*.cpp' -o -name '*.cuh' | xargs clang-format -i

lint: ## check the scripts and styles of web/ with eslint
	@command -v npm >/dev/null || scripts/setup.sh lint
	@cd web && npm ci --silent --no-audit --no-fund && npm run --silent lint

clean: ## remove all build output
	@scripts/setup.sh
	@rm -rf build web/node_modules

help: ## show this list
	@scripts/setup.sh
	@awk -F ':.*## ' '/^[a-z%-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
