//! Paces: the time that one message takes at each stage, from the application that sends to the one that receives. Measures
//! one's own, keeps what the peer tells of its reader, and holds messages back so that they leave at the pace of the
//! slowest. Small state machines without a clock; they know no message.

use std::time::{Duration, Instant};

use crate::time::Span;

/// A pause longer than this is none of the pace.
const PAUSE: Duration = Duration::from_secs(1);
/// Deliveries measured before anything is said of the reader.
const SAMPLES: u32 = 8;
/// A reader that has had nothing waiting for this long is no limit.
const MEMORY: Duration = Duration::from_secs(1);
/// Least time between two tellings, and longest while there is something to tell.
const TELL_MIN: Duration = Duration::from_millis(20);
const TELL_MAX: Duration = Duration::from_millis(500);
/// Messages may leave in groups of this many before they are spaced.
const GROUP: u32 = 3;
/// Departures are this much slower than the reader, so that what waits there drains.
const DRAIN: f64 = 1.05;
/// A limit that is lifted goes step by step, one each [`EASE_EVERY`], first gently, in case the reader is still not much
/// faster, then quickly, until it is below [`NO_LIMIT`].
const EASE: f64 = 0.92;
const EASE_QUICK: f64 = 0.5;
const GENTLE_STEPS: u32 = 6;
const EASE_EVERY: Duration = Duration::from_millis(100);
const NO_LIMIT: Duration = Duration::from_micros(20);

/// Mean time between events.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Beat {
    last: Option<Instant>,
    mean: Option<Duration>,
}

impl Beat {
    pub(crate) fn on_event(&mut self, now: Instant) {
        let Some(last) = self.last.replace(now) else {
            return;
        };
        let gap = now.saturating_duration_since(last);
        if gap < PAUSE {
            self.mean = Some(self.mean.map_or(gap, |mean| (mean * 15 + gap) / 16));
        }
    }

    pub(crate) const fn mean(&self) -> Option<Duration> {
        self.mean
    }
}

/// Pace of the local reader, as far as messages wait for it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reader {
    /// Last delivery, if another message was waiting then.
    last: Option<Instant>,
    mean: Duration,
    samples: u32,
    seen: Option<Instant>,
}

impl Reader {
    /// A message was delivered; `more` wait.
    pub(crate) fn on_delivery(&mut self, now: Instant, more: bool) {
        if let Some(last) = self.last {
            let gap = now.saturating_duration_since(last);
            self.mean = if self.samples == 0 {
                gap
            } else {
                (self.mean * 15 + gap) / 16
            };
            self.samples = self.samples.saturating_add(1);
            self.seen = Some(now);
        }
        self.last = more.then_some(now);
    }

    /// The reader came and found nothing.
    pub(crate) const fn on_empty(&mut self) {
        self.last = None;
    }

    /// Time per message, if the reader is the limit.
    pub(crate) fn pace(&mut self, now: Instant) -> Option<Duration> {
        let fresh = self
            .seen
            .is_some_and(|at| now.saturating_duration_since(at) < MEMORY);
        if !fresh {
            self.samples = 0;
        }
        (self.samples >= SAMPLES && self.mean > NO_LIMIT).then_some(self.mean)
    }
}

/// When to tell the peer what.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Teller {
    told: Option<(Instant, Span)>,
}

impl Teller {
    /// What to tell now, if anything: changes soon, a standing limit again and again.
    pub(crate) fn poll(&self, now: Instant, pace: Option<Duration>) -> Option<Span> {
        let pace = pace.map_or(Span::ZERO, Span::ceil);
        let Some((at, told)) = self.told else {
            return (pace != Span::ZERO).then_some(pace);
        };
        let due = match (told == Span::ZERO, pace == Span::ZERO) {
            (true, true) => return None,
            (false, false) if !differ(told, pace) => at + TELL_MAX,
            (false, false) | (true, false) | (false, true) => at + TELL_MIN,
        };
        (due <= now).then_some(pace)
    }

    pub(crate) const fn on_told(&mut self, now: Instant, pace: Span) {
        self.told = Some((now, pace));
    }
}

/// By more than an eighth.
fn differ(a: Span, b: Span) -> bool {
    let (a, b) = (a.duration().unwrap_or(PAUSE), b.duration().unwrap_or(PAUSE));
    a.abs_diff(b) > a.max(b) / 8
}

/// What limits our departures besides the path: the peer's reader, and what is behind it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limit {
    pace: Option<Duration>,
    lifted: Option<Instant>,
    steps: u32,
    next: Option<Instant>,
}

