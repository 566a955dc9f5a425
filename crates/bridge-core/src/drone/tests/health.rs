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

/// A drone in the air by its user's setpoints.
fn hovering(link_health: &str) -> (Rig, Setpoint) {
    let settings = format!("{TOPICS}, link_health: {link_health}");
    let mut rig = Rig::connected(&settings, Rig::quiet());
    rig.pass(Duration::from_secs(2));
    let hover = Setpoint::Hover {
        velocity: [0.4, 0.0],
        yaw_rate: 0.0,
        height: 0.5,
    };
    let still = Setpoint::Hover {
        velocity: [0.0; 2],
        yaw_rate: 0.0,
        height: 0.5,
    };
    rig.stream(&still, Duration::from_secs(3));
    (rig, hover)
}

/// Echoes are missed while everything else passes: the answers come too late by the clock of the robot.
fn fail(rig: &mut Rig, level: Level) {
    let start = rig.now;
    while rig.drone.link_health.level() < level {
        rig.drone.link_health.handle_asked(rig.now);
        rig.now += Duration::from_millis(1);
        let overdue = rig.now + Duration::from_millis(251);
        rig.drone.link_health.handle_timeout(overdue);
        assert!(rig.now < start + Duration::from_millis(100));
    }
    rig.pass(Duration::from_millis(1));
}

fn said(rig: &Rig, wanted: &DroneEvent) -> bool {
    rig.seen.contains(wanted)
}

#[test]
fn nothing_is_done_unless_asked_for() {
    let (mut rig, hover) = hovering("{}");
    fail(&mut rig, Level::Failing);
    rig.stream(&hover, Duration::from_millis(200));
    let begun = |event: &DroneEvent| matches!(event, DroneEvent::Manoeuvre(_));
    assert_eq!(rig.count(begun), 0);
}

#[test]
fn a_degraded_link_slows_velocities_down() {
    let (mut quick, hover) = hovering("{}");
    let (mut slow, _) = hovering("{on_degraded: slow_down, slow_down_to: 0.25}");
    let mut way = Vec::new();
    for rig in [&mut quick, &mut slow] {
        fail(rig, Level::Degraded);
        let from = rig.link.drone().snapshot().position_m[0];
        rig.stream(&hover, Duration::from_millis(900));
        way.push(rig.link.drone().snapshot().position_m[0] - from);
    }
    assert!(way[0] > 0.1, "{way:?}");
    assert!(way[1] < way[0] / 2.0, "{way:?}");
}

#[test]
fn a_failing_link_hovers_and_gives_the_drone_back_when_it_is_better() {
    let (mut rig, hover) = hovering("{on_failing: hover}");
    fail(&mut rig, Level::Failing);
    assert!(said(&rig, &DroneEvent::Manoeuvre(Manoeuvre::Hover)));
    let refused = Err(CommandError::LinkFailing(Manoeuvre::Hover));
    assert_eq!(rig.drone.setpoint(rig.now, &hover), refused);
    let up = Request::Takeoff(vertical(1.0));
    let refused = rig.drone.request(rig.now, &up);
    assert_eq!(refused, Err(CommandError::LinkFailing(Manoeuvre::Hover)));
    assert_eq!(
        rig.drone
            .setpoint(rig.now, &Setpoint::ExternalPosition { position: [0.0; 3] }),
        Ok(())
    );
    rig.pass(Duration::from_secs(12));
    assert!(said(&rig, &DroneEvent::ManoeuvreEnds(Manoeuvre::Hover)));
    assert!((rig.link.drone().snapshot().position_m[2] - 0.5).abs() < 0.1);
    assert_eq!(rig.drone.setpoint(rig.now, &hover), Ok(()));
}

#[test]
fn a_failing_link_lands_and_takes_no_flight_before_the_drone_stands() {
    let (mut rig, hover) = hovering("{on_failing: land}");
    fail(&mut rig, Level::Failing);
    assert!(said(&rig, &DroneEvent::Manoeuvre(Manoeuvre::Land)));
    rig.pass(Duration::from_millis(1));
    let refused = Err(CommandError::LinkFailing(Manoeuvre::Land));
    assert_eq!(rig.drone.setpoint(rig.now, &hover), refused);
    rig.pass(Duration::from_secs(20));
    assert!(rig.link.drone().snapshot().position_m[2] < 0.05);
    assert!(said(&rig, &DroneEvent::ManoeuvreEnds(Manoeuvre::Land)));
    assert_eq!(rig.drone.setpoint(rig.now, &hover), Ok(()));
}

#[test]
fn a_drone_that_stands_is_left_alone() {
    let settings = format!("{TOPICS}, link_health: {{on_failing: land}}");
    let mut rig = Rig::connected(&settings, Rig::quiet());
    rig.pass(Duration::from_secs(2));
    fail(&mut rig, Level::Failing);
    let begun = |event: &DroneEvent| matches!(event, DroneEvent::Manoeuvre(_));
    assert_eq!(rig.count(begun), 0);
}
