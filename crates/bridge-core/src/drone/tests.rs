//! The robot against the simulated Crazyflie, in virtual time.

mod health;
mod late;
mod rig;

use crtp::ProtocolVersion;

use super::*;
use crate::command::{GoTo, Vertical};
use rig::Rig;

const TOPICS: &str = "firmware_logging: {default_topics: {pose: {frequency: 50}, odom: {frequency: 20}, \
     imu: {frequency: 20}, battery: {frequency: 2}, status: {frequency: 5}}}";

fn vertical(height: f64) -> Vertical {
    Vertical {
        group_mask: 0,
        height,
        duration: 2.0,
    }
}

#[test]
fn every_topic_comes_at_its_rate() {
    let mut rig = Rig::connected(TOPICS, Rig::quiet());
    rig.pass(Duration::from_secs(1));
    rig.seen.clear();
    rig.pass(Duration::from_secs(10));
    for (rate, wanted) in [
        (
            50,
            (|event| matches!(event, DroneEvent::Pose(_))) as fn(&DroneEvent) -> bool,
        ),
        (20, |event| matches!(event, DroneEvent::Odometry(_))),
        (20, |event| matches!(event, DroneEvent::Imu(_))),
        (2, |event| matches!(event, DroneEvent::Battery(_))),
        (5, |event| matches!(event, DroneEvent::Status(_))),
    ] {
        let count = rig.count(wanted);
        assert!(
            count.abs_diff(10 * rate) <= 1,
            "{count} in 10 s instead of {}",
            10 * rate
        );
    }
    assert_eq!(rig.would_crash(), 0);
}

#[test]
fn it_takes_off_hovers_and_lands() {
    let mut rig = Rig::connected(TOPICS, Rig::quiet());
    rig.pass(Duration::from_secs(2));
    assert_eq!(rig.ask(&Request::Takeoff(vertical(0.5))), Ok(()));
    rig.pass(Duration::from_secs(3));
    assert!((rig.link.drone().snapshot().position_m[2] - 0.5).abs() < 0.05);
    rig.stream(
        &Setpoint::Hover {
            velocity: [0.3, 0.0],
            yaw_rate: 0.0,
            height: 0.8,
        },
        Duration::from_secs(3),
    );
    let flying = rig.link.drone().snapshot();
    assert!(
        (flying.position_m[2] - 0.8).abs() < 0.05 && (flying.velocity_m_s[0] - 0.3).abs() < 0.05
    );
    let odometry = rig.until(|event| matches!(event, DroneEvent::Odometry(_)));
    let DroneEvent::Odometry(odometry) = odometry else {
        panic!("{odometry:?}")
    };
    assert!((odometry.linear[0] - 0.3).abs() < 0.05, "{odometry:?}");
    assert_eq!(rig.ask(&Request::Land(vertical(0.0))), Ok(()));
    assert_eq!(rig.drone.actions().unwrap().high_level_next, 1);
    rig.pass(Duration::from_secs(4));
    assert!(rig.link.drone().snapshot().position_m[2] < 0.02);
    assert_eq!(
        (rig.would_crash(), rig.drone.actions().unwrap().link_loss),
        (0, 0)
    );
}

#[test]
fn counter_clockwise_is_counter_clockwise() {
    let mut rig = Rig::connected(TOPICS, Rig::quiet());
    rig.pass(Duration::from_secs(2));
    let turn = Setpoint::Hover {
        velocity: [0.0; 2],
        yaw_rate: 0.5,
        height: 0.5,
    };
    rig.stream(&turn, Duration::from_secs(4));
    assert!((rig.link.drone().snapshot().yaw_rate_rad_s - 0.5).abs() < 0.05);
    let odometry = rig.until(|event| matches!(event, DroneEvent::Odometry(_)));
    let DroneEvent::Odometry(odometry) = odometry else {
        panic!("{odometry:?}")
    };
    assert!((odometry.angular[2] - 0.5).abs() < 0.05, "{odometry:?}");
}

