//! The rungs from ok to lost: down at once, up with patience.

use std::fmt;
use std::time::{Duration, Instant};

use super::window::Window;

/// A rung; later ones are worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// As it should be.
    Ok,
    /// Worth slowing down for.
    Degraded,
    /// Not to be flown on.
    Failing,
    /// No way to the drone.
    Lost,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "ok",
            Self::Degraded => "degraded",
            Self::Failing => "failing",
            Self::Lost => "lost",
        })
    }
}

/// Where a rung begins: at either of the two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Fewer than this share of the last 100 exchanges was answered in time, 0 to 1; counts from `min_exchanges` on.
    pub success_below: f64,
    /// This many exchanges in a row were missed.
    pub misses: u32,
}

/// Settings of the ladder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// An answer later than this is a miss. 250 ms: half of what the firmware waits for setpoints before it levels out.
    pub answer_within: Duration,
    /// Where `degraded` begins. 0.95: what users of 1 kHz control boxes take as the edge of fine.
    pub degraded: Limits,
    /// Where `failing` begins.
    pub failing: Limits,
    /// This many exchanges missed in a row: lost, though the client has not yet given up.
    pub lost_misses: u32,
    /// The success rate says nothing before this many exchanges of a connection.
    pub min_exchanges: u32,
    /// A worse rung is taken after so many exchanges in a row that call for it.
    pub enter_after: u32,
    /// A better rung is taken after so many exchanges in a row that allow it.
    pub leave_after: u32,
    /// A success rate has to be this much above a rung's limit to leave the rung, 0 to 1.
    pub margin: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            answer_within: Duration::from_millis(250),
            degraded: Limits {
                success_below: 0.95,
                misses: 2,
            },
            failing: Limits {
                success_below: 0.80,
                misses: 4,
            },
            lost_misses: 8,
            min_exchanges: 20,
            enter_after: 1,
            leave_after: 10,
            margin: 0.02,
        }
    }
}

/// What put a link on its rung.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Why {
    /// It has never been connected.
    NeverConnected,
    /// The connection ended.
    Disconnected,
    /// So many exchanges in a row were missed.
    Misses(u32),
    /// This share of the last exchanges was answered in time.
    Success(f64),
    /// The exchanges are answered.
    Answered,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeverConnected => f.write_str("not connected yet"),
            Self::Disconnected => f.write_str("the connection ended"),
            Self::Misses(misses) => write!(f, "{misses} echoes in a row not answered in time"),
            Self::Success(rate) => {
                write!(f, "{:.0} % of the last echoes answered in time", rate * 1e2)
            }
            Self::Answered => f.write_str("echoes are answered"),
        }
    }
}

/// A step on the ladder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// When.
    pub at: Instant,
    /// The rung before.
    pub from: Level,
    /// The rung now.
    pub to: Level,
    /// What called for it.
    pub why: Why,
}

/// The rung and what leads from it.
#[derive(Debug)]
pub(super) struct Ladder {
    thresholds: Thresholds,
    level: Level,
    why: Why,
    losses: u64,
    /// Exchanges in a row that call for a worse rung.
    worse: u32,
    /// Exchanges in a row that allow a better rung, and the worst rung among them.
    better: u32,
    reached: (Level, Why),
}

impl Ladder {
    pub(super) fn new(thresholds: Thresholds) -> Self {
        Self {
            thresholds,
            level: Level::Lost,
            why: Why::NeverConnected,
            losses: 0,
            worse: 0,
            better: 0,
            reached: (Level::Ok, Why::Answered),
        }
    }

    pub(super) fn level(&self) -> Level {
        self.level
    }

    pub(super) fn why(&self) -> Why {
        self.why
    }

    pub(super) fn losses(&self) -> u64 {
        self.losses
    }

    /// The connection is gone.
    pub(super) fn lose(&mut self, now: Instant) -> Option<Change> {
        self.step(now, (Level::Lost, Why::Disconnected))
    }

    /// Looks at the exchanges after one more.
    pub(super) fn judge(&mut self, now: Instant, window: &Window) -> Option<Change> {
        let called = self.call(window, 0.0);
        if called.0 > self.level {
            (self.worse, self.better) = (self.worse + 1, 0);
            return (self.worse >= self.thresholds.enter_after)
                .then(|| self.step(now, called))
                .flatten();
        }
        self.worse = 0;
        let allowed = self.call(window, self.thresholds.margin);
        if allowed.0 >= self.level {
            self.better = 0;
            return None;
        }
        if self.better == 0 || allowed.0 >= self.reached.0 {
            self.reached = allowed;
        }
        self.better += 1;
        (self.better >= self.thresholds.leave_after)
            .then(|| self.step(now, self.reached))
            .flatten()
    }

    fn step(&mut self, now: Instant, (level, why): (Level, Why)) -> Option<Change> {
        (self.worse, self.better) = (0, 0);
        let from = std::mem::replace(&mut self.level, level);
        self.why = why;
        if from == level {
            return None;
        }
        self.losses += u64::from(level == Level::Lost);
        Some(Change {
            at: now,
            from,
            to: level,
            why,
        })
    }

    /// The rung that the exchanges call for, with success rates read `margin` lower.
    fn call(&self, window: &Window, margin: f64) -> (Level, Why) {
        let limits = &self.thresholds;
        let misses = window.streak();
        let enough = window.len() >= limits.min_exchanges;
        let rate = window.success_rate().filter(|_| enough);
        let beyond = |limit: &Limits| match rate {
            _ if misses >= limit.misses => Some(Why::Misses(misses)),
            Some(rate) if rate - margin < limit.success_below => Some(Why::Success(rate)),
            _ => None,
        };
        if misses >= limits.lost_misses {
            (Level::Lost, Why::Misses(misses))
        } else if let Some(why) = beyond(&limits.failing) {
            (Level::Failing, why)
        } else if let Some(why) = beyond(&limits.degraded) {
            (Level::Degraded, why)
        } else {
            (Level::Ok, Why::Answered)
        }
    }
}
