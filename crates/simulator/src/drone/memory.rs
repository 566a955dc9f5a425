//! The memories a client can read and write: the trajectory memory and the memory tester. Requests beyond an end
//! fail with an I/O status.

use crtp::Status;
use crtp::memory::{Details, Kind};
use crtp::trajectory::MEMORY_SIZE;

/// Size of the memory tester, bytes.
const TESTER_SIZE: u32 = 0x1000;

/// The memories by id: 0 trajectories, 1 the tester, which reads as its addresses.
#[derive(Clone, Debug)]
pub(crate) struct Memories {
    trajectories: Box<[u8; MEMORY_SIZE]>,
}

impl Memories {
    pub(crate) const COUNT: u8 = 2;

    pub(crate) fn new() -> Self {
        Self {
            trajectories: Box::new([0; MEMORY_SIZE]),
        }
    }

    pub(crate) fn trajectories(&self) -> &[u8] {
        self.trajectories.as_slice()
    }

    pub(crate) const fn details(id: u8) -> Option<Details> {
        let (kind, size) = match id {
            0 => (Kind::TRAJECTORY, MEMORY_SIZE as u32),
            1 => (Kind::TESTER, TESTER_SIZE),
            _ => return None,
        };
        Some(Details {
            id,
            kind,
            size,
            serial: [0; 8],
        })
    }

    /// Reads into `out`.
    pub(crate) fn read(&self, id: u8, address: u32, out: &mut [u8]) -> Status {
        if id != 0 {
            out.iter_mut()
                .zip(address..)
                .for_each(|(byte, address)| *byte = address as u8);
            return Status::OK;
        }
        match self.trajectories.get(range(address, out.len())) {
            Some(bytes) => out.copy_from_slice(bytes),
            None => return Status::IO,
        }
        Status::OK
    }

    pub(crate) fn write(&mut self, id: u8, address: u32, bytes: &[u8]) -> Status {
        if id != 0 {
            return Status::OK;
        }
        match self.trajectories.get_mut(range(address, bytes.len())) {
            Some(room) => room.copy_from_slice(bytes),
            None => return Status::IO,
        }
        Status::OK
    }
}

fn range(address: u32, length: usize) -> std::ops::Range<usize> {
    let start = usize::try_from(address).unwrap_or(usize::MAX);
    start..start.saturating_add(length)
}
