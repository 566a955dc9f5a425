//! Records of what reaches the drone and what leaves it. Off unless asked for, and then one branch.

use crtp::Packet;
use tap::{Direction, Hop, MonoNs, Stage, Tap};

/// One end's way into a log.
#[derive(Debug, Default)]
pub(super) struct DroneTap(Tap);

impl DroneTap {
    pub(super) const fn new(tap: Tap) -> Self {
        Self(tap)
    }

    /// The drone takes a packet now.
    pub(super) fn received(&mut self, packet: &Packet) {
        self.note(Stage::D0, Direction::Up, packet);
    }

    /// The drone gives a packet now.
    pub(super) fn sent(&mut self, packet: &Packet) {
        self.note(Stage::D1, Direction::Down, packet);
    }

    fn note(&mut self, stage: Stage, direction: Direction, packet: &Packet) {
        if self.0.is_on() {
            self.0.record(&Hop::new(
                MonoNs::now(),
                0,
                stage,
                direction,
                packet.as_bytes(),
            ));
        }
    }
}