impl Limit {
    /// The peer tells its pace; zero: no limit (any more).
    pub(crate) fn on_told(&mut self, now: Instant, pace: Span) {
        match pace.duration().filter(|pace| !pace.is_zero()) {
            Some(pace) => {
                self.pace = Some(pace.min(PAUSE).mul_f64(DRAIN));
                self.lifted = None;
                self.steps = 0;
            }
            None => self.lifted = self.lifted.or_else(|| self.pace.map(|_| now)),
        }
    }

    /// Time per message at the peer, if it is a limit.
    pub(crate) const fn pace(&self) -> Option<Duration> {
        self.pace
    }

    /// How long a message that leaves now may have to wait for the reader.
    pub(crate) fn wait(&self) -> Duration {
        self.pace.unwrap_or_default() * (GROUP + 1)
    }

    /// Whether a message may leave.
    pub(crate) fn ready(&self, now: Instant) -> bool {
        self.pace.is_none() || self.next.is_none_or(|next| next <= now)
    }

    /// When the next message may leave.
    pub(crate) const fn next(&self) -> Option<Instant> {
        self.next
    }

    /// A message leaves.
    pub(crate) fn charge(&mut self, now: Instant) {
        let Some(pace) = self.pace else { return };
        let earliest = now.checked_sub(pace * GROUP).unwrap_or(now);
        self.next = Some(self.next.map_or(earliest, |next| next.max(earliest)) + pace);
    }

    /// Takes the steps of easing that are due.
    pub(crate) fn ease(&mut self, now: Instant) {
        while let (Some(lifted), Some(pace)) = (self.lifted, self.pace)
            && now.saturating_duration_since(lifted) >= EASE_EVERY
        {
            self.lifted = Some(lifted + EASE_EVERY);
            self.steps += 1;
            let gentle = self.steps <= GENTLE_STEPS;
            let pace = pace.mul_f64(if gentle { EASE } else { EASE_QUICK });
            self.pace = Some(pace).filter(|pace| *pace > NO_LIMIT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_reader_is_a_limit_only_while_messages_wait_for_it() {
        let start = Instant::now();
        let mut reader = Reader::default();
        for n in 0..20u32 {
            reader.on_delivery(start + 10 * MS * n, false);
        }
        assert_eq!(reader.pace(start + 200 * MS), None);
        for n in 20..40u32 {
            reader.on_delivery(start + 10 * MS * n, true);
        }
        assert_eq!(reader.pace(start + 400 * MS), Some(10 * MS));
        assert_eq!(reader.pace(start + 2000 * MS), None);
    }

    #[test]
    fn a_reader_that_takes_many_at_once_has_their_mean_pace() {
        let start = Instant::now();
        let mut reader = Reader::default();
        for n in 0..400u32 {
            reader.on_delivery(start + 80 * MS * (n / 8), true);
        }
        let pace = reader.pace(start + 80 * MS * 49).unwrap();
        assert!((6 * MS..14 * MS).contains(&pace), "{pace:?}");
    }

    #[test]
    fn departures_keep_the_pace_told_and_go_free_step_by_step() {
        let start = Instant::now();
        let mut limit = Limit::default();
        let count = |limit: &mut Limit, from: Duration, to: Duration| {
            let mut sent = 0;
            let mut at = start + from;
            while at < start + to {
                limit.ease(at);
                while limit.ready(at) && sent < 10_000 {
                    limit.charge(at);
                    sent += 1;
                }
                at += MS;
            }
            sent
        };
        limit.on_told(start, Span::ceil(10 * MS));
        let sent = count(&mut limit, Duration::ZERO, 1000 * MS);
        assert!((93..=100).contains(&sent), "{sent}");
        limit.on_told(start + 1000 * MS, Span::ZERO);
        assert!(count(&mut limit, 1000 * MS, 1300 * MS) < 80);
        assert_eq!(count(&mut limit, 4000 * MS, 6000 * MS), 10_000);
        assert_eq!(limit.pace(), None);
    }

    #[test]
    fn only_changes_and_standing_limits_are_told() {
        let start = Instant::now();
        let mut teller = Teller::default();
        assert_eq!(teller.poll(start, None), None);
        let ten = Span::ceil(10 * MS);
        assert_eq!(teller.poll(start, Some(10 * MS)), Some(ten));
        teller.on_told(start, ten);
        assert_eq!(teller.poll(start + 100 * MS, Some(10 * MS)), None);
        assert_eq!(teller.poll(start + 500 * MS, Some(10 * MS)), Some(ten));
        assert_eq!(teller.poll(start + 10 * MS, Some(20 * MS)), None);
        assert!(teller.poll(start + 20 * MS, Some(20 * MS)).is_some());
        assert_eq!(teller.poll(start + 20 * MS, None), Some(Span::ZERO));
        teller.on_told(start + 20 * MS, Span::ZERO);
        assert_eq!(teller.poll(start + 900 * MS, None), None);
    }
}
