//! Port 15 and the question whether a client is there.

use crtp::{Channel, Packet};

use super::Drone;
use crate::record::{LinkChange, seconds};

/// Changes kept; later ones are not recorded.
const KEPT: usize = 200;

/// Whether a client is there, and since when nothing was heard.
#[derive(Clone, Debug)]
pub(super) struct Presence {
    connected: bool,
    heard_ms: Option<u64>,
    changes: Vec<LinkChange>,
}

impl Presence {
    pub(super) const fn new() -> Self {
        Self {
            connected: true,
            heard_ms: None,
            changes: Vec::new(),
        }
    }

    pub(super) const fn connected(&self) -> bool {
        self.connected
    }

    pub(super) const fn heard(&mut self, now_ms: u64) {
        self.heard_ms = Some(now_ms);
    }

    pub(super) fn set(&mut self, now_ms: u64, connected: bool, setpoint_age_ms: u64) {
        if connected == self.connected {
            return;
        }
        self.connected = connected;
        // A link that has carried nothing yet was not lost.
        let news = connected || self.heard_ms.is_some();
        if news && self.changes.len() < KEPT {
            self.changes.push(LinkChange {
                t_s: seconds(now_ms),
                connected,
                packet_age_ms: now_ms - self.heard_ms.unwrap_or(now_ms),
                setpoint_age_ms,
            });
        }
    }

    pub(super) fn changes(&self) -> &[LinkChange] {
        &self.changes
    }
}

impl Drone {
    /// Echo, source and sink, answered in the request's own header.
    pub(super) fn link_service(&mut self, packet: &Packet) {
        match packet.channel() {
            Channel::C0 => self.send(*packet),
            Channel::C1 => {
                let mut text = [0; crtp::MAX_DATA];
                text[..18].copy_from_slice(b"Bitcraze Crazyflie");
                self.answer(packet, &text);
            }
            _ => {}
        }
    }

    /// Sends `data` behind the request's header, as the firmware does where it reuses the buffer.
    pub(super) fn answer(&mut self, request: &Packet, data: &[u8]) {
        match Packet::with_header(request.header(), data) {
            Ok(packet) => self.send(packet),
            Err(_) => self.traffic.ignored += 1,
        }
    }
}
