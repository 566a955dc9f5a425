//! How long the peer takes for a frame, smoothed. Owns the estimate only.

use std::time::Duration;

/// Share of a new sample, as for round trips in RFC 6298.
const SHARE: u32 = 8;

/// From the first byte of a frame to the clear-to-send that answers it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Service {
    time: Option<Duration>,
}

impl Service {
    /// A frame took so long.
    pub(super) fn note(&mut self, took: Duration) {
        let mean = |before: Duration| before - before / SHARE + took / SHARE;
        self.time = Some(self.time.map_or(took, mean));
    }

    /// The mean so far.
    pub(super) const fn time(&self) -> Option<Duration> {
        self.time
    }
}
