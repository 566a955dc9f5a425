# The short list of what people and CI call. `make ROS=jazzy ...` uses the Jazzy wheels where no ROS is sourced.
export ROS ?= $(if $(OPENLINK_WHEELS),$(ROS_DISTRO),kilted)
# rustup puts cargo where not every shell looks.
export PATH := $(PATH):$(HOME)/.cargo/bin
.PHONY: help demo test build env bench bench-dds bench-link bench-transport bench-uart fmt clean python fuzz

help: ## Lists the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

demo: build ## Sets up everything and runs the whole experiment on a simulated drone
	@bash scripts/with_ros.sh python3 scripts/demo.py

env: ## Installs ROS 2 wheels into .ros/ where no ROS 2 is sourced
	@bash -c '. scripts/tools.sh env'
	@[ -n "$$ROS_DISTRO" ] || python3 scripts/ros_env.py $(ROS)

test: env ## All checks and tests; ends with `N passed, N failed`
	@bash scripts/test_env.sh
	@OPENLINK_TEST_PYTHON=$(CURDIR)/.venv/bin/python bash scripts/with_ros.sh python3 test/run.py

build: ## Builds the ROS package into build/ and install/
	@bash scripts/build.sh

fuzz: ## Looks for inputs that break the decoders, FUZZ_S seconds (60) for each target
	@bash scripts/fuzz.sh

python: ## Builds the prrt:// driver for cflib in python/ (needs no ROS)
	@bash scripts/python_package.sh

bench: build ## Side-by-side benchmarks: out/bench/*.json and a table of ratios
	@bash scripts/test_env.sh
	@bash scripts/with_ros.sh python3 scripts/bench.py
	@bash scripts/with_ros.sh python3 scripts/bench_fleet.py
	@bash scripts/with_ros.sh python3 scripts/bench_domain.py ratios
	@bash scripts/with_ros.sh python3 scripts/bench_domain.py routes
	@bash scripts/with_ros.sh python3 scripts/bench_realtime.py

bench-dds: build ## What crossing DDS domains costs, size by size, and where round trips jump: out/bench-dds
	@bash scripts/with_ros.sh openlink bench dds domains
	@bash scripts/with_ros.sh openlink bench dds knee --prove

bench-link: build ## DDS against the paced transport on emulated links (root): out/bench/link
	@bash scripts/with_ros.sh python3 scripts/bench_link.py

bench-transport: ## The paced transport against QUIC, SRT, KCP, TCP and UDP on emulated links (root; QUICK=1: 5 minutes): out/bench/transport
	@bash scripts/bench_transport.sh $(if $(QUICK),--seconds 5 --rounds 1 --scenario H1 --scenario H2 --first)
bench-uart: ## Our UART path against the habits of slow drivers, stage by stage: out/bench/uart
	cargo run --release --locked --quiet -p openlink -- bench uart

fmt: ## Formats the Rust code
	cargo fmt --all

clean: ## Removes what was built (not the ROS wheels)
	rm -rf build install target out
