//! Whole programs, real pseudo-terminals and real sockets. One test binary, so that it is built once.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bridge;
mod emulate;
mod loopback;
mod ping;
mod realtime;
mod tools;