#[test]
fn cmd_vel_flies_where_the_drone_looks() {
    let simulated = simulator::Config {
        heading: std::f64::consts::FRAC_PI_2,
        ..Rig::quiet()
    };
    let mut rig = Rig::connected(TOPICS, simulated);
    rig.pass(Duration::from_secs(2));
    rig.stream(
        &Setpoint::Hover {
            velocity: [0.0; 2],
            yaw_rate: 0.0,
            height: 0.5,
        },
        Duration::from_secs(2),
    );
    rig.stream(
        &Setpoint::Velocity {
            linear: [0.3, 0.0, 0.0],
            yaw_rate: 0.0,
        },
        Duration::from_secs(2),
    );
    let velocity = rig.link.drone().snapshot().velocity_m_s;
    assert!(
        (velocity[1] - 0.3).abs() < 0.05 && velocity[0].abs() < 0.05,
        "{velocity:?}"
    );
}

#[test]
fn first_setpoint_has_thrust_and_the_motors_obey() {
    let mut rig = Rig::connected(TOPICS, Rig::quiet());
    rig.pass(Duration::from_secs(2));
    let climb = Setpoint::Attitude {
        roll: 0.0,
        pitch: 0.0,
        yaw_rate: 0.0,
        thrust: 0.9,
    };
    rig.stream(&climb, Duration::from_secs(1));
    assert!(
        rig.link.drone().snapshot().position_m[2] > 0.1,
        "{:?}",
        rig.link.drone().snapshot()
    );
    assert_eq!(rig.drone.actions().unwrap().unlock, 1);
}

#[test]
fn refusals_are_in_words() {
    let brushless = simulator::Config {
        auto_arm: false,
        ..Rig::quiet()
    };
    let mut rig = Rig::connected(TOPICS, brushless);
    rig.pass(Duration::from_secs(2));
    assert_eq!(
        rig.ask(&Request::Takeoff(vertical(0.5))),
        Err("not armed".to_owned())
    );
    assert_eq!(rig.ask(&Request::Arm(true)), Ok(()));
    rig.pass(Duration::from_secs(3));
    assert_eq!(rig.ask(&Request::Takeoff(vertical(0.5))), Ok(()));
}

#[test]
fn arming_before_the_preflight_checks_says_so() {
    let brushless = simulator::Config {
        auto_arm: false,
        ..Rig::quiet()
    };
    let mut rig = Rig::connected(TOPICS, brushless);
    let outcome = rig.ask(&Request::Arm(true));
    assert!(
        outcome == Ok(()) || outcome == Err("not armed: preflight not passed".to_owned()),
        "{outcome:?}"
    );
}

#[test]
fn a_missing_log_variable_disables_its_topic_and_no_other() {
    let settings = "firmware_logging: {default_topics: {pose: {frequency: 50}}, custom_topics: \
         {lost: {frequency: 10, vars: [pm.vbat, no.such]}, kept: {frequency: 10, vars: [pm.vbat]}}}";
    let mut rig = Rig::connected(settings, Rig::quiet());
    rig.pass(Duration::from_secs(3));
    let disabled = rig.seen.iter().find_map(|event| match event {
        DroneEvent::TopicDisabled { topic, why } => Some((topic.as_str(), why.as_str())),
        _ => None,
    });
    assert_eq!(
        disabled,
        Some(("lost", "the drone has no log variable no.such"))
    );
    let of = |name: &str| {
        rig.count(|event| matches!(event, DroneEvent::Custom { topic, .. } if topic == name))
    };
    assert!(
        of("kept") > 10 && of("lost") <= 1,
        "{} {}",
        of("kept"),
        of("lost")
    );
    assert!(rig.count(|event| matches!(event, DroneEvent::Pose(_))) > 50);
}

