//! How well the link to one drone does, and on which rung of the ladder it stands.
//!
//! An exchange is one echo through the drone's link service: answered in time, or missed. From the last 100 of them
//! come the success rate and the streaks; from the last second the percentiles. [`LinkHealth`] judges after each
//! exchange; it sends nothing itself and decides nothing about the flight.

mod ladder;
pub mod preflight;
mod reaction;
mod recent;
mod window;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

pub use ladder::{Change, Level, Limits, Thresholds, Why};
pub use reaction::{Manoeuvre, OnDegraded, OnFailing, Reaction};
pub use recent::Percentiles;
pub use window::WINDOW;

use ladder::Ladder;
pub(crate) use reaction::{request_undoes, setpoint_undoes};
use recent::Recent;
use window::Window;

/// Exchanges that may be open at once; the oldest counts as missed when one more begins.
const OPEN: usize = 64;
/// Changes that may wait; the oldest goes first.
const CHANGES: usize = 16;

/// The health of one link.
#[derive(Debug)]
pub struct LinkHealth {
    answer_within: Duration,
    connected: bool,
    /// When the exchanges began that have no verdict yet, oldest first.
    open: VecDeque<Instant>,
    window: Window,
    recent: Recent,
    ladder: Ladder,
    sent: Option<Instant>,
    heard: Option<Instant>,
    late: u64,
    changes: VecDeque<Change>,
    changes_dropped: u64,
}

/// The figures at one moment. What has no sample is `None`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report {
    /// The rung.
    pub level: Level,
    /// What put it there.
    pub why: Why,
    /// Exchanges behind `success_rate`, at most [`WINDOW`].
    pub exchanges: u32,
    /// Share of them that was answered in time, 0 to 1.
    pub success_rate: Option<f64>,
    /// Exchanges missed in a row up to now.
    pub miss_streak: u32,
    /// The most missed in a row since the robot was added.
    pub worst_streak: u32,
    /// Exchanges answered in time since the robot was added.
    pub answered: u64,
    /// Exchanges missed since the robot was added, the late ones included.
    pub missed: u64,
    /// Of those, answered too late.
    pub late: u64,
    /// Times the link was lost after it had been there.
    pub losses: u64,
    /// Time since the last packet to the drone was handed to the link.
    pub sent_age: Option<Duration>,
    /// Time since the last packet came from the drone.
    pub heard_age: Option<Duration>,
    /// Round trips of the last second, late ones included.
    pub round_trip: Option<Percentiles>,
    /// Changes of level that nobody took in time.
    pub changes_dropped: u64,
}

impl LinkHealth {
    /// A link that has never been there.
    #[must_use]
    pub fn new(thresholds: Thresholds) -> Self {
        Self {
            answer_within: thresholds.answer_within,
            connected: false,
            open: VecDeque::with_capacity(OPEN),
            window: Window::default(),
            recent: Recent::default(),
            ladder: Ladder::new(thresholds),
            sent: None,
            heard: None,
            late: 0,
            changes: VecDeque::with_capacity(CHANGES),
            changes_dropped: 0,
        }
    }

    /// Commands are taken from now on. Success rate and current streak start afresh: what lies behind the gap says
    /// nothing about this connection.
    pub fn handle_connected(&mut self) {
        if std::mem::replace(&mut self.connected, true) {
            return;
        }
        self.open.clear();
        self.window.restart();
    }

    /// The connection has ended; open exchanges are missed.
    pub fn handle_disconnected(&mut self, now: Instant) {
        if !std::mem::take(&mut self.connected) {
            return;
        }
        for _ in 0..self.open.len() {
            self.window.record(false);
        }
        self.open.clear();
        let change = self.ladder.lose(now);
        self.note(change);
    }

    /// An exchange begins. The first of a connection may come before its [`LinkHealth::handle_connected`].
    pub fn handle_asked(&mut self, now: Instant) {
        self.handle_connected();
        if self.open.len() == OPEN {
            self.open.pop_front();
            self.verdict(now, false);
        }
        self.open.push_back(now);
    }

    /// The answer of an exchange that began `round_trip` ago.
    pub fn handle_answer(&mut self, now: Instant, round_trip: Duration) {
        self.recent.record(now, round_trip);
        let begun = now.checked_sub(round_trip);
        let at = self.open.iter().position(|open| Some(*open) == begun);
        match at {
            Some(at) => {
                self.open.remove(at);
                let in_time = round_trip <= self.answer_within;
                self.late += u64::from(!in_time);
                self.verdict(now, in_time);
            }
            None => self.late += 1,
        }
    }

    /// A packet to the drone was handed to the link.
    pub fn handle_sent(&mut self, now: Instant) {
        self.sent = Some(now);
    }

    /// A packet has come from the drone.
    pub fn handle_heard(&mut self, now: Instant) {
        self.heard = Some(now);
    }

    /// Gives up on exchanges that are overdue.
    pub fn handle_timeout(&mut self, now: Instant) {
        while self
            .open
            .front()
            .is_some_and(|open| now > *open + self.answer_within)
        {
            self.open.pop_front();
            self.verdict(now, false);
        }
    }

    /// When [`LinkHealth::handle_timeout`] is due, and why.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let open = self.open.front()?;
        // An answer that takes exactly the limit is in time.
        let at = *open + self.answer_within + Duration::from_nanos(1);
        Some((at, "exchange overdue"))
    }

    /// The next change of level.
    pub fn poll_change(&mut self) -> Option<Change> {
        self.changes.pop_front()
    }

    /// The rung now.
    #[must_use]
    pub fn level(&self) -> Level {
        self.ladder.level()
    }

    /// Every figure.
    #[must_use]
    pub fn report(&self, now: Instant) -> Report {
        let age = |at: Option<Instant>| at.map(|at| now.saturating_duration_since(at));
        Report {
            level: self.ladder.level(),
            why: self.ladder.why(),
            exchanges: self.window.len(),
            success_rate: self.window.success_rate(),
            miss_streak: self.window.streak(),
            worst_streak: self.window.worst_streak(),
            answered: self.window.answered(),
            missed: self.window.missed(),
            late: self.late,
            losses: self.ladder.losses(),
            sent_age: age(self.sent),
            heard_age: age(self.heard),
            round_trip: self.recent.percentiles(now),
            changes_dropped: self.changes_dropped,
        }
    }

    fn verdict(&mut self, now: Instant, in_time: bool) {
        self.window.record(in_time);
        let change = self.ladder.judge(now, &self.window);
        self.note(change);
    }

    fn note(&mut self, change: Option<Change>) {
        let Some(change) = change else { return };
        if self.changes.len() == CHANGES {
            self.changes.pop_front();
            self.changes_dropped += 1;
        }
        self.changes.push_back(change);
    }
}

#[cfg(test)]
mod tests;
