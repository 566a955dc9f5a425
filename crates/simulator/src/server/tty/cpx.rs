//! The drone's end of a CPX line: a session in the device's role. Damaged frames are recorded, as
//! a real drone would have restarted on them.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use crtp_uart::cpx::System;
use crtp_uart::session::Phase;
use crtp_uart::{Config, Device, Event, Gone, Pty, PtyError, Pump, Session};

use super::super::tap::DroneTap;
use super::Tty;
use crate::{Drone, Hazard};

/// Packets handed to the session ahead of clear-to-send, as many as the firmware's transmit queue.
const AHEAD: usize = 4;

#[derive(Debug)]
pub(super) struct Line {
    pty: Pty,
    pump: Pump,
    session: Session<Device>,
    client: bool,
    tap: DroneTap,
    bad_xor: u64,
    oversize: u64,
    /// What the drone takes for each frame before it clears to send.
    frame_time: Duration,
    /// Nothing is written before.
    busy_until: Option<Instant>,
}

impl Line {
    pub(super) fn open(path: &Path, frame_time: Duration, now: Instant) -> Result<Self, PtyError> {
        Ok(Self {
            pty: Pty::open(Some(path))?,
            pump: Pump::new(),
            session: Session::device(Config::device(), now),
            client: false,
            tap: DroneTap::default(),
            bad_xor: 0,
            oversize: 0,
            frame_time,
            busy_until: None,
        })
    }

    fn deliver(&mut self, now: Instant, drone: &mut Drone) -> bool {
        let mut heard = false;
        while let Some(event) = self.session.poll_event() {
            heard |= self.handle_event(event);
        }
        while let Some(packet) = self.session.recv() {
            heard = true;
            self.tap.received(&packet);
            self.keep_busy(now);
            drone.handle_packet(now, &packet);
        }
        self.note_damage(now, drone);
        heard
    }

    /// A frame takes its time, after those before it.
    fn keep_busy(&mut self, now: Instant) {
        if !self.frame_time.is_zero() {
            self.busy_until =
                Some(self.busy_until.map_or(now, |until| until.max(now)) + self.frame_time);
        }
    }

    fn handle_event(&mut self, event: Event) -> bool {
        match event {
            Event::System(System::ClientConnected(connected)) => self.client = connected,
            Event::System(System::UseThisLink(on)) => return on,
            _ => {}
        }
        false
    }

    fn note_damage(&mut self, now: Instant, drone: &mut Drone) {
        let decode = self.session.stats().decode;
        for _ in self.bad_xor..decode.bad_xor {
            drone.record_hazard(now, Hazard::UartChecksum);
        }
        for _ in self.oversize..decode.oversize {
            drone.record_hazard(now, Hazard::UartOversize);
        }
        (self.bad_xor, self.oversize) = (decode.bad_xor, decode.oversize);
    }

    /// Hands packets to the session while it has room; whether there was one.
    fn feed(&mut self, now: Instant, drone: &mut Drone) -> bool {
        let mut fed = false;
        while self.session.phase() == Phase::Up && self.session.backlog() < AHEAD {
            let Some(packet) = drone.poll_transmit() else {
                break;
            };
            self.tap.sent(&packet);
            // There is room and the session is up, so that nothing is refused.
            fed |= self.session.send(now, packet, None, None).is_ok();
        }
        fed
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

    /// Whether the host has said so.
    fn has_client(&self, _now: Instant) -> bool {
        self.client
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let session = self.session.poll_timeout().map(|(due, _)| due);
        session.into_iter().chain(self.busy_until).min()
    }

    fn receive(&mut self, now: Instant, drone: &mut Drone) -> Result<bool, Gone> {
        self.pump.receive(now, &self.pty, &mut self.session)?;
        Ok(self.deliver(now, drone))
    }

    fn handle_timeout(&mut self, now: Instant, drone: &mut Drone) {
        self.busy_until = self.busy_until.filter(|until| *until > now);
        if self
            .session
            .poll_timeout()
            .is_some_and(|(due, _)| due <= now)
        {
            self.session.handle_timeout(now);
            self.deliver(now, drone);
        }
    }

    fn transmit(&mut self, now: Instant, drone: &mut Drone, counts: bool) -> Result<(), Gone> {
        if self.busy_until.is_some_and(|until| until > now) {
            return Ok(());
        }
        loop {
            let fed = counts && self.feed(now, drone);
            self.pump.transmit(now, &self.pty, &mut self.session)?;
            if !fed || self.session.backlog() > 0 {
                return Ok(());
            }
        }
    }
}
