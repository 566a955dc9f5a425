//! The ladder and its figures, in virtual time.

use proptest::prelude::*;

use super::*;

const PERIOD: Duration = Duration::from_millis(100);
const FAST: Duration = Duration::from_millis(5);

/// A link whose echoes are answered or not as the test says.
struct Rig {
    health: LinkHealth,
    now: Instant,
}

impl Rig {
    fn new() -> Self {
        let mut health = LinkHealth::new(Thresholds::default());
        health.handle_connected();
        Self {
            health,
            now: Instant::now(),
        }
    }

    fn ok() -> Self {
        let mut rig = Self::new();
        (0..100).for_each(|_| rig.answer(FAST));
        assert_eq!(rig.health.level(), Level::Ok);
        while rig.health.poll_change().is_some() {}
        rig
    }

    /// One exchange that is answered after `round_trip`, then the rest of the period.
    fn answer(&mut self, round_trip: Duration) {
        self.health.handle_asked(self.now);
        self.health.handle_answer(self.now + round_trip, round_trip);
        self.now += PERIOD.max(round_trip);
    }

    /// One exchange that is never answered.
    fn miss(&mut self) {
        self.health.handle_asked(self.now);
        self.now += PERIOD;
        self.run_timers();
    }

    /// Lets every timer up to now come, each at its own time.
    fn run_timers(&mut self) {
        while let Some((at, _)) = self.health.poll_timeout().filter(|(at, _)| *at <= self.now) {
            self.health.handle_timeout(at);
        }
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
        self.run_timers();
    }

    fn report(&self) -> Report {
        self.health.report(self.now)
    }

    fn levels(&mut self) -> Vec<Level> {
        std::iter::from_fn(|| self.health.poll_change())
            .map(|change| change.to)
            .collect()
    }
}

#[test]
fn nothing_measured_is_absent() {
    let health = LinkHealth::new(Thresholds::default());
    let report = health.report(Instant::now());
    assert_eq!(report.level, Level::Lost);
    assert_eq!(report.why, Why::NeverConnected);
    assert_eq!(report.success_rate, None);
    assert_eq!(report.round_trip, None);
    assert_eq!((report.sent_age, report.heard_age), (None, None));
    assert_eq!(report.losses, 0);
}

#[test]
fn a_new_connection_has_to_prove_itself() {
    let mut rig = Rig::new();
    for _ in 0..9 {
        rig.answer(FAST);
        assert_eq!(rig.health.level(), Level::Lost);
    }
    rig.answer(FAST);
    assert_eq!(rig.levels(), [Level::Ok]);
}

#[test]
fn an_exchange_that_begins_before_the_connection_is_announced_counts() {
    let mut health = LinkHealth::new(Thresholds::default());
    let now = Instant::now();
    health.handle_asked(now);
    health.handle_connected();
    health.handle_answer(now + FAST, FAST);
    let report = health.report(now + FAST);
    assert_eq!((report.answered, report.late), (1, 0));
}

#[test]
fn a_cut_goes_down_rung_by_rung_and_counts_once() {
    let mut rig = Rig::ok();
    (0..8).for_each(|_| rig.miss());
    rig.wait(Duration::from_millis(300));
    assert_eq!(rig.levels(), [Level::Degraded, Level::Failing, Level::Lost]);
    let report = rig.report();
    assert_eq!((report.miss_streak, report.worst_streak), (8, 8));
    assert_eq!(report.success_rate, Some(0.92));
    assert_eq!((report.losses, report.missed), (1, 8));
    rig.health.handle_disconnected(rig.now);
    assert_eq!(rig.levels(), []);
    assert_eq!(rig.report().losses, 1);
    assert_eq!(rig.report().why, Why::Disconnected);
}

#[test]
fn a_lost_connection_is_lost_at_once_and_its_open_echoes_are_missed() {
    let mut rig = Rig::ok();
    rig.health.handle_asked(rig.now);
    rig.health.handle_disconnected(rig.now);
    assert_eq!(rig.levels(), [Level::Lost]);
    assert_eq!(rig.report().missed, 1);
    rig.health.handle_connected();
    assert_eq!(rig.report().success_rate, None);
    assert_eq!(rig.report().worst_streak, 1);
    (0..10).for_each(|_| rig.answer(FAST));
    assert_eq!(rig.levels(), [Level::Ok]);
}

#[test]
fn an_answer_at_the_limit_is_in_time_and_one_after_it_is_late() {
    let limit = Thresholds::default().answer_within;
    let mut rig = Rig::ok();
    rig.answer(limit);
    assert_eq!((rig.report().missed, rig.report().late), (0, 0));
    rig.answer(limit + Duration::from_nanos(1));
    assert_eq!((rig.report().missed, rig.report().late), (1, 1));
}

