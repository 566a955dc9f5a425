#!/usr/bin/env bash
# Looks for inputs that break the CRTP decoders, the gate and the client: FUZZ_S seconds (60) for each target. New
# inputs go to crates/crtp/fuzz/corpus, which `make test` replays. Without a nightly compiler and cargo-fuzz, the
# corpus is replayed with many random changes instead.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if cargo +nightly fuzz --version >/dev/null 2>&1; then
  cd crates/crtp
  for target in decode gate client; do
    echo "[fuzz] $target for ${FUZZ_S:-60} s"
    cargo +nightly fuzz run "$target" -- -max_total_time="${FUZZ_S:-60}" -print_final_stats=1
  done
else
  echo "[fuzz] no cargo-fuzz on a nightly compiler (rustup toolchain install nightly; cargo install cargo-fuzz):" \
    "changing the corpus at random on the stable compiler instead"
  FUZZ_ROUNDS="${FUZZ_ROUNDS:-5000}" cargo test --locked --release -p crtp-client --test client fuzz::
fi
