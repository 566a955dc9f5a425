//! The sizes of the parameters a drone has told of. Learned from its packets, asked at every write; an id that was never
//! seen is not judged.

use super::Reject;
use crate::packet::Packet;

/// Ids beyond this are not kept: no firmware has nearly as many parameters, and a peer that invents them costs no memory.
const MOST: usize = 4096;

/// Size of each value in bytes by id; 0 where it is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sizes(Vec<u8>);

impl Sizes {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    /// The type byte of a table item: its two low bits are the binary logarithm of the size.
    pub(super) fn note_type(&mut self, id: [u8; 2], kind: u8) {
        self.note_size(id, 1 << (kind & 0b11));
    }

    pub(super) fn note_size(&mut self, id: [u8; 2], size: usize) {
        let id = usize::from(u16::from_le_bytes(id));
        if id >= MOST || !matches!(size, 1 | 2 | 4 | 8) {
            return;
        }
        if self.0.len() <= id {
            self.0.resize(id + 1, 0);
        }
        // It is one of four small numbers.
        self.0[id] = size as u8;
    }

    /// Refuses a write (port 2, channel 2: id and value) whose value has another size than the drone has told.
    pub(super) fn check(&self, packet: &Packet) -> Result<(), Reject> {
        let (0x22, [low, high, value @ ..]) = (packet.kind(), packet.data()) else {
            return Ok(());
        };
        let id = usize::from(u16::from_le_bytes([*low, *high]));
        match self.0.get(id) {
            Some(&size) if size != 0 && usize::from(size) != value.len() => {
                Err(Reject::ParamLength)
            }
            Some(_) | None => Ok(()),
        }
    }
}
