//! What can go wrong with a UART for good, and the words for a person whose drone does not answer.

use std::io;
use std::time::{Duration, Instant};

use crtp_uart::{Serial, SerialError};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::UartConfig;
use crate::uri::Framing;

/// Why a UART cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum UartError {
    /// See [`SerialError`].
    #[error(transparent)]
    Serial(#[from] SerialError),
}

/// A drone that says nothing, and what to look at.
pub(super) fn no_sign(config: &UartConfig, waited: Duration) -> String {
    let (what, build) = match config.framing {
        Framing::Cpx => ("clear-to-send", "DECK_FORCE=cpxOverUART2 built in"),
        Framing::Syslink => (
            "answer",
            "its firmware of 2020 to 2022 and built with the UART link (later ones speak framing=cpx)",
        ),
    };
    format!(
        "{}: no {what} from the drone in {:.0} s: is it powered, is {build}, \
         is its speed {} bit/s, are TX and RX crossed?",
        config.path.display(),
        waited.as_secs_f64(),
        config.baud
    )
}

/// A drone that was heard before and stands still.
pub(super) const fn stalled(framing: Framing) -> &'static str {
    match framing {
        Framing::Cpx => "the drone withholds clear-to-send",
        Framing::Syslink => "the drone is silent",
    }
}

/// Waits until the port has something or time is up.
pub(super) fn wait(serial: &Serial, write: bool, until: Instant) -> io::Result<()> {
    let mut flags = PollFlags::IN;
    flags.set(PollFlags::OUT, write);
    let left = until.saturating_duration_since(Instant::now());
    let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
    match rustix::event::poll(&mut [PollFd::new(serial, flags)], Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
