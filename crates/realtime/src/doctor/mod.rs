//! Read-only checks of a machine, live or recorded: what was read, what it means, what to do about it.
//!
//! A check reads through [`machine::Machine`] only, so that a recorded machine is judged like a live one. Nothing is
//! ever changed.

pub mod catalogue;
pub mod checks;
pub mod finding;
pub mod machine;
pub mod profile;
pub mod report;
pub mod self_test;

pub use catalogue::examine;
pub use finding::{Finding, Verdict};
pub use machine::Machine;
pub use profile::Profile;
