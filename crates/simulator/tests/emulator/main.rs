//! The emulated path in virtual time, and as a proxy between real sockets.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod direction;
mod proxy;
