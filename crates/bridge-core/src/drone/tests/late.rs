//! Parameters, topics and trajectories at run time; what happens with locked and watched drones.

use crtp::Value;
use crtp::trajectory::Piece;

use super::rig::Rig;
use super::*;
use crate::command::{StartTrajectory, Trajectory};
use crate::drone_side::Reason;
use crate::fleet::late_topic;

/// What was said to a ticket.
fn outcome(rig: &mut Rig, asked: Ticket) -> Result<(), String> {
    match rig.until(|event| matches!(event, DroneEvent::Reply { ticket, .. } if *ticket == asked)) {
        DroneEvent::Reply { outcome, .. } => outcome,
        other => panic!("{other:?}"),
    }
}

fn add(rig: &mut Rig, topic: &str, variables: &[&str]) -> Result<(), String> {
    let variables: Vec<_> = variables.iter().map(|name| (*name).to_owned()).collect();
    let log = late_topic(topic, 50.0, &variables).map_err(|error| error.to_string())?;
    let ticket = rig.drone.add_topic(rig.now, topic, log);
    let ticket = ticket.map_err(|error| error.to_string())?;
    outcome(rig, ticket)
}

fn write(rig: &mut Rig, name: &str, setting: ParamSetting) -> Result<(), String> {
    let ticket = rig.drone.write_param(rig.now, name, setting);
    let ticket = ticket.map_err(|error| error.to_string())?;
    outcome(rig, ticket)
}

fn samples_of(rig: &Rig, name: &str) -> usize {
    rig.count(|event| matches!(event, DroneEvent::Custom { topic, .. } if topic == name))
}

fn hovering(link_loss: &str) -> (Rig, Setpoint) {
    let settings = format!("{TOPICS}, link_loss: {link_loss}");
    let mut rig = Rig::connected(&settings, Rig::quiet());
    rig.pass(Duration::from_secs(2));
    let hover = Setpoint::Hover {
        velocity: [0.0; 2],
        yaw_rate: 0.0,
        height: 0.5,
    };
    rig.stream(&hover, Duration::from_secs(3));
    (rig, hover)
}

#[test]
fn parameters_are_listed_written_and_followed() {
    let mut rig = Rig::connected(TOPICS, Rig::quiet());
    let listed = rig.seen.iter().find_map(|event| match event {
        DroneEvent::Params(infos) => Some(infos.clone()),
        _ => None,
    });
    let listed = listed.unwrap();
    let info = |name: &str| listed.iter().find(|info| info.name == name).unwrap();
    assert!(info("deck.cpxOverUART2").read_only && !info("pm.lowVoltage").read_only);
    assert_eq!(
        write(&mut rig, "pm.lowVoltage", ParamSetting::Whole(3)),
        Ok(())
    );
    assert_eq!(rig.drone.param("pm.lowVoltage"), Some(Value::F32(3.0)));
    rig.link
        .drone_mut()
        .set_parameter("flightmode", "yawMode", Value::U8(1));
    let changed = rig.until(
        |event| matches!(event, DroneEvent::Param { name, .. } if name == "flightmode.yawMode"),
    );
    let value = Value::U8(1);
    let name = "flightmode.yawMode".to_owned();
    assert_eq!(changed, DroneEvent::Param { name, value });
}

#[test]
fn numbers_that_a_parameter_does_not_take_are_refused_by_name() {
    let mut rig = Rig::connected(TOPICS, Rig::quiet());
    for (name, setting, words) in [
        (
            "flightmode.yawMode",
            ParamSetting::Whole(256),
            "from 0 to 255",
        ),
        (
            "flightmode.yawMode",
            ParamSetting::Float(0.5),
            "from 0 to 255",
        ),
        ("pm.lowVoltage", ParamSetting::Float(f64::NAN), "finite"),
        ("deck.cpxOverUART2", ParamSetting::Whole(1), "read-only"),
        ("no.such", ParamSetting::Whole(1), "no such parameter"),
    ] {
        let why = write(&mut rig, name, setting).unwrap_err();
        assert!(why.contains(name) && why.contains(words), "{why}");
    }
    let info = ParamInfo {
        name: "a.b".to_owned(),
        kind: crtp::Kind::U8,
        read_only: false,
    };
    assert_eq!(info.check(ParamSetting::Flag(true)), Ok(()));
    assert_eq!(
        info.check(ParamSetting::Whole(-1)),
        Err("parameter a.b is -1, allowed: a whole number from 0 to 255".to_owned())
    );
}

