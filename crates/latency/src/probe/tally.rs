//! Counts and histograms of one run.

use super::{Plan, Verdict};
use crate::histogram::Histogram;
use crate::time::MonoNs;

/// How many of what. `sent = received + lost + late + damaged`; warm-up probes are in `warmup` alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Probes that left and count.
    pub sent: u64,
    /// Answered in time.
    pub received: u64,
    /// Never answered.
    pub lost: u64,
    /// Answered after the time-out.
    pub late: u64,
    /// Answered with a payload of another size.
    pub damaged: u64,
    /// Warm-up probes that left.
    pub warmup: u64,
    /// Probes that the medium refused, or that were cut off by an early end.
    pub unsent: u64,
    /// Further copies of answers.
    pub duplicate: u64,
    /// Answers that came after the answer of a later probe.
    pub reordered: u64,
    /// Echoes of other runs.
    pub foreign: u64,
    /// Answers whose relay times contradict the round trip; they are in no latency.
    pub bad_stamps: u64,
}

/// What a run measured. All histograms are in nanoseconds and hold received probes only.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// The plan it followed.
    pub plan: Plan,
    /// How many of what.
    pub counts: Counts,
    /// Round trip: from the intended send time in rate mode, else from the actual one.
    pub rtt: Histogram,
    /// Round trip from the actual send time.
    pub rtt_from_send: Histogram,
    /// One-way estimate: `(RTT - (T4 - T3)) / 2`, which takes both ways as equally long. Without relay times
    /// half the round trip.
    pub latency: Histogram,
    /// `T4 - T3`, the time in the relay.
    pub processing: Histogram,
    /// How much later than intended probes left.
    pub send_lag: Histogram,
    /// From the first probe to the end.
    pub duration_ns: u64,
    /// The run was ended before its plan was done.
    pub partial: bool,
}

#[derive(Debug)]
pub(super) struct Tally {
    warmup: u64,
    counts: Counts,
    highest: Option<u64>,
    rtt: Histogram,
    rtt_from_send: Histogram,
    latency: Histogram,
    processing: Histogram,
    send_lag: Histogram,
}

impl Tally {
    pub(super) fn new(warmup: u64) -> Self {
        Self {
            warmup,
            counts: Counts::default(),
            highest: None,
            rtt: Histogram::new(),
            rtt_from_send: Histogram::new(),
            latency: Histogram::new(),
            processing: Histogram::new(),
            send_lag: Histogram::new(),
        }
    }

    pub(super) fn sent(&mut self, sequence: u64, lag_ns: u64) {
        if sequence < self.warmup {
            self.counts.warmup += 1;
        } else {
            self.counts.sent += 1;
            self.send_lag.record(lag_ns);
        }
    }

    pub(super) fn unsent(&mut self, sequence: u64) {
        if sequence < self.warmup {
            self.counts.warmup -= 1;
        } else {
            self.counts.sent -= 1;
            self.counts.unsent += 1;
        }
    }

    pub(super) fn count(&mut self, sequence: u64, verdict: Verdict) {
        let warm = sequence < self.warmup;
        let counts = &mut self.counts;
        match verdict {
            Verdict::Foreign => counts.foreign += 1,
            Verdict::Hello | Verdict::Warmup => {}
            Verdict::Received(_) => counts.received += 1,
            Verdict::Late => counts.late += 1,
            Verdict::Duplicate if !warm => counts.duplicate += 1,
            Verdict::Damaged if !warm => counts.damaged += 1,
            Verdict::Duplicate | Verdict::Damaged => {}
        }
        if matches!(verdict, Verdict::Received(_) | Verdict::Late) {
            self.order(sequence);
        }
    }

    fn order(&mut self, sequence: u64) {
        if self.highest.is_some_and(|highest| sequence < highest) {
            self.counts.reordered += 1;
        }
        self.highest = self.highest.max(Some(sequence));
    }

    pub(super) fn sample(&mut self, rtt: u64, from_send: u64, relay: Option<(MonoNs, MonoNs)>) {
        self.rtt.record(rtt);
        self.rtt_from_send.record(from_send);
        let Some((received, sent)) = relay else {
            self.latency.record(rtt / 2);
            return;
        };
        let processing = sent.since(received);
        if sent < received || processing > from_send {
            self.counts.bad_stamps += 1;
            return;
        }
        self.processing.record(processing);
        self.latency.record((rtt - processing) / 2);
    }

    pub(super) fn finish(mut self, plan: &Plan, duration_ns: u64, partial: bool) -> Measurement {
        let counts = &mut self.counts;
        counts.lost = counts.sent - counts.received - counts.late - counts.damaged;
        Measurement {
            plan: *plan,
            counts: self.counts,
            rtt: self.rtt,
            rtt_from_send: self.rtt_from_send,
            latency: self.latency,
            processing: self.processing,
            send_lag: self.send_lag,
            duration_ns,
            partial,
        }
    }
}
