//! The receiving half of repairs on request: a message of a steady stream that is overdue is asked for, again and again
//! while it can still arrive in time. Knows births and arrivals, never contents; decides nothing about acknowledgements.

use std::time::{Duration, Instant};

use arrayvec::ArrayVec;

use crate::message::Stream;
use crate::seq::Seq;
use crate::window::WindowedMax;
use crate::wire::Writer;
use crate::wire::frame::{NACK_SPAN, Nack, Part};

/// Time between two requests for the same message.
const SPACING: Duration = Duration::from_micros(2500);
/// Least lateness that is excused.
const EXCUSE_MIN: Duration = Duration::from_millis(1);
/// Requests without any arrival in between; then the stream has ended or the path is down.
const MAX_UNHEARD: u8 = 8;
/// Most messages asked for at once on one stream, and most of them beyond the newest that arrived.
const MAX_MISSING: usize = NACK_SPAN;
const MAX_AHEAD: u32 = 8;
/// Above this share of messages later than usual the path reorders, and more lateness is excused. Jitter alone stays below.
const STRAGGLERS_MAX: f64 = 0.025;
/// How long the latest arrival is remembered.
const LATE_WINDOW: Duration = Duration::from_secs(10);
/// Weight of one arrival in the share of stragglers.
const STRAGGLERS_GAIN: f64 = 1.0 / 512.0;
/// Most streams followed.
const MAX_STREAMS: usize = 64;

/// A message that should have come.
#[derive(Clone, Copy, Debug)]
struct Missing {
    seq: Seq,
    /// Of no use from then on.
    until: Instant,
    /// Not asked for before.
    from: Instant,
}

/// One steady stream.
#[derive(Clone, Debug)]
struct Expected {
    stream: Stream,
    newest: Seq,
    /// When the newest would have arrived on the fastest way.
    nominal: Instant,
    period: Duration,
    life: Duration,
    /// Smoothed lateness against the fastest way and its deviation.
    late: Duration,
    deviation: Duration,
    /// Largest lateness lately.
    tail: WindowedMax<Duration>,
    /// Share of originals that came later than usually excused.
    stragglers: f64,
    /// Messages beyond the newest that are overdue.
    ahead: u32,
    missing: ArrayVec<Missing, MAX_MISSING>,
    /// When the next request may leave.
    next_request: Instant,
    unheard: u8,
}

impl Expected {
    fn new(
        now: Instant,
        nominal: Instant,
        part: &Part<'_>,
        period: Duration,
        life: Duration,
    ) -> Self {
        Self {
            stream: part.stream,
            newest: part.seq,
            nominal,
            period,
            life,
            late: now.saturating_duration_since(nominal),
            deviation: Duration::ZERO,
            tail: WindowedMax::new(LATE_WINDOW),
            stragglers: 0.0,
            ahead: 0,
            missing: ArrayVec::new(),
            next_request: now,
            unheard: 0,
        }
    }

    /// How late a message may be: a little more than usual, or on a path that reorders as late as any lately, so that what
    /// will come by itself is not asked for. Three quarters of its life are left for repairs in any case.
    fn excuse(&self) -> Duration {
        let usual = self.usual();
        if self.stragglers > STRAGGLERS_MAX {
            let tail = self.tail.get().unwrap_or_default();
            usual.max(tail.min(self.life / 4))
        } else {
            usual
        }
    }

    fn usual(&self) -> Duration {
        self.late + (self.deviation * 4).max(EXCUSE_MIN)
    }

    /// Takes how late an original was.
    fn learn(&mut self, now: Instant, nominal: Instant) {
        let late = now.saturating_duration_since(nominal);
        let straggles = late > self.usual();
        self.deviation = (self.deviation * 7 + late.abs_diff(self.late)) / 8;
        self.late = (self.late * 7 + late) / 8;
        self.tail.observe(now, late);
        self.stragglers += (f64::from(u8::from(straggles)) - self.stragglers) * STRAGGLERS_GAIN;
    }

    fn on_arrival(&mut self, now: Instant, nominal: Instant, part: &Part<'_>) {
        self.unheard = 0;
        if part.attempt == 0 {
            self.learn(now, nominal);
        }
        self.missing.retain(|missing| missing.seq != part.seq);
        let steps = part.seq.since(self.newest);
        if steps <= 0 {
            return;
        }
        let steps = steps.cast_unsigned();
        for step in (self.ahead + 1)..steps.min(self.ahead + MAX_MISSING as u32) {
            self.miss(self.newest.plus(step), self.nominal + self.period * step);
        }
        self.ahead = self.ahead.saturating_sub(steps);
        (self.newest, self.nominal) = (part.seq, nominal);
        if matches!(self.stream, Stream::Latest(_)) {
            self.missing
                .retain(|missing| missing.seq.is_after(part.seq));
        }
    }

