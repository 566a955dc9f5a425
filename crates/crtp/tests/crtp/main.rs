//! Golden vectors, encode-decode properties and random bytes for every layout.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

#[path = "../../examples/crtp_vectors/list.rs"]
mod list;
mod properties;
mod replies;
mod requests;

use crtp::Packet;

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap())
        .collect()
}

fn packet(hex: &str) -> Packet {
    Packet::from_bytes(&bytes(hex)).unwrap()
}

fn hex(packet: &Packet) -> String {
    format!("{packet:?}")
}
