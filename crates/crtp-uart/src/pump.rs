//! Moves bytes between a descriptor that never blocks and a [`Wire`]: everything there is in one read,
//! clear-to-send and frame in one write. Owns what a full port has not taken yet; adds no byte of its own.

use std::os::fd::AsFd;
use std::time::Instant;

use arrayvec::ArrayVec;
use rustix::io::Errno;

use crate::cpx::MAX_FRAME;
use crate::wire::Wire;

/// Bytes of one read; a terminal keeps at most 4096.
const READ_SIZE: usize = 4096;

/// Calls and bytes of one port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PumpStats {
    /// Reads that gave bytes.
    pub reads: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Most bytes of one read.
    pub largest_read: u64,
    /// Writes that took bytes.
    pub writes: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Writes that took fewer bytes than there were, or none.
    pub partial_writes: u64,
}

/// Why no more bytes can be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Gone {
    /// The device was unplugged, or the other side of a pseudo-terminal was closed.
    #[error("device hung up")]
    HungUp,
    /// The system says so.
    #[error("{0}")]
    Failed(Errno),
}

/// Moves bytes.
#[derive(Clone, Debug, Default)]
pub struct Pump {
    pending: ArrayVec<u8, { MAX_FRAME + 2 }>,
    stats: PumpStats,
}

impl Pump {
    /// Nothing pending.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether to wait until the port can be written.
    #[must_use]
    pub fn wants_write(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Forgets what a port that is gone has not taken.
    pub fn discard(&mut self) {
        self.pending.clear();
    }

    /// Calls and bytes so far.
    #[must_use]
    pub const fn stats(&self) -> PumpStats {
        self.stats
    }

    /// Reads whatever is there into the session, as long as it takes more. The session's timers may have changed.
    ///
    /// # Errors
    /// [`Gone`]: the port is of no more use.
    pub fn receive<W: Wire + ?Sized>(
        &mut self,
        now: Instant,
        port: impl AsFd,
        session: &mut W,
    ) -> Result<(), Gone> {
        let mut bytes = [0; READ_SIZE];
        loop {
            match rustix::io::read(&port, &mut bytes) {
                Ok(0) => return Err(Gone::HungUp),
                Ok(count) => {
                    self.count_read(count);
                    session.handle_bytes(now, &bytes[..count]);
                    if count < READ_SIZE || !session.has_room() {
                        return Ok(());
                    }
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(gone(error)),
            }
        }
    }

    /// Writes whatever the session has to send, as far as the port takes it.
    ///
    /// # Errors
    /// [`Gone`]: the port is of no more use.
    pub fn transmit<W: Wire + ?Sized>(
        &mut self,
        now: Instant,
        port: impl AsFd,
        session: &mut W,
    ) -> Result<(), Gone> {
        loop {
            if self.pending.is_empty() {
                let Some(bytes) = session.poll_transmit(now) else {
                    return Ok(());
                };
                self.pending.extend(bytes.iter().copied());
            }
            if !self.write_pending(&port)? {
                return Ok(());
            }
        }
    }

    /// Whether everything was written.
    fn write_pending(&mut self, port: impl AsFd) -> Result<bool, Gone> {
        let written = match rustix::io::write(port, &self.pending) {
            Ok(written) => written,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(error) => return Err(gone(error)),
        };
        self.pending.drain(..written);
        self.stats.writes += u64::from(written > 0);
        self.stats.bytes_written += written as u64;
        self.stats.partial_writes += u64::from(self.wants_write());
        Ok(!self.wants_write())
    }

    fn count_read(&mut self, count: usize) {
        self.stats.reads += 1;
        self.stats.bytes_read += count as u64;
        self.stats.largest_read = self.stats.largest_read.max(count as u64);
    }
}

fn gone(error: Errno) -> Gone {
    match error {
        Errno::IO | Errno::NXIO | Errno::NODEV => Gone::HungUp,
        other => Gone::Failed(other),
    }
}
