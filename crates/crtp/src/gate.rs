//! The gate every packet passes on its way to a drone: it admits exactly the packets the firmware can take
//! without crashing, asserting or using stale bytes as setpoints. It never changes a packet and never builds
//! one; what it refuses, it refuses with the rule that did.
//!
//! Null packets (port 15, channel 3) are admitted: the firmware ignores them, and links that poll need them.
//! Ports that no firmware module listens on are refused, so that a client learns of its mistake by a counter.

mod parameters;
mod reject;
mod rules;
#[cfg(test)]
mod tests;

use std::ops::Deref;

pub use reject::{Reject, RejectCounts};

use crate::packet::Packet;
use parameters::Sizes;

/// A packet that the gate has let through; only [`Gate::admit`] makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Admitted(Packet);

impl Admitted {
    /// The null packet, which no firmware acts on: what links that poll send when they have nothing else.
    pub const NULL: Self = Self(Packet::NULL);

    /// The packet itself.
    #[must_use]
    pub const fn into_packet(self) -> Packet {
        self.0
    }
}

impl Deref for Admitted {
    type Target = Packet;

    fn deref(&self) -> &Packet {
        &self.0
    }
}

/// One drone's gate. Feed it the drone's packets with [`Gate::observe`]: the firmware asserts on requests for
/// memories it does not have, so memories are refused until the drone has said how many there are. And it takes stale
/// bytes for the rest of a parameter's value, so a value shorter or longer than the drone has told is refused; of a
/// parameter that it has not told yet any length that a value can have is let through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gate {
    memories: Option<u8>,
    parameters: Sizes,
}

impl Gate {
    /// A gate that knows of no memories and no parameters yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            memories: None,
            parameters: Sizes::new(),
        }
    }

    /// Learns from a packet of the drone the number of memories (`40 01 count`), or the size of a parameter: from its
    /// item in the table (`20 02 id type`) or from its value (`21 id 00 value`). Other packets change nothing.
    pub fn observe(&mut self, packet: &Packet) {
        match (packet.kind(), packet.data()) {
            (0x40, [1, count, ..]) => self.memories = Some(*count),
            (0x20, [2, low, high, kind, ..]) => self.parameters.note_type([*low, *high], *kind),
            (0x21, [low, high, 0, value @ ..]) => {
                self.parameters.note_size([*low, *high], value.len());
            }
            _ => {}
        }
    }

    /// Forgets all of it: the drone may have been exchanged or restarted with other decks.
    pub fn forget(&mut self) {
        self.memories = None;
        self.parameters.forget();
    }

    /// The number of memories the drone has announced, if it has.
    #[must_use]
    pub const fn memories(&self) -> Option<u8> {
        self.memories
    }

    /// Lets a packet through, unchanged, if the firmware can take it.
    ///
    /// # Errors
    /// The rule that refuses it.
    pub fn admit(&self, packet: &Packet) -> Result<Admitted, Reject> {
        rules::check(packet, self.memories)?;
        self.parameters.check(packet)?;
        Ok(Admitted(*packet))
    }
}
