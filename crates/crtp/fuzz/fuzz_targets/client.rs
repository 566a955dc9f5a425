//! The fuzzer's entry to `bodies/client.rs`, which plain tests replay the corpus with.
#![no_main]

#[path = "../bodies/client.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
