//! Arming, the setpoint watchdog, tumbling, emergency stop, the thrust lock.

use crtp::high_level::{Command, Vertical};
use crtp::setpoint::{Hover, Setpoint};
use simulator::{Config, State};

use crate::bench::{Bench, quiet};

const HOVER: Setpoint = Setpoint::Hover(Hover {
    vx: 0.0,
    vy: 0.0,
    yaw_rate: 0.0,
    z: 0.5,
});

fn takeoff() -> Command {
    Command::TakeoffOld(Vertical {
        group_mask: 0,
        height: 1.0,
        duration: 2.0,
    })
}

fn state(bench: &Bench) -> State {
    bench.drone.snapshot().state
}

#[test]
fn information_bits_are_those_of_a_real_drone() {
    let mut bench = Bench::ready();
    assert_eq!(bench.info(), 0x020e, "ready");
    assert_eq!(bench.ask("9c04"), ["908401"]);
    assert_eq!(bench.command(takeoff()), 0);
    bench.run(1000);
    assert_eq!(bench.info(), 0x011e, "climbing");
    bench.run(2000);
    assert_eq!(bench.info(), 0x031e, "holding");
    bench.fly(&HOVER, 1000);
    assert_eq!(bench.info(), 0x021e, "low-level hover");
    bench.run(2100);
    assert_eq!(bench.info(), 0x0244, "locked by the watchdog");
}

#[test]
fn silence_levels_out_after_500_ms_and_locks_after_2000_ms() {
    let mut bench = Bench::ready();
    bench.fly(&HOVER, 3000);
    bench.run(480);
    assert_eq!(state(&bench), State::Flying);
    bench.run(30);
    assert_eq!(state(&bench), State::WarningLevelOut);
    assert!((bench.z() - 0.5).abs() < 0.05, "height is kept");
    bench.fly(&HOVER, 100);
    assert_eq!(
        state(&bench),
        State::Flying,
        "a fresh setpoint returns to flight"
    );
    bench.run(1970);
    assert_eq!(state(&bench), State::WarningLevelOut);
    bench.run(40);
    assert_eq!(state(&bench), State::Locked);
    bench.fly(&HOVER, 3000);
    assert_eq!((state(&bench), bench.z()), (State::Locked, 0.0), "for good");
    let record = bench.drone.report().flight;
    assert_eq!((record.level_outs, record.locks), (2, 1));
    let lock = record
        .transitions
        .iter()
        .find(|change| change.to == State::FreeFall)
        .unwrap();
    assert!((2000..2010).contains(&lock.setpoint_age_ms), "{lock:?}");
    assert_eq!(bench.command(takeoff()), 16, "refused");
}

#[test]
fn high_level_flight_goes_on_without_any_packet() {
    let mut bench = Bench::ready();
    bench.command(takeoff());
    bench.run(10_000);
    assert_eq!(state(&bench), State::Flying);
    assert!((bench.z() - 1.0).abs() < 0.02, "{}", bench.z());
}

#[test]
fn after_touchdown_silence_locks_and_handing_back_does_not() {
    for (hand_back, end) in [(false, State::Locked), (true, State::ReadyToFly)] {
        let mut bench = Bench::ready();
        bench.fly(&HOVER, 2000);
        bench.fly(
            &Setpoint::Hover(Hover {
                vx: 0.0,
                vy: 0.0,
                yaw_rate: 0.0,
                z: 0.0,
            }),
            2000,
        );
        bench.send_setpoint(&Setpoint::Stop);
        if hand_back {
            bench.send("7d0000000000");
        }
        bench.run(8000);
        assert_eq!(state(&bench), end);
    }
}

#[test]
fn first_setpoint_has_thrust_and_motors_ignore_everything_until_one_has_none() {
    let thrust = "3c0000000000000000000000003075";
    let mut bench = Bench::ready();
    bench.stream(thrust, 10, 1000);
    assert_eq!(bench.z(), 0.0);
    bench.send(&format!("3c{}", "00".repeat(14)));
    bench.stream("3c000000000000000000000000409c", 10, 1000);
    assert!(bench.z() > 0.1, "{}", bench.z());
    let lock = bench.drone.report().thrust_lock;
    assert_eq!(
        (lock.ignored, lock.unlocked, lock.first_ignored_ms),
        (100, 1, Some(100))
    );
}

