//! Whole endpoints against each other in virtual time. No sleeps; real sockets only in `sockets`, with generous bounds.

#![allow(clippy::unwrap_used, reason = "test helpers outside test functions")]

mod allocations;
mod bulk;
mod endurance;
mod frames;
mod fuzz;
mod grid;
mod lifecycle;
mod net;
mod overload;
mod pace;
mod pair;
mod repair;
mod reports;
mod requests;
mod restart;
mod security;
mod sockets;
mod streams;
