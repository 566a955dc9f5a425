//! Writes a packet log as a bridge would: 200 requests with answers, every fiftieth sent again, setpoints between
//! them. `cargo run -p latency --example sample_log -- log.mcap`

use std::path::PathBuf;

use anyhow::Context as _;
use latency::{Direction, Hop, MonoNs, Reason, Recorder, Stage};

const MS: u64 = 1_000_000;

fn main() -> anyhow::Result<()> {
    let path: PathBuf = std::env::args_os()
        .nth(1)
        .context("the file to write is missing")?
        .into();
    let recorder = Recorder::start(&path, "sample", &["uart"], |_| {})?;
    let mut tap = recorder.tap();
    let start = MonoNs::now().0;
    for packet in 0..200 {
        for hop in request(start + packet * 10 * MS, packet) {
            tap.record(&hop);
        }
        let at = MonoNs(start + packet * 10 * MS + 5 * MS);
        let setpoint = Hop::new(at, 1000 + packet, Stage::G2, Direction::Up, &[0x3c; 15]);
        tap.record(&Hop {
            reason: Reason::Setpoint,
            ..setpoint
        });
    }
    let status = recorder.finish();
    anyhow::ensure!(
        status.dropped == 0 && status.problem.is_none(),
        "{status:?}"
    );
    Ok(())
}

/// A link echo of 8 bytes, there and back; the drone's share varies.
fn request(start: u64, packet: u64) -> Vec<Hop> {
    let mut echo = [0xf0; 9];
    echo[1..].copy_from_slice(&packet.to_le_bytes());
    let drone = 100_000 + (packet * 7919) % 900_000;
    let stamps = [
        (Stage::G0, 0),
        (Stage::G2, 8_000),
        (Stage::G4, 15_000),
        (Stage::U0, 40_000),
        (Stage::U1, 52_000),
        (Stage::U2, 252_000),
        (Stage::U3, 252_000 + drone),
        (Stage::U4, 452_000 + drone),
        (Stage::G5, 470_000 + drone),
        (Stage::G6, 480_000 + drone),
        (Stage::G7, 490_000 + drone),
    ];
    let hop = |&(stage, after): &(Stage, u64)| {
        let direction = if stage >= Stage::U3 {
            Direction::Down
        } else {
            Direction::Up
        };
        Hop::new(MonoNs(start + after), packet, stage, direction, &echo)
    };
    let mut hops: Vec<Hop> = stamps.iter().map(hop).collect();
    if packet % 50 == 49 {
        let again = Hop {
            reason: Reason::Resend,
            attempt: 1,
            ..hop(&(Stage::G2, 300_000))
        };
        hops.push(again);
    }
    hops
}