#[test]
fn parameters_are_written_and_wrong_ones_named() {
    let settings = "firmware_params: {stabilizer: {controller: 2}, no: {such: 1}}";
    let mut rig = Rig::connected(settings, Rig::quiet());
    rig.pass(Duration::from_secs(2));
    let named =
        |event: &DroneEvent| matches!(event, DroneEvent::Notice(text) if text.contains("no.such"));
    assert_eq!(rig.count(named), 1);
}

#[test]
fn commands_before_the_connection_are_refused() {
    let mut rig = Rig::new(TOPICS, Rig::quiet());
    let now = rig.now;
    assert_eq!(
        rig.drone.setpoint(now, &Setpoint::Stop),
        Err(CommandError::NotConnected)
    );
    assert_eq!(
        rig.drone.request(now, &Request::Arm(true)),
        Err(CommandError::NotConnected)
    );
}

#[test]
fn a_publisher_that_vanishes_in_flight_makes_it_land() {
    let mut rig = Rig::connected(TOPICS, Rig::quiet());
    rig.pass(Duration::from_secs(2));
    rig.stream(
        &Setpoint::Hover {
            velocity: [0.0; 2],
            yaw_rate: 0.0,
            height: 0.5,
        },
        Duration::from_secs(3),
    );
    rig.pass(Duration::from_secs(6));
    let landed = rig.link.drone().snapshot();
    assert!(landed.position_m[2] < 0.02, "{landed:?}");
    let report = rig.link.drone().report();
    assert_eq!(
        (report.flight.level_outs, report.flight.locks),
        (0, 0),
        "it acted before the firmware did"
    );
    assert_eq!(rig.drone.actions().unwrap().link_loss, 1);
}

#[test]
fn ending_in_flight_makes_it_land() {
    let mut rig = Rig::connected(TOPICS, Rig::quiet());
    rig.pass(Duration::from_secs(2));
    rig.stream(
        &Setpoint::Hover {
            velocity: [0.0; 2],
            yaw_rate: 0.0,
            height: 0.5,
        },
        Duration::from_secs(3),
    );
    rig.drone.finish(rig.now);
    rig.pass(Duration::from_secs(5));
    assert!(rig.drone.is_drained());
    assert!(rig.link.drone().snapshot().position_m[2] < 0.02);
    assert_eq!(
        rig.count(|event| matches!(event, DroneEvent::Connected(_))),
        1
    );
}

#[test]
fn raw_packets_go_out_and_come_in() {
    let mut rig = Rig::connected(TOPICS, Rig::quiet());
    rig.drone.set_raw(true);
    let request = Packet::from_bytes(&[0xdd, 0]).unwrap();
    assert_eq!(rig.ask(&Request::Raw(request)), Ok(()));
    let is_answer =
        |event: &DroneEvent| matches!(event, DroneEvent::Raw(raw) if raw.kind() == 0xd1);
    rig.until(is_answer);
}

#[test]
fn go_to_goes_there() {
    let mut rig = Rig::connected(TOPICS, Rig::quiet());
    rig.pass(Duration::from_secs(2));
    rig.ask(&Request::Takeoff(vertical(0.5))).unwrap();
    rig.pass(Duration::from_secs(3));
    let goal = [0.5, -0.5, 0.7];
    let go_to = GoTo {
        group_mask: 0,
        relative: false,
        goal,
        yaw: 1.0,
        duration: 3.0,
    };
    rig.ask(&Request::GoTo(go_to)).unwrap();
    rig.pass(Duration::from_secs(5));
    let there = rig.link.drone().snapshot();
    let near = |a: f64, b: f64| (a - b).abs() < 0.05;
    assert!(
        (0..3).all(|axis| near(there.position_m[axis], goal[axis])),
        "{there:?}"
    );
    assert!(near(there.attitude_rad[2], 1.0), "{there:?}");
}

#[test]
fn the_version_is_reported() {
    let rig = Rig::connected(TOPICS, Rig::quiet());
    assert!(
        rig.seen
            .contains(&DroneEvent::Connected(ProtocolVersion::NEWEST))
    );
}
