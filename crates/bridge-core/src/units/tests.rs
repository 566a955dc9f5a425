//! The golden table: one unit on one axis gives exactly these bytes.

use super::*;
use crate::test::packet;

const NEW: ProtocolVersion = ProtocolVersion(12);
const NO_TURN: [f64; 4] = [0.0, 0.0, 0.0, 1.0];

fn bytes(message: Setpoint, version: ProtocolVersion) -> String {
    format!("{:?}", setpoint(&message, version, Some(0.0)).unwrap())
}

fn axis(index: usize) -> [f64; 3] {
    std::array::from_fn(|at| f64::from(u8::from(at == index)))
}

fn hover_turning(yaw_rate: f64) -> Setpoint {
    Setpoint::Hover {
        velocity: [0.0; 2],
        yaw_rate,
        height: 0.5,
    }
}

fn full_state(rates: [f64; 3]) -> Setpoint {
    Setpoint::FullState {
        position: [0.0; 3],
        velocity: [0.0; 3],
        acceleration: [0.0; 3],
        orientation: NO_TURN,
        rates,
    }
}

fn attitude(roll: f64, pitch: f64, yaw_rate: f64) -> Setpoint {
    Setpoint::Attitude {
        roll,
        pitch,
        yaw_rate,
        thrust: 0.5,
    }
}

const ZERO: &str = "00000000";
/// 57.29578, the degrees of 1 rad.
const PLUS: &str = "e12e6542";
/// -57.29578.
const MINUS: &str = "e12e65c2";

/// The message, and its bytes for versions to 8 and from 9.
fn golden() -> Vec<(Setpoint, String, String)> {
    let half = "0000003f";
    let same = |message, hex: String| (message, hex.clone(), hex);
    let [roll_rate, pitch_rate, yaw_rate] = [0, 1, 2].map(|index| full_state(axis(index)));
    let still = format!("7c06{}000000c0", "0000".repeat(9));
    let to_world = |message| {
        (
            message,
            format!("7c01{ZERO}{ZERO}{ZERO}{MINUS}"),
            format!("7c08{ZERO}{ZERO}{ZERO}{PLUS}"),
        )
    };
    vec![
        (
            hover_turning(1.0),
            format!("7c05{ZERO}{ZERO}{MINUS}{half}"),
            format!("7c0a{ZERO}{ZERO}{PLUS}{half}"),
        ),
        to_world(Setpoint::VelocityWorld {
            velocity: [0.0; 3],
            yaw_rate: 1.0,
        }),
        to_world(Setpoint::Velocity {
            linear: [0.0; 3],
            yaw_rate: 1.0,
        }),
        same(
            Setpoint::Position {
                position: [0.0; 3],
                yaw: 1.0,
            },
            format!("7c07{ZERO}{ZERO}{ZERO}{PLUS}"),
        ),
        same(roll_rate, format!("{still}e80300000000")),
        same(pitch_rate, format!("{still}0000e8030000")),
        same(yaw_rate, format!("{still}00000000e803")),
        same(attitude(1.0, 0.0, 0.0), format!("3c{PLUS}{ZERO}{ZERO}3075")),
        same(
            attitude(0.0, 1.0, 0.0),
            format!("3c{ZERO}{MINUS}{ZERO}3075"),
        ),
        same(
            attitude(0.0, 0.0, 1.0),
            format!("3c{ZERO}{ZERO}{MINUS}3075"),
        ),
    ]
}

#[test]
fn plus_1_rad_on_one_axis_gives_exactly_the_bytes_of_the_table() {
    for (message, old, new) in golden() {
        for version in 6..=8 {
            assert_eq!(
                bytes(message, ProtocolVersion(version)),
                old,
                "{message:?} at {version}"
            );
        }
        for version in 9..=12 {
            assert_eq!(
                bytes(message, ProtocolVersion(version)),
                new,
                "{message:?} at {version}"
            );
        }
    }
}

