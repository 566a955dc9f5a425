//! Crazy Real-Time Protocol (CRTP): packets, their layouts, and the gate that keeps a drone from crashing.
//!
//! This crate owns bytes. It never looks at a clock, does no I/O and keeps no connection state.
//!
//! There is one module a port. Each has plain structures with `encode` and `parse` for both roles: requests,
//! which have exactly their length, and the drone's replies, which may be longer than known here. All values
//! are in the units of the wire (degrees, thrust counts, …), as each field says.

pub mod commander;
pub mod console;
mod error;
mod full_state;
mod gate;
pub mod high_level;
pub mod link_service;
pub mod localization;
pub mod log;
mod mailbox;
pub mod memory;
mod packet;
pub mod param;
pub mod platform;
pub mod setpoint;
mod status;
pub mod supervisor;
pub mod toc;
pub mod trajectory;
mod value;
mod version;
mod wire;

pub use error::{ParseError, ValueError};
pub use full_state::{FullState, compress_quaternion, decompress_quaternion};
pub use gate::{Admitted, Gate, Reject, RejectCounts};
pub use half::f16;
pub use mailbox::mailbox_key;
pub use packet::{Channel, MAX_DATA, MAX_PACKET, Packet, PacketError, Port};
pub use status::Status;
pub use value::{Kind, MAX_VALUE, Value};
pub use version::ProtocolVersion;
