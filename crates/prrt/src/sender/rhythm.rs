//! Whether the messages of a stream come in a steady beat, and how long that is. Looks at births only.

use std::time::{Duration, Instant};

/// Beats in a row that make a rhythm.
const STEADY: u32 = 8;
/// Largest mean deviation of a steady beat, as a share of it; and what is allowed in any case.
const SHARE: u32 = 4;
const SLACK: Duration = Duration::from_micros(300);

/// Rhythm of one stream.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rhythm {
    last: Option<Instant>,
    period: Duration,
    deviation: Duration,
    beats: u32,
}

impl Rhythm {
    /// A message is born.
    pub(crate) fn on_birth(&mut self, now: Instant) {
        let Some(last) = self.last.replace(now) else {
            return;
        };
        let gap = now.saturating_duration_since(last);
        if self.beats == 0 || gap > self.period * 4 {
            self.period = gap;
            self.deviation = gap / 2;
            self.beats = 1;
            return;
        }
        let error = gap.abs_diff(self.period);
        self.deviation = (self.deviation * 7 + error) / 8;
        self.period = (self.period * 7 + gap) / 8;
        self.beats = self.beats.saturating_add(1);
    }

    /// The beat, if it is steady.
    pub(crate) fn period(&self) -> Option<Duration> {
        let steady = self.beats >= STEADY
            && self.deviation <= self.period / SHARE + SLACK
            && !self.period.is_zero();
        steady.then_some(self.period)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn after(gaps: impl Iterator<Item = u32>) -> Option<Duration> {
        let mut now = Instant::now();
        let mut rhythm = Rhythm::default();
        rhythm.on_birth(now);
        for gap in gaps {
            now += MS * gap;
            rhythm.on_birth(now);
        }
        rhythm.period()
    }

    #[test]
    fn a_steady_beat_is_found_and_lost() {
        assert_eq!(after(std::iter::repeat_n(10, 20)), Some(10 * MS));
        assert_eq!(after(std::iter::repeat_n(10, 5)), None);
        assert_eq!(
            after((0..100).map(|n| if n % 2 == 0 { 1 } else { 19 })),
            None
        );
        assert_eq!(after(std::iter::repeat_n(10, 20).chain([500])), None);
    }
}