#[test]
fn an_answer_after_its_verdict_counts_as_late_but_not_as_a_second_miss() {
    let mut rig = Rig::ok();
    let asked = rig.now;
    rig.miss();
    rig.wait(Duration::from_millis(400));
    assert_eq!(rig.report().missed, 1);
    rig.health.handle_answer(rig.now, rig.now - asked);
    let report = rig.report();
    assert_eq!((report.missed, report.late), (1, 1));
    assert_eq!(report.round_trip.unwrap().max, Duration::from_millis(500));
}

#[test]
fn one_miss_in_twenty_five_is_ok_and_one_in_ten_is_degraded() {
    let mut rig = Rig::ok();
    for number in 0..200 {
        if number % 25 == 0 {
            rig.miss()
        } else {
            rig.answer(FAST)
        }
    }
    assert_eq!(rig.levels(), []);
    for number in 0..200 {
        if number % 10 == 0 {
            rig.miss()
        } else {
            rig.answer(FAST)
        }
    }
    assert_eq!(rig.levels(), [Level::Degraded]);
}

#[test]
fn at_the_edge_of_a_rung_it_does_not_flutter() {
    let mut rig = Rig::ok();
    // 94 to 96 of the last 100: around the limit, below limit and margin.
    for number in 0..1000 {
        if number % 18 == 0 {
            rig.miss()
        } else {
            rig.answer(FAST)
        }
    }
    assert_eq!(rig.levels(), [Level::Degraded]);
}

#[test]
fn percentiles_forget_after_a_second_and_keep_quiet_without_samples_enough() {
    let mut rig = Rig::new();
    for milliseconds in 1..=9 {
        rig.answer(Duration::from_millis(milliseconds));
    }
    let figures = rig.report().round_trip.unwrap();
    assert_eq!(figures.samples, 9);
    assert_eq!(figures.p90, None);
    assert_eq!(figures.p50, Duration::from_millis(5));
    rig.answer(Duration::from_millis(10));
    let figures = rig.report().round_trip.unwrap();
    assert_eq!(
        (figures.p90, figures.p99),
        (Some(Duration::from_millis(9)), None)
    );
    rig.wait(Duration::from_millis(900));
    assert_eq!(rig.report().round_trip.unwrap().samples, 1);
    rig.wait(Duration::from_millis(100));
    assert_eq!(rig.report().round_trip, None);
}

#[test]
fn ages_are_those_of_the_newest_packet() {
    let mut rig = Rig::new();
    rig.health.handle_sent(rig.now);
    rig.health.handle_heard(rig.now + FAST);
    let report = rig.health.report(rig.now + PERIOD);
    assert_eq!(report.sent_age, Some(PERIOD));
    assert_eq!(report.heard_age, Some(PERIOD - FAST));
}

proptest! {
    #[test]
    fn every_exchange_gets_one_verdict_and_figures_stay_in_range(
        answers in prop::collection::vec(prop::option::weighted(0.8, 0_u64..400), 0..500),
    ) {
        let mut rig = Rig::new();
        for answer in &answers {
            match answer {
                Some(ms) => {
                    rig.answer(Duration::from_millis(*ms));
                }
                None => rig.miss(),
            }
            let report = rig.report();
            let rate = report.success_rate.unwrap_or(1.0);
            prop_assert!((0.0..=1.0).contains(&rate));
            prop_assert!(report.miss_streak <= report.worst_streak);
            prop_assert!(report.exchanges <= WINDOW);
        }
        rig.wait(Duration::from_secs(1));
        let report = rig.report();
        prop_assert_eq!(report.answered + report.missed, answers.len() as u64);
        prop_assert_eq!(rig.health.poll_timeout(), None);
    }

    #[test]
    fn a_better_rung_needs_its_exchanges_in_a_row(
        answers in prop::collection::vec(prop::bool::weighted(0.85), 0..500),
    ) {
        let mut rig = Rig::new();
        let (mut level, mut since) = (Level::Lost, 0);
        for answered in answers {
            let before = rig.report().answered + rig.report().missed;
            if answered { rig.answer(FAST) } else { rig.miss() }
            let report = rig.report();
            since += report.answered + report.missed - before;
            if report.level < level {
                prop_assert!(since >= 10, "after {} exchanges", since);
            }
            if report.level != level {
                (level, since) = (report.level, 0);
            }
        }
    }
}