    fn miss(&mut self, seq: Seq, nominal: Instant) {
        if self.missing.is_full() {
            self.missing.remove(0);
        }
        self.missing.push(Missing {
            seq,
            until: nominal + self.life,
            from: nominal + self.excuse(),
        });
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.missing.retain(|missing| missing.until > now);
        while self.ahead < MAX_AHEAD && self.unheard < MAX_UNHEARD && self.overdue_at() <= now {
            self.ahead += 1;
            let (seq, step) = (self.newest.plus(self.ahead), self.ahead);
            self.miss(seq, self.nominal + self.period * step);
        }
        self.missing.retain(|missing| missing.until > now);
    }

    fn overdue_at(&self) -> Instant {
        self.nominal + self.period * (self.ahead + 1) + self.excuse()
    }

    /// When a request leaves next, if anything is missing.
    fn request_at(&self) -> Option<Instant> {
        if self.unheard >= MAX_UNHEARD {
            return None;
        }
        let from = self.missing.iter().map(|missing| missing.from).min()?;
        Some(from.max(self.next_request))
    }

    fn next(&self) -> Option<Instant> {
        let ahead = self.ahead < MAX_AHEAD && self.unheard < MAX_UNHEARD;
        let overdue = ahead.then(|| self.overdue_at());
        let over = self.missing.iter().map(|missing| missing.until).min();
        self.request_at()
            .into_iter()
            .chain(overdue)
            .chain(over)
            .min()
    }

    fn request(&mut self, now: Instant) -> Option<Nack> {
        let wanted = self.missing.iter().filter(|missing| missing.from <= now);
        let first = wanted
            .clone()
            .map(|m| m.seq)
            .reduce(|a, b| if a.is_after(b) { b } else { a })?;
        let mut more = 0u16;
        for missing in wanted {
            let offset = missing.seq.since(first) - 1;
            if (0..NACK_SPAN as i32).contains(&offset) {
                more |= 1 << offset;
            }
        }
        self.next_request = now + SPACING;
        self.unheard += 1;
        Some(Nack {
            stream: self.stream,
            first,
            more,
        })
    }
}

/// All steady streams of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expectations {
    streams: Vec<Expected>,
}

impl Expectations {
    /// A whole message arrived that would have come at `nominal` on the fastest way.
    pub(crate) fn on_part(&mut self, now: Instant, nominal: Instant, part: &Part<'_>) {
        let found = self.streams.iter().position(|e| e.stream == part.stream);
        let rhythm = part.period.and_then(|period| period.duration());
        let (Some(period), Some(life)) = (rhythm, part.life.duration()) else {
            self.on_end(found, part);
            return;
        };
        let Some(expected) = found.and_then(|at| self.streams.get_mut(at)) else {
            if self.streams.len() < MAX_STREAMS {
                let expected = Expected::new(now, nominal, part, period, life);
                self.streams.push(expected);
            }
            return;
        };
        if part.seq.is_after(expected.newest) {
            (expected.period, expected.life) = (period, life);
        }
        expected.on_arrival(now, nominal, part);
    }

    /// A message without a rhythm ends the expectations of its stream, unless it is an old one.
    fn on_end(&mut self, found: Option<usize>, part: &Part<'_>) {
        let newer = |at: &usize| {
            self.streams
                .get(*at)
                .is_some_and(|e| part.seq.is_after(e.newest))
        };
        if let Some(at) = found.filter(newer) {
            self.streams.swap_remove(at);
        }
    }

