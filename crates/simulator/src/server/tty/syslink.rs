//! The drone's end of a syslink line: one packet goes down for each that comes up, the one that has waited longest.
//! Damaged frames are dropped without a word, as on board.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;
use std::time::Instant;

use crtp_uart::syslink::Device;
use crtp_uart::{Gone, Pty, PtyError, Pump};

use super::super::tap::DroneTap;
use super::Tty;
use crate::Drone;

#[derive(Debug)]
pub(super) struct Line {
    pty: Pty,
    pump: Pump,
    device: Device,
    tap: DroneTap,
}

impl Line {
    pub(super) fn open(path: &Path) -> Result<Self, PtyError> {
        Ok(Self {
            pty: Pty::open(Some(path))?,
            pump: Pump::new(),
            device: Device::new(),
            tap: DroneTap::default(),
        })
    }
}

impl Tty for Line {
    fn set_tap(&mut self, tap: DroneTap) {
        self.tap = tap;
    }

    fn path(&self) -> &Path {
        self.pty.host_path()
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pty.as_fd()
    }

    fn wants_write(&self) -> bool {
        self.pump.wants_write()
    }

    fn has_client(&self, now: Instant) -> bool {
        self.device.is_connected(now)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.device.lost_at()
    }

    /// The firmware hands a packet on and then lets one go that waited already: the answer to a packet leaves with
    /// the next one.
    fn receive(&mut self, now: Instant, drone: &mut Drone) -> Result<bool, Gone> {
        self.pump.receive(now, &self.pty, &mut self.device)?;
        let mut heard = false;
        while let Some(packet) = self.device.recv() {
            heard = true;
            // A host that does not read leaves the drone's packets where they are.
            if !self.pump.wants_write()
                && let Some(waited) = drone.poll_transmit()
            {
                self.tap.sent(&waited);
                self.device.answer(&waited);
            }
            self.tap.received(&packet);
            drone.handle_packet(now, &packet);
            self.pump.transmit(now, &self.pty, &mut self.device)?;
        }
        Ok(heard)
    }

    fn handle_timeout(&mut self, now: Instant, _drone: &mut Drone) {
        self.device.handle_timeout(now);
    }

    fn transmit(&mut self, now: Instant, _drone: &mut Drone, _counts: bool) -> Result<(), Gone> {
        self.pump.transmit(now, &self.pty, &mut self.device)
    }
}
