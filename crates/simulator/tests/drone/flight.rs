//! Where the drone goes: every setpoint type reaches what it asks for, with the right signs.

use crtp::high_level::{self, Command};
use crtp::setpoint::{AltitudeHold, Hover, Manual, Position, Setpoint, VelocityWorld, ZDistance};
use crtp::trajectory::Piece;
use crtp::{FullState, commander::Rpyt};
use std::f64::consts::{FRAC_PI_2, PI};

use crate::bench::{Bench, quiet, text};
use simulator::Config;

fn hover(vx: f32, vy: f32, yaw_rate: f32, z: f32) -> Setpoint {
    Setpoint::Hover(Hover {
        vx,
        vy,
        yaw_rate,
        z,
    })
}

fn near(bench: &Bench, [x, y, z]: [f64; 3], by: f64) {
    let at = bench.position();
    let distance = ((at[0] - x).powi(2) + (at[1] - y).powi(2) + (at[2] - z).powi(2)).sqrt();
    assert!(distance < by, "at {at:?}, wanted [{x}, {y}, {z}]");
}

fn hovering(heading: f64) -> Bench {
    let mut bench = Bench::new(Config { heading, ..quiet() });
    bench.fly(&hover(0.0, 0.0, 0.0, 1.0), 4000);
    near(&bench, [0.0, 0.0, 1.0], 0.02);
    bench
}

#[test]
fn hover_flies_forward_and_left_in_the_bodys_frame() {
    let mut bench = hovering(FRAC_PI_2);
    bench.fly(&hover(0.5, 0.0, 0.0, 1.0), 2000);
    let [x, y, _] = bench.position();
    assert!(
        y > 0.6 && x.abs() < 0.05,
        "heading north, forward is +y: {x} {y}"
    );
    bench.fly(&hover(0.0, 0.5, 0.0, 1.0), 3000);
    let [x, _, z] = bench.position();
    assert!(x < -0.6 && (z - 1.0).abs() < 0.05, "left is -x: {x} {z}");
}

#[test]
fn yaw_rates_turn_counter_clockwise_in_every_type_of_setpoint() {
    let zeros = "00".repeat(8);
    let rate = text(&30.0_f32.to_le_bytes());
    let rate_negated = text(&(-30.0_f32).to_le_bytes());
    let z = text(&1.0_f32.to_le_bytes());
    let still = "00".repeat(4);
    let cases = [
        format!("7c01{zeros}{still}{rate_negated}"),
        format!("7c02{zeros}{rate_negated}{z}"),
        format!("7c04{zeros}{rate}{still}"),
        format!("7c05{zeros}{rate_negated}{z}"),
        format!("7c08{zeros}{still}{rate}"),
        format!("7c09{zeros}{rate}{z}"),
        format!("7c0a{zeros}{rate}{z}"),
    ];
    for case in cases {
        let mut bench = hovering(0.0);
        bench.stream(&case, 10, 1000);
        let yaw = bench.drone.snapshot().attitude_rad[2];
        assert!((0.4..0.6).contains(&yaw), "{case}: {yaw}");
        assert_eq!(bench.hazards(), 0);
    }
}

#[test]
fn rpyt_pitch_is_nose_up_and_yaw_clockwise_on_the_wire() {
    let mut bench = hovering(0.0);
    let unlock = Rpyt::ZERO.encode().unwrap();
    bench.drone.handle_packet(bench.now, &unlock);
    let nose_down = Rpyt {
        roll: 0.0,
        pitch: -10.0,
        yaw_rate: 20.0,
        thrust: 36_000,
    };
    bench.stream(&text(nose_down.encode().unwrap().as_bytes()), 10, 1000);
    let seen = bench.drone.snapshot();
    assert!(
        seen.velocity_m_s[0] > 0.8,
        "cflib's positive pitch flies forward: {seen:?}"
    );
    assert!(seen.attitude_rad[2] < -0.2, "{seen:?}");
    assert!(seen.position_m[2] > 0.3, "about hover thrust: {seen:?}");
}

#[test]
fn world_velocity_ignores_the_heading() {
    let mut bench = hovering(PI / 3.0);
    let north = Setpoint::VelocityWorld(VelocityWorld {
        vx: 0.0,
        vy: 0.4,
        vz: 0.2,
        yaw_rate: 0.0,
    });
    bench.fly(&north, 3000);
    let [x, y, z] = bench.position();
    assert!(
        x.abs() < 0.05 && y > 0.9 && (1.4..1.7).contains(&z),
        "{x} {y} {z}"
    );
}