#[test]
fn a_brushless_drone_waits_to_be_armed() {
    let mut bench = Bench::new(Config {
        auto_arm: false,
        ..quiet()
    });
    assert_eq!(bench.info(), 0x0201);
    assert_eq!(bench.command(takeoff()), 16);
    bench.fly(&HOVER, 500);
    assert_eq!(bench.z(), 0.0);
    assert_eq!(bench.ask("9d0101"), ["91810101"]);
    bench.run(20);
    bench.send("7d0000000000");
    assert_eq!(bench.command(takeoff()), 0);
    bench.run(3000);
    assert!(bench.z() > 0.9);
    assert_eq!(
        bench.ask("9d0100"),
        ["91810100"],
        "disarming in flight stops the motors"
    );
    bench.run(3000);
    assert_eq!(bench.z(), 0.0);
}

#[test]
fn arming_is_refused_with_the_state_as_it_is() {
    let mut bench = Bench::new(Config {
        auto_arm: false,
        ..quiet()
    });
    bench.drone.tip_over();
    bench.run(2000);
    assert_eq!(bench.ask("9d0101"), ["91810000"]);
    assert_eq!(bench.info() & 0x21, 0x20, "tumbled, cannot be armed");
    bench.drone.set_upright();
    bench.run(100);
    assert_eq!(bench.ask("9d0101"), ["91810101"]);
}

#[test]
fn armed_without_flying_disarms_after_30_s() {
    let mut bench = Bench::new(Config {
        auto_arm: false,
        ..quiet()
    });
    bench.ask("9d0101");
    bench.run(29_900);
    assert_eq!(bench.info() & 2, 2);
    bench.run(300);
    assert_eq!(bench.info() & 2, 0);
}

#[test]
fn tumbling_in_flight_crashes_until_recovery_is_asked_for() {
    let mut bench = Bench::ready();
    bench.command(takeoff());
    bench.run(3000);
    bench.drone.tip_over();
    bench.run(500);
    assert_eq!(state(&bench), State::Crashed);
    assert_eq!(bench.ask("9d02"), ["91820000"], "still upside down");
    bench.run(1000);
    bench.drone.set_upright();
    bench.run(100);
    assert_eq!(bench.ask("9d02"), ["91820101"]);
    bench.run(2000);
    assert_eq!(bench.info() & 0xff, 0x0e, "ready again");
}

#[test]
fn emergency_stop_is_for_good_and_has_no_answer() {
    for stop in ["9d03", "6d03"] {
        let mut bench = Bench::ready();
        bench.command(takeoff());
        bench.run(3000);
        assert!(bench.ask(stop).is_empty());
        bench.run(2000);
        assert_eq!((state(&bench), bench.z()), (State::Locked, 0.0));
        assert_eq!(bench.drone.report().commands.emergency_stops, 1);
    }
}

#[test]
fn the_emergency_watchdog_bites_once_it_was_fed() {
    let mut bench = Bench::ready();
    bench.command(takeoff());
    for _ in 0..6 {
        bench.send("9d04");
        bench.run(900);
    }
    assert_eq!(state(&bench), State::Flying);
    bench.run(200);
    assert_eq!(state(&bench), State::Locked);
}

#[test]
fn high_level_commands_start_only_after_the_stream_was_ended() {
    let mut bench = Bench::ready();
    bench.fly(&HOVER, 2000);
    bench.send("7d0000000000");
    assert_eq!(bench.command(takeoff()), 0);
    bench.run(4000);
    assert!((bench.z() - 1.0).abs() < 0.03, "{}", bench.z());
}

#[test]
fn without_notify_stop_the_high_level_commander_does_not_take_over() {
    let mut bench = Bench::ready();
    bench.fly(&HOVER, 2000);
    assert_eq!(bench.command(takeoff()), 0);
    bench.run(2500);
    assert_eq!(state(&bench), State::Locked);
}
