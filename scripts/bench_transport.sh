#!/usr/bin/env bash
# Builds the rivals (a package of their own, outside the workspace) and the emulator, then runs the benchmark.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! pkg-config --exists srt; then
    echo "libsrt is missing: apt install libsrt-openssl-dev pkg-config" >&2
    exit 1
fi
target=${CARGO_TARGET_DIR:-}
cargo build --locked --profile node -p openlink
cargo build --locked --release --manifest-path benches/transport/Cargo.toml
exec python3 scripts/bench_transport.py --openlink "${target:-target}/node/openlink" \
    --program "${target:-benches/transport/target}/release/bench-transport" "$@"
