//! The tests that go across modules, in one binary.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod control_box;
mod doctor;
mod live;
mod periodic;
