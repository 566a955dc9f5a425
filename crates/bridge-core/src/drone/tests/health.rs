//! The health of the link to a simulated drone that is there, gone, and back.

use super::rig::Rig;
use super::*;
use crate::health::Level;
use crate::test::MemoryLink;

/// Time passes with packets going nowhere.
fn cut(rig: &mut Rig, time: Duration) {
    let end = rig.now + time;
    let mut nowhere = MemoryLink::up();
    while rig.now < end {
        rig.now += Duration::from_millis(10);
        rig.drone.pump(rig.now, &mut nowhere);
        rig.seen
            .extend(std::iter::from_fn(|| rig.drone.poll_event()));
    }
}

fn levels(rig: &Rig) -> Vec<Level> {
    let level = |event: &DroneEvent| match event {
        DroneEvent::LinkHealth(change) => Some(change.to),
        _ => None,
    };
    rig.seen.iter().filter_map(level).collect()
}

#[test]
fn a_drone_that_answers_is_ok_a_second_after_it_has_connected() {
    let mut rig = Rig::connected(TOPICS, Rig::quiet());
    rig.pass(Duration::from_millis(1100));
    assert_eq!(levels(&rig), [Level::Ok]);
    rig.pass(Duration::from_secs(20));
    assert_eq!(levels(&rig), [Level::Ok]);
    let report = rig.drone.link_health(rig.now);
    assert_eq!((report.exchanges, report.success_rate), (100, Some(1.0)));
    assert_eq!((report.missed, report.late, report.losses), (0, 0, 0));
    assert!((9..=11).contains(&report.round_trip.unwrap().samples));
    assert!(report.heard_age.unwrap() < Duration::from_millis(100));
    assert!(report.sent_age.unwrap() <= Duration::from_millis(100));
}

#[test]
fn a_drone_that_falls_silent_is_lost_within_its_patience_and_ok_again_when_it_is_back() {
    let mut rig = Rig::connected(TOPICS, Rig::quiet());
    rig.pass(Duration::from_secs(3));
    cut(&mut rig, Duration::from_secs(3));
    assert_eq!(
        levels(&rig),
        [Level::Ok, Level::Degraded, Level::Failing, Level::Lost]
    );
    let report = rig.drone.link_health(rig.now);
    assert_eq!(report.losses, 1);
    assert!(report.heard_age.unwrap() > Duration::from_millis(2900));
    assert_eq!(report.round_trip, None);
    rig.until(|event| matches!(event, DroneEvent::Connected(_)));
    rig.seen.clear();
    rig.pass(Duration::from_secs(20));
    assert_eq!(levels(&rig).last(), Some(&Level::Ok));
    assert_eq!(rig.drone.link_health(rig.now).success_rate, Some(1.0));
}
