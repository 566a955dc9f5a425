//! The responder's score and the box's own confession: counters, streaks, success rate over the last 100, times.
//!
//! Counts what it is told; the rules decide what a cycle was.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::periodic::record::histogram;

/// Commands over which the success rate is formed.
pub const WINDOW: usize = 100;

/// Plain counters. At any time `sent = accepted + missed + excluded + in flight`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// States sent.
    pub sent: u64,
    /// Answered with the right id before the next state.
    pub accepted: u64,
    /// Not answered in time.
    pub missed: u64,
    /// Not judged, because the box itself was late.
    pub excluded: u64,
    /// Answers to a state whose time was over.
    pub late: u64,
    /// Answers to a state older than the box remembers.
    pub stale: u64,
    /// Second and further answers to one state.
    pub duplicate: u64,
    /// Answers with an id that was never sent, or with torques that are no numbers.
    pub malformed: u64,
    /// Answers of another size than 371 bytes.
    pub wrong_size: u64,
    /// Slots of the box that passed while it did not run; skipped, never made up for.
    pub box_overrun: u64,
    /// States sent later than the limit.
    pub box_late_sends: u64,
    /// Stops after too many misses in a row.
    pub stops: u64,
    /// States that the network refused to take.
    pub send_errors: u64,
}

/// The score of one run.
#[derive(Clone, Debug)]
pub struct Score {
    /// Plain counters.
    pub counts: Counts,
    /// Misses in a row at the moment.
    pub streak: u32,
    /// Longest row of misses.
    pub worst_streak: u32,
    /// How many rows of misses had each length; index = length.
    pub streaks: Vec<u64>,
    /// From sending a state to taking its answer, nanoseconds.
    pub round_trip: Histogram<u64>,
    /// From taking an answer to the next slot, nanoseconds.
    pub slack: Histogram<u64>,
    /// From a slot to the sending of its state, nanoseconds.
    pub send_lateness: Histogram<u64>,
    /// Smallest success rate of a full window.
    pub lowest_rate: Option<f64>,
    /// Largest success rate of a full window.
    pub highest_rate: Option<f64>,
    rate_sum: f64,
    rate_count: u64,
    window: [bool; WINDOW],
    filled: usize,
    at: usize,
    hits: usize,
}

impl Score {
    /// An empty score for streaks up to `longest`.
    ///
    /// # Errors
    /// Only when the histograms cannot be made, which the fixed bounds exclude.
    pub fn new(longest: u32) -> Result<Self, hdrhistogram::CreationError> {
        Ok(Self {
            counts: Counts::default(),
            streak: 0,
            worst_streak: 0,
            streaks: vec![0; longest as usize + 1],
            round_trip: histogram()?,
            slack: histogram()?,
            send_lateness: histogram()?,
            lowest_rate: None,
            highest_rate: None,
            rate_sum: 0.0,
            rate_count: 0,
            window: [false; WINDOW],
            filled: 0,
            at: 0,
            hits: 0,
        })
    }

    /// A command was accepted.
    pub fn hit(&mut self) {
        self.counts.accepted += 1;
        self.end_streak();
        self.push(true);
    }

    /// A command did not come in time. Returns the misses in a row so far.
    pub fn miss(&mut self) -> u32 {
        self.counts.missed += 1;
        self.streak += 1;
        self.worst_streak = self.worst_streak.max(self.streak);
        self.push(false);
        self.streak
    }

    /// The row of misses is over.
    pub fn end_streak(&mut self) {
        if self.streak > 0
            && let Some(count) = self.streaks.get_mut(self.streak as usize)
        {
            *count += 1;
        }
        self.streak = 0;
    }

    fn push(&mut self, hit: bool) {
        self.hits += usize::from(hit);
        if self.filled == WINDOW {
            self.hits -= usize::from(self.window[self.at]);
        } else {
            self.filled += 1;
        }
        self.window[self.at] = hit;
        self.at = (self.at + 1) % WINDOW;
        if self.filled == WINDOW {
            self.note_rate();
        }
    }

    fn note_rate(&mut self) {
        let rate = self.success_rate();
        self.lowest_rate = Some(self.lowest_rate.map_or(rate, |lowest| lowest.min(rate)));
        self.highest_rate = Some(self.highest_rate.map_or(rate, |highest| highest.max(rate)));
        self.rate_sum += rate;
        self.rate_count += 1;
    }

    /// Share of the last 100 commands that were accepted, 0 to 1; of all so far when fewer, 1 when none.
    #[must_use]
    pub fn success_rate(&self) -> f64 {
        if self.filled == 0 {
            1.0
        } else {
            self.hits as f64 / self.filled as f64
        }
    }

    /// Mean success rate over all full windows.
    #[must_use]
    pub fn mean_rate(&self) -> Option<f64> {
        (self.rate_count > 0).then(|| self.rate_sum / self.rate_count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_last_hundred() {
        let mut score = Score::new(20).unwrap();
        assert_eq!(score.success_rate(), 1.0);
        (0..100).for_each(|_| score.hit());
        assert_eq!((1..=7).map(|_| score.miss()).last(), Some(7));
        assert_eq!(score.success_rate(), 0.93);
        (0..100).for_each(|_| score.hit());
        assert_eq!((score.success_rate(), score.lowest_rate), (1.0, Some(0.93)));
        assert_eq!((score.worst_streak, score.streaks[7]), (7, 1));
        assert!(score.mean_rate().unwrap() < 1.0);
    }
}
