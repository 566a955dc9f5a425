//! The absolute periodic loop: its schedule, what is recorded of each cycle, who disturbed the worst ones.
//!
//! The schedule and the records are pure; `runner` is the only part that sleeps.

pub mod cell;
pub mod counters;
pub mod export;
pub mod job;
pub mod load;
pub mod published;
pub mod record;
pub mod report;
pub mod runner;
pub mod schedule;
pub mod spin;
pub mod summary;
pub mod surroundings;
pub mod verdict;
pub mod watch;