    /// Finds what is overdue and forgets what is of no more use.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.streams
            .iter_mut()
            .for_each(|expected| expected.handle_timeout(now));
    }

    /// Whether a request should leave now.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.streams
            .iter()
            .any(|e| e.request_at().is_some_and(|at| at <= now))
    }

    /// When there is something to do next.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.streams.iter().filter_map(Expected::next).min()
    }

    /// Writes the requests that are due; returns their number.
    pub(crate) fn write(&mut self, now: Instant, out: &mut Writer<'_>) -> u64 {
        let mut written = 0;
        for expected in &mut self.streams {
            let due = expected.request_at().is_some_and(|at| at <= now);
            let request = if due { expected.request(now) } else { None };
            written += u64::from(request.is_some_and(|nack| nack.emit(out).is_some()));
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Span;
    use crate::wire::Reader;
    use crate::wire::frame::{Frame, next_frame};

    const MS: Duration = Duration::from_millis(1);

    fn part(seq: u32, period: Option<Duration>) -> Part<'static> {
        Part {
            stream: Stream::Ordered(3),
            seq: Seq::new(seq),
            order: None,
            age: Span::ZERO,
            life: Span::floor(20 * MS),
            attempt: 0,
            period: period.map(Span::floor),
            fragment: None,
            data: &[],
        }
    }

    /// A stream of 100 Hz that has arrived exactly on time up to message `last`.
    fn steady(start: Instant, last: u32) -> Expectations {
        let mut expectations = Expectations::default();
        for seq in 0..=last {
            let at = start + 10 * MS * seq;
            expectations.on_part(at, at, &part(seq, Some(10 * MS)));
        }
        expectations
    }

    fn ask(expectations: &mut Expectations, at: Instant) -> Option<Nack> {
        expectations.handle_timeout(at);
        let mut buffer = [0; 64];
        let mut writer = Writer::new(&mut buffer);
        expectations.write(at, &mut writer);
        let len = writer.len();
        match next_frame(&mut Reader::new(&buffer[..len]))? {
            Ok(Frame::Nack(nack)) => Some(nack),
            other => panic!("{other:?}"),
        }
    }

    fn requests(expectations: &mut Expectations, until: Instant) -> Vec<(Instant, Nack)> {
        let mut found = Vec::new();
        while let Some(at) = expectations.next().filter(|&at| at <= until) {
            found.extend(ask(expectations, at).map(|nack| (at, nack)));
        }
        found
    }

    #[test]
    fn an_overdue_message_is_asked_for_until_it_is_of_no_use() {
        let start = Instant::now();
        let mut expectations = steady(start, 20);
        let requests = requests(&mut expectations, start + 229 * MS);
        let due = start + 210 * MS + EXCUSE_MIN;
        assert_eq!(requests[0].0, due);
        assert_eq!(requests[0].1.first, Seq::new(21));
        assert!(
            requests
                .windows(2)
                .all(|two| two[1].0 - two[0].0 >= SPACING)
        );
        assert!((4..=8).contains(&requests.len()), "{}", requests.len());
    }

    #[test]
    fn a_stream_that_stops_is_asked_for_a_few_times_only() {
        let start = Instant::now();
        let mut expectations = steady(start, 20);
        let requests = requests(&mut expectations, start + Duration::from_secs(10));
        assert!(
            requests.len() <= usize::from(MAX_UNHEARD),
            "{}",
            requests.len()
        );
        assert_eq!(expectations.next(), None);
    }

    #[test]
    fn a_gap_is_asked_for_and_filled() {
        let start = Instant::now();
        let mut expectations = steady(start, 20);
        let at = start + 239 * MS;
        expectations.on_part(at, at, &part(24, Some(10 * MS)));
        let asked = ask(&mut expectations, at).unwrap();
        assert_eq!(
            (asked.first, asked.more),
            (Seq::new(22), 0b1),
            "21 is of no more use"
        );
        let repair = Part {
            attempt: 1,
            ..part(22, Some(10 * MS))
        };
        expectations.on_part(at, at, &repair);
        expectations.on_part(
            at,
            at,
            &Part {
                seq: Seq::new(23),
                ..repair
            },
        );
        assert!(!expectations.is_due(at + 3 * MS));
    }

    #[test]
    fn a_message_without_a_rhythm_ends_the_expectations() {
        let start = Instant::now();
        let mut expectations = steady(start, 20);
        expectations.on_part(start, start, &part(19, None));
        assert!(expectations.next().is_some());
        expectations.on_part(start, start, &part(21, None));
        assert_eq!(expectations.next(), None);
    }

    #[test]
    fn numbers_wrap() {
        let start = Instant::now();
        let mut expectations = Expectations::default();
        for n in 0..20u32 {
            let at = start + 10 * MS * n;
            let seq = n.wrapping_sub(19);
            expectations.on_part(at, at, &part(seq, Some(10 * MS)));
        }
        let asked = requests(&mut expectations, start + 202 * MS);
        assert_eq!(asked[0].1.first, Seq::new(1));
    }
}
