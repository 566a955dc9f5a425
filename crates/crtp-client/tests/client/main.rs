//! A client against a scripted drone over a seeded link, on a virtual clock.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod cache;
mod connecting;
mod drone;
mod fuzz;
mod logs;
mod pair;
mod params;
mod requests;

use std::time::Duration;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
