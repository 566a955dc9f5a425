//! The drone's end of a serial line in any framing, on a pseudo-terminal. Owns the contract and the choice.

mod cpx;
mod syslink;

use std::fmt::Debug;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use crtp_uart::{Gone, PtyError};

use super::tap::DroneTap;
use crate::Drone;

/// How packets are framed on the serial line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// CPX with clear-to-send, as firmware since July 2022.
    #[default]
    Cpx,
    /// Syslink with a polled downlink, as firmware from 2020 to 2022.
    Syslink,
}

/// A drone's serial line.
pub(super) trait Tty: Debug + Send {
    /// Records from now on what reaches the drone and what leaves it.
    fn set_tap(&mut self, tap: DroneTap);

    /// What a host opens.
    fn path(&self) -> &Path;

    fn as_fd(&self) -> BorrowedFd<'_>;

    fn wants_write(&self) -> bool;

    /// Whether a client is there, as far as the framing can tell.
    fn has_client(&self, now: Instant) -> bool;

    fn poll_timeout(&self) -> Option<Instant>;

    /// Takes everything that has come; whether the host asked for something.
    fn receive(&mut self, now: Instant, drone: &mut Drone) -> Result<bool, Gone>;

    fn handle_timeout(&mut self, now: Instant, drone: &mut Drone);

    /// Writes what the framing owes, and the drone's packets if `counts`: the downlink is this line's.
    fn transmit(&mut self, now: Instant, drone: &mut Drone, counts: bool) -> Result<(), Gone>;
}

/// Makes a pseudo-terminal that speaks `framing`, linked to `path`, and takes `frame_time` for each CPX frame.
pub(super) fn open(
    path: &Path,
    framing: Framing,
    frame_time: Duration,
    now: Instant,
) -> Result<Box<dyn Tty>, PtyError> {
    Ok(match framing {
        Framing::Cpx => Box::new(cpx::Line::open(path, frame_time, now)?),
        Framing::Syslink => Box::new(syslink::Line::open(path)?),
    })
}
