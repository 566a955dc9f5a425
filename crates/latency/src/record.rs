//! What happened to a packet at one place, and the log that keeps it.
//!
//! A [`Tap`] takes a record in well under a microsecond and never blocks; a low-priority thread writes the file.
//! When the file cannot keep up or cannot be written, records are dropped and counted, and nothing else happens.

mod file;
mod layout;
mod recorder;
mod recording;
#[cfg(test)]
mod tests;

pub use file::{Contents, HostInfo, LogError, read, read_bytes};
pub use layout::{HOP_LEN, SCHEMA, SCHEMA_NAME};
pub use recorder::{Recorder, Status};
pub use recording::Recording;
pub use tap::{DATA_LEN, Direction, Hop, Reason, Stage, Tap, Verdict};