#[test]
fn position_and_full_state_reach_their_target() {
    let mut bench = hovering(0.0);
    bench.fly(
        &Setpoint::Position(Position {
            x: 1.0,
            y: -0.5,
            z: 0.7,
            yaw: 90.0,
        }),
        6000,
    );
    near(&bench, [1.0, -0.5, 0.7], 0.02);
    assert!((bench.drone.snapshot().attitude_rad[2] - FRAC_PI_2).abs() < 0.02);
    let goal = FullState {
        position: [-0.3, 0.4, 1.2],
        velocity: [0.0; 3],
        acceleration: [0.0; 3],
        attitude: [0.0, 0.0, 0.0, 1.0],
        rates: [0.0; 3],
    };
    bench.fly(&Setpoint::FullState(goal), 6000);
    near(&bench, [-0.3, 0.4, 1.2], 0.02);
    assert!(bench.drone.snapshot().attitude_rad[2].abs() < 0.02);
}

#[test]
fn altitude_hold_z_distance_and_manual_tilt_as_the_firmware_does() {
    let mut bench = hovering(0.0);
    bench.fly(
        &Setpoint::AltitudeHold(AltitudeHold {
            roll: 5.0,
            pitch: 0.0,
            yaw_rate: 0.0,
            vz: 0.3,
        }),
        1000,
    );
    assert!(
        bench.position()[1] < -0.1 && bench.z() > 1.2,
        "right side down drifts to -y"
    );
    let mut bench = hovering(0.0);
    bench.fly(
        &Setpoint::ZDistance(ZDistance {
            roll: 0.0,
            pitch: 5.0,
            yaw_rate: 0.0,
            z: 1.0,
        }),
        1000,
    );
    assert!(bench.position()[0] < -0.1, "nose up flies backwards");
    let mut bench = hovering(0.0);
    let manual = Manual {
        roll: 0.0,
        pitch: -5.0,
        yaw_rate: 30.0,
        thrust: 36_000,
        rate: false,
    };
    bench.fly(&Setpoint::Manual(manual), 1000);
    assert!(bench.position()[0] > 0.1 && bench.drone.snapshot().attitude_rad[2] > 0.4);
}

#[test]
fn stop_drops_the_drone() {
    let mut bench = hovering(0.0);
    bench.fly(&Setpoint::Stop, 1000);
    assert_eq!(bench.z(), 0.0);
    assert!(bench.drone.report().flight.hardest_touchdown_m_s > 3.0);
}

fn go_to(relative: bool, linear: bool, to: [f32; 3], yaw: f32) -> Command {
    let [x, y, z] = to;
    Command::GoTo(high_level::GoTo2 {
        group_mask: 0,
        relative,
        linear,
        x,
        y,
        z,
        yaw,
        duration: 3.0,
    })
}

fn airborne() -> Bench {
    let mut bench = Bench::ready();
    let up = high_level::VerticalTimed {
        group_mask: 0,
        height: 1.0,
        yaw: 0.0,
        use_current_yaw: true,
        duration: 2.0,
    };
    assert_eq!(bench.command(Command::Takeoff(up)), 0);
    bench.run(3000);
    near(&bench, [0.0, 0.0, 1.0], 0.02);
    bench
}

#[test]
fn high_level_takes_off_goes_there_and_lands_softly() {
    let mut bench = airborne();
    assert_eq!(bench.command(go_to(false, false, [1.0, 0.5, 0.8], 1.0)), 0);
    bench.run(4500);
    near(&bench, [1.0, 0.5, 0.8], 0.03);
    assert_eq!(bench.command(go_to(true, true, [0.0, -0.5, 0.2], 0.0)), 0);
    bench.run(4500);
    near(&bench, [1.0, 0.0, 1.0], 0.03);
    let down = high_level::VerticalWithVelocity {
        group_mask: 0,
        height: 0.0,
        height_is_relative: false,
        yaw: 0.0,
        use_current_yaw: true,
        velocity: 0.4,
    };
    assert_eq!(bench.command(Command::LandWithVelocity(down)), 0);
    bench.run(4000);
    assert_eq!(bench.z(), 0.0);
    let flight = bench.drone.report().flight;
    assert_eq!((flight.flights, flight.touchdowns), (1, 1));
    assert!(
        flight.hardest_touchdown_m_s < 0.5 && flight.locks == 0,
        "{flight:?}"
    );
    bench.run(5000);
    assert_eq!(bench.info(), 0x020e, "ready for the next flight");
}