#[test]
fn linear_axes_keep_their_signs() {
    let one = "0000803f";
    for (message, hex) in [
        (
            Setpoint::Hover {
                velocity: [1.0, 0.0],
                yaw_rate: 0.0,
                height: 0.0,
            },
            format!("7c0a{one}{ZERO}{ZERO}{ZERO}"),
        ),
        (
            Setpoint::Hover {
                velocity: [0.0, 1.0],
                yaw_rate: 0.0,
                height: 0.0,
            },
            format!("7c0a{ZERO}{one}{ZERO}{ZERO}"),
        ),
        (
            Setpoint::VelocityWorld {
                velocity: axis(2),
                yaw_rate: 0.0,
            },
            format!("7c08{ZERO}{ZERO}{one}{ZERO}"),
        ),
        (
            Setpoint::Position {
                position: axis(1),
                yaw: 0.0,
            },
            format!("7c07{ZERO}{one}{ZERO}{ZERO}"),
        ),
        (Setpoint::Stop, "7c00".to_owned()),
        (
            Setpoint::ExternalPosition {
                position: [1.0, 2.0, 3.0],
            },
            "6c0000803f0000004000004040".to_owned(),
        ),
        (
            Setpoint::ExternalPose {
                position: [1.0, 2.0, 3.0],
                orientation: NO_TURN,
            },
            "6d080000803f00000040000040400000000000000000000000000000803f".to_owned(),
        ),
    ] {
        for version in 9..=12 {
            let sent = bytes(message, ProtocolVersion(version));
            assert_eq!(sent, hex, "{message:?} at {version}");
        }
        // Before, the types are the older ones with the same axes, and a yaw rate of zero is negated.
        for version in 6..=8 {
            let sent = bytes(message, ProtocolVersion(version));
            let hex = hex.replace("7c0a", "7c05").replace("7c08", "7c01");
            assert_eq!(words(&sent), words(&hex), "{message:?} at {version}");
        }
    }
}

/// Type, and what follows in units of four bytes; the zeros without a sign.
fn words(hex: &str) -> Vec<String> {
    let (head, rest) = hex.split_at(4);
    let words = rest.as_bytes().chunks(8);
    let unsigned = words
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .map(|word| word.replace("00000080", ZERO));
    std::iter::once(head.to_owned()).chain(unsigned).collect()
}

#[test]
fn cmd_vel_follows_the_heading() {
    let forward = Setpoint::Velocity {
        linear: [1.0, 0.0, 0.25],
        yaw_rate: 0.0,
    };
    let east_is_left = std::f64::consts::FRAC_PI_2;
    let sent = setpoint(&forward, NEW, Some(east_is_left)).unwrap();
    let sp::Setpoint::VelocityWorld(world) = sp::Setpoint::parse(&sent).unwrap() else {
        panic!("{sent:?}")
    };
    assert!(
        world.vx.abs() < 1e-6 && (world.vy - 1.0).abs() < 1e-6 && world.vz == 0.25,
        "{world:?}"
    );
    assert_eq!(setpoint(&forward, NEW, None), Err(CommandError::NoHeading));
}

#[test]
fn thrust_is_a_share_of_the_most_and_clamped() {
    for (thrust, hex) in [(0.0, "0000"), (1.0, "60ea"), (7.0, "60ea"), (-1.0, "0000")] {
        let message = Setpoint::Attitude {
            roll: 0.0,
            pitch: 0.0,
            yaw_rate: 0.0,
            thrust,
        };
        assert_eq!(bytes(message, NEW), format!("3c{ZERO}{ZERO}{ZERO}{hex}"));
    }
}

#[test]
fn cmd_vel_legacy_keeps_its_units() {
    let message = Setpoint::Legacy {
        linear: [1.0, 2.0, 30_000.0],
        yaw_rate: 3.0,
    };
    for version in 6..=12 {
        let sent = bytes(message, ProtocolVersion(version));
        assert_eq!(sent, "3c00000040000080bf000040403075", "at {version}");
    }
}

#[test]
fn full_state_saturates_and_never_wraps() {
    let far = Setpoint::FullState {
        position: [40.0, -40.0, 1.0],
        velocity: [0.0; 3],
        acceleration: [0.0; 3],
        orientation: NO_TURN,
        rates: [0.0; 3],
    };
    assert!(
        bytes(far, NEW).starts_with("7c06ff7f0180e803"),
        "{}",
        bytes(far, NEW)
    );
}

