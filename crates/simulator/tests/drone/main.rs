//! The simulated drone from outside, with a virtual clock; the server over real sockets and pseudo-terminals.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod bench;
mod connect;
mod flight;
mod hazards;
mod log;
mod param;
mod server;
mod supervisor;