#[test]
fn other_groups_are_not_meant() {
    let mut bench = Bench::ready();
    let up = Command::TakeoffOld(high_level::Vertical {
        group_mask: 4,
        height: 1.0,
        duration: 1.0,
    });
    assert_eq!(bench.command(up), 0);
    bench.run(1000);
    assert_eq!(bench.z(), 0.0);
    bench.command(Command::SetGroupMask(high_level::SetGroupMask { mask: 6 }));
    bench.command(up);
    bench.run(2000);
    assert!(bench.z() > 0.9);
}

#[test]
fn a_second_takeoff_in_flight_is_refused() {
    let mut bench = airborne();
    let up = Command::TakeoffOld(high_level::Vertical {
        group_mask: 0,
        height: 2.0,
        duration: 1.0,
    });
    assert_ne!(bench.command(up), 0);
}

#[test]
fn an_uploaded_trajectory_is_flown_forwards_and_back() {
    let mut bench = airborne();
    let mut memory = Vec::new();
    let mut piece = Piece {
        x: [0.0; 8],
        y: [0.0; 8],
        z: [0.0; 8],
        yaw: [0.0; 8],
        duration: 2.0,
    };
    // 1 m along x, from rest to rest.
    piece.x[2] = 0.75;
    piece.x[3] = -0.25;
    piece.append_to(&mut memory).unwrap();
    for (i, chunk) in memory.chunks(24).enumerate() {
        let address = (24 * i as u32).to_le_bytes();
        let reply = bench
            .ask(&format!("4e00{}{}", text(&address), text(chunk)))
            .pop()
            .unwrap();
        assert!(reply.ends_with("00"), "{reply}");
    }
    let define = high_level::DefineTrajectory {
        trajectory_id: 1,
        location: 1,
        kind: 0,
        offset: 0,
        pieces: 1,
    };
    assert_eq!(bench.command(Command::DefineTrajectory(define)), 0);
    let mut start = high_level::StartTrajectory2 {
        group_mask: 0,
        relative_position: true,
        relative_yaw: false,
        reversed: false,
        trajectory_id: 1,
        timescale: 1.0,
    };
    assert_eq!(bench.command(Command::StartTrajectory(start)), 0);
    bench.run(4000);
    near(&bench, [1.0, 0.0, 1.0], 0.03);
    start.reversed = true;
    bench.command(Command::StartTrajectory(start));
    bench.run(4000);
    near(&bench, [0.0, 0.0, 1.0], 0.03);
    let bad = high_level::DefineTrajectory {
        trajectory_id: 10,
        ..define
    };
    assert_eq!(bench.command(Command::DefineTrajectory(bad)), 8);
}

#[test]
fn a_spiral_turns_about_its_axis() {
    let mut bench = airborne();
    let half = high_level::Spiral {
        group_mask: 0,
        sideways: false,
        clockwise: false,
        angle: PI as f32,
        r0: 0.5,
        rf: 0.5,
        dz: 0.4,
        duration: 5.0,
    };
    assert_eq!(bench.command(Command::Spiral(half)), 0);
    bench.run(7000);
    near(&bench, [0.0, 1.0, 1.4], 0.1);
    assert!(bench.drone.snapshot().attitude_rad[2].abs() > 3.0);
}

#[test]
fn the_same_seed_gives_the_same_flight_and_flying_empties_the_battery() {
    let fly = |seed, late| {
        let mut bench = Bench::new(Config {
            seed,
            ..Config::default()
        });
        bench.command(Command::TakeoffOld(high_level::Vertical {
            group_mask: 0,
            height: 1.0,
            duration: 1.0,
        }));
        // However seldom the drone is looked at, it flies the same way.
        bench.now += std::time::Duration::from_millis(if late { 20_000 } else { 0 });
        bench.run(if late { 0 } else { 20_000 });
        bench
    };
    assert_eq!(
        fly(1, false).drone.snapshot(),
        fly(1, true).drone.snapshot()
    );
    let full = Bench::ready().drone.snapshot().battery_v;
    let used = fly(1, false).drone.snapshot().battery_v;
    assert!(used < full - 0.1, "{used} {full}");
}