#[test]
fn values_that_are_no_numbers_are_refused_by_name() {
    for (message, field) in [
        (hover_turning(f64::NAN), "yaw_rate"),
        (
            Setpoint::Position {
                position: [f64::INFINITY, 0.0, 0.0],
                yaw: 0.0,
            },
            "x",
        ),
        (
            Setpoint::Position {
                position: [1e300, 0.0, 0.0],
                yaw: 0.0,
            },
            "x",
        ),
        (attitude(0.0, f64::NAN, 0.0), "pitch"),
        (
            Setpoint::Attitude {
                roll: 0.0,
                pitch: 0.0,
                yaw_rate: 0.0,
                thrust: f64::NAN,
            },
            "thrust",
        ),
        (full_state([0.0, f64::NAN, 0.0]), "rate"),
    ] {
        let error = setpoint(&message, NEW, Some(0.0)).unwrap_err().to_string();
        assert!(error.contains(field), "{message:?}: {error}");
    }
}

/// The packet that the client makes of it.
fn asked_packet(asked: &Request, version: ProtocolVersion) -> String {
    let packet = match request(asked).unwrap() {
        Wire::Sent(packet) => packet,
        Wire::Asked(crtp_client::Request::HighLevel(command)) => {
            command.for_version(version).unwrap().encode().unwrap()
        }
        Wire::Asked(crtp_client::Request::Supervisor(command)) => command.encode(),
        Wire::Asked(crtp_client::Request::SupervisorInfo) => panic!("nobody asked for it"),
    };
    format!("{packet:?}")
}

#[test]
fn requests_become_these_packets() {
    let vertical = Vertical {
        group_mask: 0,
        height: 1.0,
        duration: 2.5,
    };
    let go_to = GoTo {
        group_mask: 0,
        relative: false,
        goal: [1.0, 0.0, 0.5],
        yaw: 1.0,
        duration: 3.0,
    };
    let start = StartTrajectory {
        group_mask: 0,
        trajectory_id: 1,
        timescale: 1.0,
        reversed: false,
        relative: true,
    };
    for (asked, hex) in [
        (
            Request::Takeoff(vertical),
            "8c07000000803f000000000100002040",
        ),
        (
            Request::Land(Vertical {
                height: 0.0,
                ..vertical
            }),
            "8c080000000000000000000100002040",
        ),
        (
            Request::GoTo(go_to),
            "8c0c0000000000803f000000000000003f0000803f00004040",
        ),
        (Request::Arm(true), "9d0101"),
        (Request::Arm(false), "9d0100"),
        (Request::Emergency, "9d03"),
        (
            Request::NotifySetpointsStop { remain_valid: 500 },
            "7d00f4010000",
        ),
        (Request::Raw(packet("dedeadbeef")), "dedeadbeef"),
        (Request::StartTrajectory(start), "8c0d00010000010000803f"),
    ] {
        assert_eq!(asked_packet(&asked, NEW), hex, "{asked:?}");
    }
    let old = ProtocolVersion(7);
    assert_eq!(
        asked_packet(&Request::GoTo(go_to), old),
        "8c0400000000803f000000000000003f0000803f00004040"
    );
    assert_eq!(
        asked_packet(&Request::StartTrajectory(start), old),
        "8c05000100010000803f"
    );
}

#[test]
fn durations_must_be_above_zero() {
    for duration in [0.0, -1.0] {
        let asked = Request::Land(Vertical {
            group_mask: 0,
            height: 0.0,
            duration,
        });
        let error = request(&asked).unwrap_err().to_string();
        assert!(
            error.contains("duration") && error.contains("above 0"),
            "{error}"
        );
    }
    let asked = Request::Land(Vertical {
        group_mask: 0,
        height: 0.0,
        duration: f64::NAN,
    });
    assert!(
        request(&asked)
            .unwrap_err()
            .to_string()
            .contains("duration")
    );
    let asked = Request::Takeoff(Vertical {
        group_mask: 0,
        height: f64::INFINITY,
        duration: 1.0,
    });
    assert!(request(&asked).unwrap_err().to_string().contains("height"));
}

#[test]
fn crazyswarm2s_degrees_are_degrees_only_where_that_is_asked_for() {
    assert_eq!(Compat::None.yaw(90.0), 90.0);
    assert!((Compat::Crazyswarm2.yaw(90.0) - std::f64::consts::FRAC_PI_2).abs() < 1e-12);
}
