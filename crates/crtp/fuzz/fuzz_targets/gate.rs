//! The fuzzer's entry to `bodies/gate.rs`, which plain tests replay the corpus with.
#![no_main]

#[path = "../bodies/gate.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
