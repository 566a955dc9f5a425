#!/usr/bin/env bash
# Builds the shared library and puts it beside the Python package: afterwards `pip install ./python`, or
# PYTHONPATH=python. Needs no ROS.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cargo build --locked --release -p openlink-c
cp "${CARGO_TARGET_DIR:-target}/release/libopenlink_c.so" python/openlink_cflib/
echo "[python] python/openlink_cflib is complete; install it with: pip install ./python"
