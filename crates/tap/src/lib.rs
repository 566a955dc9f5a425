//! Records of what happens to packets, and the way from where they are taken to whoever keeps them.
//!
//! The lowest layer of the packet log: links, bridges and programs hold a [`Tap`], which is off unless somebody asked
//! for a log and then costs one branch. Taking a record never blocks, locks, allocates or fails; what finds its ring
//! full is counted. Files are the business of `latency::record`.

mod hop;
mod ring;
pub mod time;

pub use hop::{DATA_LEN, Direction, Hop, Reason, Stage, Verdict};
pub use ring::{RING, Rings, Tap};
pub use time::{Anchor, MonoNs};
