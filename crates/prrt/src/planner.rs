//! The repair planner: from what is known of the path and the life of a message to the instants at which it is sent.
//! Pure; it knows neither messages nor sockets.
//!
//! Rules, for a message that must arrive within `life` of its birth: the original at once; if a reaction to its loss
//! would come too late and the path does lose, copies every 4 ms (or half the period) until the loss of all is
//! unlikely; otherwise the first repair at the retransmission time-out, then every `max(2 ms, burst / 2)`, and up to two at the last
//! useful instants. Stopping on acknowledgement, expiry, supersede and budget is the caller's.

use std::time::Duration;

use arrayvec::ArrayVec;

use crate::config::Repair;

/// Most transmissions of one message that are planned.
pub const MAX_PLANNED: usize = 16;
const SPACING: Duration = Duration::from_millis(2);
const COPY_SPACING: Duration = Duration::from_millis(4);
/// Allowance for the sender's and the receiver's own scheduling at the last instant.
const MARGIN: Duration = Duration::from_micros(300);
/// Repairs closer than this to the one before are not worth a datagram.
const MIN_SPACING: Duration = Duration::from_micros(500);
/// Below this loss no copies are sent ahead.
const PROACTIVE_LOSS: f64 = 0.002;
/// Copies are added until all are lost with at most this probability.
const TARGET_MISS: f64 = 1e-3;
const MAX_COPIES: usize = 2;
const BACK_OFF_MAX: Duration = Duration::from_millis(200);
/// Repairs of a reliable message sent close together before backing off.
const QUICK: u32 = 3;

/// What the planner knows of the path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// When a missing acknowledgement means loss.
    pub timeout: Duration,
    /// One-way delay that most datagrams keep.
    pub one_way: Duration,
    /// One-way delay that more than half of the datagrams keep.
    pub one_way_typical: Duration,
    /// Mean length of a loss burst.
    pub burst: Duration,
    /// Share of datagrams lost, 0 to 1.
    pub loss: f64,
    /// Extra spacing of repairs while our own traffic makes the path slower.
    pub congestion: Duration,
    /// Time between messages of the stream, if it is periodic.
    pub period: Option<Duration>,
}

/// Offsets from the birth of the message, ascending, the original (0) first.
pub type Schedule = ArrayVec<Duration, MAX_PLANNED>;

impl Path {
    /// Time between two repairs.
    pub fn spacing(&self) -> Duration {
        SPACING.max(self.burst / 2).max(self.congestion)
    }

    /// Time between copies that are sent ahead.
    fn copy_step(&self) -> Duration {
        self.period
            .map_or(COPY_SPACING, |period| COPY_SPACING.min(period / 2))
            .max(MIN_SPACING)
    }

    /// Last offset at which a datagram most likely arrives in time.
    pub fn last_chance(&self, life: Duration) -> Duration {
        life.saturating_sub(self.one_way + MARGIN)
    }

    /// Last offset at which a datagram still has a fair chance to arrive in time.
    fn very_last_chance(&self, life: Duration) -> Duration {
        life.saturating_sub(self.one_way_typical + MARGIN)
    }

    /// Whether the path loses enough to send copies before there is a sign of loss.
    pub fn is_lossy(&self) -> bool {
        self.loss >= PROACTIVE_LOSS
    }

    /// Whether a loss can be noticed and repaired within `life`.
    pub fn can_react(&self, life: Duration) -> bool {
        self.timeout <= self.last_chance(life)
    }
}

/// Plans the transmissions of a message with a life.
pub fn schedule(repair: &Repair, path: &Path, life: Duration) -> Schedule {
    let mut plan = Schedule::new();
    plan.push(Duration::ZERO);
    match repair {
        Repair::Never => {}
        Repair::Vector(vector) => plan_vector(&mut plan, vector, path, life),
        Repair::Spread if path.can_react(life) => plan_spread(&mut plan, path, life),
        Repair::Spread => plan_copies(&mut plan, path, life),
    }
    plan
}

/// Plans the transmissions of a message that the receiver asks for if it is overdue: nothing ahead of `path.timeout`, the
/// age at which even the receiver's silence is a sign of loss. Each request brings one more, which is not planned.
pub fn on_request(path: &Path, life: Duration) -> Schedule {
    let mut plan = Schedule::new();
    plan.push(Duration::ZERO);
    if path.can_react(life) {
        plan_repairs(&mut plan, path, life);
    }
    plan
}

/// Repairs after a sign of loss; where so few of them fit that too many messages would miss, copies ahead of it, too.
fn plan_spread(plan: &mut Schedule, path: &Path, life: Duration) {
    plan_repairs(plan, path, life);
    let step = path.copy_step();
    let mut miss = path.loss.powi(plan.len() as i32);
    let mut at = step;
    let helps = path.is_lossy() && step >= path.burst;
    for place in 1..=MAX_COPIES {
        if !helps || miss <= TARGET_MISS || at + MIN_SPACING > path.timeout || plan.is_full() {
            return;
        }
        plan.insert(place, at);
        miss *= path.loss;
        at += step;
    }
}

