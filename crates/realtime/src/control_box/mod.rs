//! A fake control box and its responder: a state of 2373 bytes each millisecond, a reply of 371 bytes with the same id
//! before the next, a stop after 20 misses in a row.
//!
//! `rules`, `score`, `wire` and `responder` are pure; `network` and `run` do the I/O.

pub mod network;
pub mod report;
pub mod responder;
pub mod rules;
pub mod run;
pub mod score;
pub mod wire;
