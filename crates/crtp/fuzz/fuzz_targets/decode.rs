//! The fuzzer's entry to `bodies/decode.rs`, which plain tests replay the corpus with.
#![no_main]

#[path = "../bodies/decode.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
