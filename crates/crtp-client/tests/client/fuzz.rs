//! The fuzzer's inputs and small changes of them, on the stable compiler. `make fuzz` looks for new ones.

use std::path::Path;

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

#[path = "../../../crtp/fuzz/bodies/client.rs"]
mod client;
#[path = "../../../crtp/fuzz/bodies/decode.rs"]
mod decode;
#[path = "../../../crtp/fuzz/bodies/gate.rs"]
mod gate;

/// Changed copies of each input; `FUZZ_ROUNDS` sets another number.
const ROUNDS: u32 = 50;

fn replay(name: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../crtp/fuzz/corpus")
        .join(name);
    let rounds = std::env::var("FUZZ_ROUNDS").map_or(ROUNDS, |text| text.parse().unwrap());
    let mut inputs: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    inputs.sort();
    assert!(!inputs.is_empty(), "{} is empty", folder.display());
    for (seed, path) in inputs.iter().enumerate() {
        let input = std::fs::read(path).unwrap();
        run(&input);
        let mut rng = SmallRng::seed_from_u64(seed as u64);
        for _ in 0..rounds {
            run(&changed(&input, &mut rng));
        }
    }
}

/// `input` with up to four bytes changed, added or cut off.
fn changed(input: &[u8], rng: &mut SmallRng) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..rng.random_range(1..=4) {
        let at = rng.random_range(0..=bytes.len());
        match rng.random_range(0..4) {
            0 if at < bytes.len() => bytes[at] ^= 1 << rng.random_range(0..8),
            1 if at < bytes.len() => bytes[at] = rng.random(),
            2 => bytes.insert(at, rng.random()),
            _ => bytes.truncate(at),
        }
    }
    bytes
}

#[test]
fn inputs_of_the_decoders() {
    replay("decode", decode::run);
}

#[test]
fn inputs_of_the_gate() {
    replay("gate", gate::run);
}

#[test]
fn inputs_of_the_client() {
    replay("client", client::run);
}