#[test]
fn every_parameter_is_read_where_that_is_asked_for() {
    let mut rig = Rig::new_with(TOPICS, Rig::quiet(), |robot| robot.query_params = true);
    rig.until(|event| matches!(event, DroneEvent::Params(_)));
    rig.pass(Duration::from_secs(5));
    let known = |event: &DroneEvent| matches!(event, DroneEvent::Param { .. });
    let listed = rig.seen.iter().find_map(|event| match event {
        DroneEvent::Params(infos) => Some(infos.len()),
        _ => None,
    });
    assert_eq!(Some(rig.count(known)), listed);
}

#[test]
fn topics_come_and_go_at_run_time() {
    let mut rig = Rig::connected(TOPICS, Rig::quiet());
    assert_eq!(
        add(&mut rig, "heights", &["stateEstimate.z", "pm.vbat"]),
        Ok(())
    );
    rig.pass(Duration::from_secs(1));
    assert!(samples_of(&rig, "heights") > 40);
    let again = add(&mut rig, "heights", &["pm.vbat"]);
    assert_eq!(again, Err("topic heights is there already".to_owned()));
    rig.drone.remove_topic(rig.now, "heights").unwrap();
    rig.pass(Duration::from_millis(100));
    rig.seen.clear();
    rig.pass(Duration::from_secs(1));
    assert_eq!(samples_of(&rig, "heights"), 0);
    assert_eq!(
        rig.drone.remove_topic(rig.now, "heights"),
        Err(CommandError::NoTopic("heights".to_owned()))
    );
    assert_eq!(add(&mut rig, "heights", &["pm.vbat"]), Ok(()));
}

#[test]
fn a_fixed_topic_needs_no_variables() {
    let mut rig = Rig::connected(TOPICS, Rig::quiet());
    assert_eq!(add(&mut rig, "scan", &[]), Ok(()));
    rig.until(|event| matches!(event, DroneEvent::Scan(_)));
    rig.drone.remove_topic(rig.now, "pose").unwrap();
}

#[test]
fn a_topic_asked_for_with_a_missing_variable_is_refused_naming_it() {
    let mut rig = Rig::connected(TOPICS, Rig::quiet());
    let refused = add(&mut rig, "lost", &["pm.vbat", "no.such"]);
    assert_eq!(
        refused,
        Err("topic lost: the drone has no log variable no.such".to_owned())
    );
    assert_eq!(
        add(&mut rig, "lost", &["pm.vbat"]),
        Ok(()),
        "its name is free again"
    );
    assert!(
        add(&mut rig, "none", &["no.such"])
            .unwrap_err()
            .contains("no.such")
    );
}

const FLOATS: [&str; 6] = [
    "stateEstimate.x",
    "stateEstimate.y",
    "stateEstimate.z",
    "stateEstimate.vx",
    "stateEstimate.vy",
    "stateEstimate.vz",
];

#[test]
fn seven_floats_are_split_visibly_or_refused_naming_block_bytes_and_limit() {
    let mut seven = FLOATS.to_vec();
    seven.push("pm.vbat");
    let mut rig = Rig::connected(TOPICS, Rig::quiet());
    assert_eq!(add(&mut rig, "many", &seven), Ok(()));
    let visibly = "topic many: more than 26 bytes, split over 2 log blocks";
    assert_eq!(
        rig.count(|event| *event == DroneEvent::Notice(visibly.to_owned())),
        1
    );
    let unsplit =
        "firmware_logging: {split_blocks: false, default_topics: {pose: {frequency: 10}}}";
    let mut rig = Rig::connected(unsplit, Rig::quiet());
    let refused = "log many: its variables have 28 bytes, a block holds at most 26";
    assert_eq!(add(&mut rig, "many", &seven), Err(refused.to_owned()));
    seven.pop();
    seven.push("pm.state");
    seven.push("radio.rssi");
    assert_eq!(add(&mut rig, "many", &seven), Ok(()), "26 bytes fit");
    seven.push("pm.batteryLevel");
    assert!(
        add(&mut rig, "more", &seven)
            .unwrap_err()
            .contains("27 bytes")
    );
}

