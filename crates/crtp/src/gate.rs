//! The gate every packet passes on its way to a drone: it admits exactly the packets the firmware can take
//! without crashing, asserting or using stale bytes as setpoints. It never changes a packet and never builds
//! one; what it refuses, it refuses with the rule that did.
//!
//! Null packets (port 15, channel 3) are admitted: the firmware ignores them, and links that poll need them.
//! Ports that no firmware module listens on are refused, so that a client learns of its mistake by a counter.

mod reject;
mod rules;
#[cfg(test)]
mod tests;

use std::ops::Deref;

pub use reject::{Reject, RejectCounts};

use crate::packet::Packet;

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
/// memories it does not have, so memories are refused until the drone has said how many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gate {
    memories: Option<u8>,
}

impl Gate {
    /// A gate that knows of no memories yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { memories: None }
    }

    /// Learns the number of memories from a packet of the drone (`40 01 count`); other packets change nothing.
    pub fn observe(&mut self, packet: &Packet) {
        if let (0x40, [1, count, ..]) = (packet.kind(), packet.data()) {
            self.memories = Some(*count);
        }
    }

    /// Forgets the number of memories: the drone may have been exchanged or restarted with other decks.
    pub const fn forget(&mut self) {
        self.memories = None;
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
        Ok(Admitted(*packet))
    }
}
