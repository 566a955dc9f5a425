//! Crazy Real-Time Protocol (CRTP): packets, their layouts, and the gate that keeps a drone from crashing.
//!
//! This crate owns bytes. It never looks at a clock, does no I/O and keeps no connection state.

mod gate;
mod mailbox;
mod packet;

pub use gate::{Admitted, Gate, Reject, RejectCounts};
pub use mailbox::mailbox_key;
pub use packet::{Channel, MAX_DATA, MAX_PACKET, Packet, PacketError, Port};
