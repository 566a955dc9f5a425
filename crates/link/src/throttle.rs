//! At most one log line a second for one cause.

use std::time::{Duration, Instant};

const PERIOD: Duration = Duration::from_secs(1);

/// Remembers when it last allowed a line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Throttle(Option<Instant>);

impl Throttle {
    pub(crate) fn allows(&mut self, now: Instant) -> bool {
        let due = self
            .0
            .is_none_or(|last| now.saturating_duration_since(last) >= PERIOD);
        if due {
            self.0 = Some(now);
        }
        due
    }
}