fn plan_repairs(plan: &mut Schedule, path: &Path, life: Duration) {
    let last = path.last_chance(life);
    let mut at = path.timeout;
    while at <= last && plan.len() < MAX_PLANNED - 2 {
        plan.push(at);
        at += path.spacing();
    }
    for last in [last, path.very_last_chance(life)] {
        if plan
            .last()
            .is_some_and(|&previous| last > previous + MIN_SPACING)
        {
            plan.push(last);
        }
    }
}

fn plan_copies(plan: &mut Schedule, path: &Path, life: Duration) {
    if !path.is_lossy() {
        return;
    }
    let step = path.copy_step();
    let last = path.last_chance(life);
    let mut miss = path.loss;
    let mut at = step.min(last);
    while plan.len() <= MAX_COPIES && miss > TARGET_MISS && at <= last && at > Duration::ZERO {
        plan.push(at);
        miss *= path.loss;
        at += step;
    }
}

fn plan_vector(plan: &mut Schedule, vector: &[u8], path: &Path, life: Duration) {
    let last = path.last_chance(life);
    for (cycle, &copies) in vector.iter().enumerate() {
        let at = path.timeout * cycle as u32;
        for _ in 0..copies {
            if at <= last && plan.len() < MAX_PLANNED {
                plan.push(at);
            }
        }
    }
}

/// The next planned offset after `sent` transmissions, not sooner than half a spacing after `elapsed`, at which the
/// last one left. `None`: no further transmission is useful.
pub fn next_offset(plan: &Schedule, sent: usize, elapsed: Duration) -> Option<Duration> {
    plan.iter()
        .skip(sent.min(MAX_PLANNED))
        .copied()
        .find(|&at| at + MIN_SPACING > elapsed)
}

/// Pause before transmission number `sent` (1 is the first repair) of a message that never expires: three quick
/// repairs, then doubling pauses up to 200 ms.
pub fn reliable_pause(path: &Path, sent: u32) -> Duration {
    if (2..=QUICK).contains(&sent) {
        return path.spacing();
    }
    let doublings = sent.saturating_sub(QUICK).min(16);
    (path.timeout * (1 << doublings)).min(BACK_OFF_MAX.max(path.timeout))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn path() -> Path {
        Path {
            timeout: ms(8),
            one_way: Duration::from_micros(3700),
            one_way_typical: Duration::from_micros(3400),
            burst: Duration::ZERO,
            loss: 0.05,
            congestion: Duration::ZERO,
            period: None,
        }
    }

    #[test]
    fn repairs_are_spread_from_the_timeout_to_the_last_useful_instant() {
        let plan = schedule(&Repair::Spread, &path(), ms(20));
        assert_eq!(plan[..], [ms(0), ms(8), ms(10), ms(12), ms(14), ms(16)]);
        let plan = schedule(&Repair::Spread, &path(), Duration::from_micros(19_500));
        assert_eq!(plan.last(), Some(&Duration::from_micros(15_500)));
    }

    #[test]
    fn bursts_widen_the_spacing() {
        let plan = schedule(
            &Repair::Spread,
            &Path {
                burst: ms(8),
                ..path()
            },
            ms(20),
        );
        assert_eq!(plan[..], [ms(0), ms(8), ms(12), ms(16)]);
    }

    #[test]
    fn a_deadline_too_short_to_react_gets_copies_only_if_the_path_loses() {
        let plan = schedule(&Repair::Spread, &path(), ms(10));
        assert_eq!(plan[..], [ms(0), ms(4)]);
        let clean = Path {
            loss: 0.0,
            ..path()
        };
        assert_eq!(schedule(&Repair::Spread, &clean, ms(10)).len(), 1);
        let fast = Path {
            period: Some(ms(2)),
            ..path()
        };
        assert_eq!(
            schedule(&Repair::Spread, &fast, ms(10))[..],
            [ms(0), ms(1), ms(2)]
        );
    }

    #[test]
    fn classic_vector_is_a_special_case() {
        let plan = schedule(&Repair::Vector(vec![0, 2, 3]), &path(), ms(30));
        assert_eq!(plan[..], [ms(0), ms(8), ms(8), ms(16), ms(16), ms(16)]);
        assert_eq!(schedule(&Repair::Never, &path(), ms(30)).len(), 1);
    }

    #[test]
    fn late_transmissions_skip_what_they_overslept() {
        let plan = schedule(&Repair::Spread, &path(), ms(20));
        assert_eq!(next_offset(&plan, 1, ms(0)), Some(ms(8)));
        assert_eq!(next_offset(&plan, 2, ms(13)), Some(ms(14)));
        assert_eq!(next_offset(&plan, 6, ms(16)), None);
    }

    #[test]
    fn reliable_messages_back_off_but_never_stop() {
        assert_eq!(reliable_pause(&path(), 1), ms(8));
        assert_eq!(reliable_pause(&path(), 2), ms(2));
        assert_eq!(reliable_pause(&path(), 5), ms(32));
        assert_eq!(reliable_pause(&path(), 5000), ms(200));
    }
}
