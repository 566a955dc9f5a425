//! How a thread runs: policies, affinity, slack, memory and wake-up latency, with every refusal explained.
//!
//! Owns the asking and the reading back; never decides to run under something else than asked for.

pub mod facts;
pub mod policy;
pub mod process;
pub mod refusal;
pub mod settings;
