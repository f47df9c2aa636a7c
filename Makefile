# The commands of Weft. Each sets up what it needs by itself: see scripts/setup.sh.

JOBS         ?= $(shell nproc 2>/dev/null || echo 2)
FUZZ_SECONDS ?= 300
PREFIX       ?= /usr/local

.DEFAULT_GOAL := weft
.PHONY: weft demo lib install test test-gpu test-thorough bench bench-gpu bench-peers bench-faults bench-wires goldens fuzz format lint clean help

weft: ## build the program, build/release/weft (plain `make`)
	@scripts/setup.sh build
	@scripts/build.sh release $(JOBS) weft

demo: weft ## run examples/demo.weft: a step planned, proven and run on 4 ranks, with a page
	@echo "\$$ weft run examples/demo.weft"
	@build/release/weft run examples/demo.weft

lib: ## build the library for C, build/release/libweft.so
	@scripts/setup.sh build
	@scripts/build.sh release $(JOBS) weft_library

install: ## install program, library and headers under PREFIX (/usr/local); DESTDIR goes before it
	@scripts/setup.sh build
	@scripts/build.sh release $(JOBS) installed
	@DESTDIR="$(DESTDIR)" cmake --install build/release --prefix "$(PREFIX)"

test: ## build everything with sanitizers and run all tests
	@scripts/setup.sh build test
	@scripts/test.sh $(JOBS)

test-thorough: export WEFT_THOROUGH = 1
test-thorough: test ## the same, with every case of the long tests: some 40 minutes

test-gpu: ## run the tests of what executes plans on this machine's GPU (f64, which it lacks, left out)
	@scripts/setup.sh build test
	@scripts/build.sh dev $(JOBS) unit_exec unit_run
	@ASAN_OPTIONS=protect_shadow_gap=0:detect_leaks=0 WEFT_TEST_DEVICE='cuda:0 exact' \
	  build/dev/unit_exec --gtest_filter='Execution*:MaskedRegions*:OwnKernels*:ProgramProperty*-Execution.EveryOperator*'
	@ASAN_OPTIONS=protect_shadow_gap=0:detect_leaks=0 build/dev/unit_run --gtest_filter='Gpu*'

test-%: ## build and run the unit tests of one room of src/weft: make test-cost
	@scripts/setup.sh build test
	@scripts/build.sh dev $(JOBS) unit_$*
	@ctest --preset dev -j $(JOBS) -L '^$*$$'

bench: ## measure planning, rules, memory, kernels and training, and print the numbers
	@scripts/setup.sh build bench
	@scripts/build.sh release $(JOBS) bench

bench-gpu: ## measure steps of training on this machine's GPU beside PyTorch's
	@scripts/setup.sh build
	@scripts/build.sh release $(JOBS) weft
	@bench/gpu.sh build/release/weft

bench-peers: ## build what `weft bench` measures against: Open MPI, MPICH, Gloo
	@scripts/setup.sh build bench
	@scripts/build.sh release $(JOBS) weft bench-peers

bench-wires: ## measure steps between hosts with slow links, gradients bucketed, coded or averaged, beside PyTorch DDP
	@scripts/setup.sh build bench
	@scripts/build.sh release $(JOBS) weft
	@bench/wires.sh build/release/weft 2 1gbit
	@bench/wires.sh build/release/weft 4 1gbit
	@bench/wires.sh build/release/weft 2 10gbit

bench-faults: ## kill, stop, starve and mislead ranks and training jobs, and see that they cope
	@scripts/setup.sh build
	@scripts/build.sh release $(JOBS) bench_faults bench_soak weft
	@build/release/bench_faults
	@build/release/bench_soak --seconds 60
	@bench/faults_of_jobs.sh build/release/weft

goldens: ## refill the expected output of the golden tests; read the diff
	@scripts/setup.sh build test
	@scripts/build.sh dev $(JOBS) weft_golden
	@scripts/rewrite-goldens

fuzz: ## fuzz each reader for FUZZ_SECONDS (300)
	@scripts/setup.sh build test
	@scripts/fuzz.sh $(JOBS) $(FUZZ_SECONDS)

format: ## lay out the C++ sources with clang-format
	@scripts/setup.sh format
	@find src apps test bench -name '*.h' -o -name '*.cpp' -o -name '*.cuh' | xargs clang-format -i

lint: ## check the scripts and styles of web/ with eslint
	@command -v npm >/dev/null || scripts/setup.sh lint
	@cd web && npm ci --silent --no-audit --no-fund && npm run --silent lint

clean: ## remove everything that was built
	@scripts/setup.sh
	@rm -rf build web/node_modules

help: ## show this list
	@scripts/setup.sh
	@awk -F ':.*## ' '/^[a-z%-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