fn straight_up(duration: f32) -> Piece {
    let (still, mut up) = ([0.0; 8], [0.0; 8]);
    up[1] = 0.2;
    Piece {
        x: still,
        y: still,
        z: up,
        yaw: still,
        duration,
    }
}

#[test]
fn an_uploaded_trajectory_is_flown() {
    let mut rig = Rig::connected(TOPICS, Rig::quiet());
    rig.pass(Duration::from_secs(2));
    rig.ask(&Request::Takeoff(vertical(0.5))).unwrap();
    rig.pass(Duration::from_secs(3));
    let trajectory = Trajectory {
        id: 3,
        piece_offset: 2,
        pieces: vec![straight_up(2.0)],
    };
    let asked = rig.drone.upload_trajectory(rig.now, &trajectory).unwrap();
    assert_eq!(outcome(&mut rig, asked), Ok(()));
    let start = StartTrajectory {
        group_mask: 0,
        trajectory_id: 3,
        timescale: 1.0,
        reversed: false,
        relative: true,
    };
    rig.ask(&Request::StartTrajectory(start)).unwrap();
    rig.pass(Duration::from_secs(3));
    let height = rig.link.drone().snapshot().position_m[2];
    assert!((height - 0.9).abs() < 0.08, "{height}");
    assert_eq!(rig.would_crash(), 0);
}

#[test]
fn a_trajectory_that_does_not_fit_is_refused_naming_the_room() {
    let mut rig = Rig::connected(TOPICS, Rig::quiet());
    for (piece_offset, pieces) in [(0, 0), (31, 1), (0, 32), (u32::MAX, 1)] {
        let trajectory = Trajectory {
            id: 1,
            piece_offset,
            pieces: vec![straight_up(1.0); pieces],
        };
        let error = rig
            .drone
            .upload_trajectory(rig.now, &trajectory)
            .unwrap_err();
        assert!(error.to_string().contains("1 to 31 pieces"), "{error}");
    }
}

#[test]
fn an_emergency_stop_leaves_even_before_the_connection() {
    let mut rig = Rig::new(TOPICS, Rig::quiet());
    assert_eq!(
        rig.drone.request(rig.now, &Request::Emergency),
        Err(CommandError::Unconfirmed)
    );
    rig.pass(Duration::from_millis(100));
    let info = supervisor::Info(rig.link.drone().snapshot().info);
    assert!(info.has(supervisor::Info::LOCKED), "{info:?}");
}

#[test]
fn r1000_null_packets_a_second_make_no_event() {
    let mut rig = Rig::connected(TOPICS, Rig::quiet());
    rig.drone.set_raw(true);
    let samples = rig.drone.health().samples;
    for _ in 0..1000 {
        let null = Received {
            packet: Packet::NULL,
            class: class_of(&Packet::NULL),
            at: rig.now,
            expires: None,
        };
        rig.drone.handle_downlink(rig.now, &null);
    }
    assert_eq!(rig.drone.poll_event(), None);
    assert_eq!(
        (
            rig.drone.health().samples,
            rig.drone.health().client.unexpected
        ),
        (samples, 0)
    );
}

#[test]
fn a_locked_drone_is_not_landed() {
    let (mut rig, hover) = hovering("{policy: land}");
    rig.ask(&Request::Emergency).unwrap();
    rig.stream(&hover, Duration::from_secs(1));
    rig.pass(Duration::from_secs(2));
    assert!(
        rig.drone
            .supervisor()
            .unwrap()
            .has(supervisor::Info::LOCKED)
    );
    assert_eq!(rig.drone.actions().unwrap().link_loss, 0);
    assert_eq!(
        rig.count(|event| matches!(event, DroneEvent::Safety(Reason::LinkLoss(_)))),
        0
    );
}

#[test]
fn the_watchdog_is_fed_only_where_it_is_asked_for() {
    let (rig, _) = hovering("{policy: land}");
    assert_eq!(rig.link.drone().report().commands.watchdog_feeds, 0);
    let (mut rig, hover) = hovering("{policy: land, watchdog: true}");
    rig.stream(&hover, Duration::from_secs(3));
    let feeds = rig.link.drone().report().commands.watchdog_feeds;
    assert!((20..50).contains(&feeds), "{feeds}");
    assert!(rig.link.drone().snapshot().position_m[2] > 0.4);
}
