use link::Link as _;

use super::*;
use crate::outbox::Pace;
use crate::test::{MemoryLink, received};

const RPYT_ON: &str = "3c000020410000a0400000a0413075";
const RPYT_ZERO: &str = "3c0000000000000000000000000000";
const HOVER: &str = "7c0acdcc4c3ecdccccbd000070410000003f";
const STOP: &str = "7c00";
const NOTIFY: &str = "7d0000000000";
const TAKEOFF: &str = "8c07000000003f000000000000000040";
const LAND_2: &str = "8c080000000000000000000100000040";
const LAND: &str = "8c0a0000000000000000000001cdcccc3e";
const HOLD: &str = "8c040001000000000000000000000000000000000000003f";

/// Rules, queue, a link that takes everything, and a clock.
struct Rig {
    rules: DroneSide,
    out: Outbox,
    link: MemoryLink,
    now: Instant,
}

impl Rig {
    fn new(safety: Safety) -> Self {
        Self {
            rules: DroneSide::new(safety),
            out: Outbox::new(Pace {
                one_at_a_time: true,
                wait_for_link: true,
            }),
            link: MemoryLink::up(),
            now: Instant::now(),
        }
    }

    fn with(link_loss: LinkLoss) -> Self {
        Self::new(Safety {
            link_loss,
            ..Safety::default()
        })
    }

    /// What reaches the drone when a client sends this.
    fn client(&mut self, hex: &str) -> Vec<String> {
        self.rules
            .handle_uplink(self.now, &received(hex, self.now), &mut self.out);
        self.written()
    }

    fn written(&mut self) -> Vec<String> {
        self.out.flush(self.now, &mut self.link);
        self.link.take_written()
    }

    /// Lets time pass, timer by timer; what reaches the drone and after how many ms.
    fn pass(&mut self, milliseconds: u64) -> Vec<(u64, String)> {
        let start = self.now;
        let end = start + Duration::from_millis(milliseconds);
        let mut seen = Vec::new();
        while let Some((at, _)) = self.rules.poll_timeout().filter(|(at, _)| *at <= end) {
            self.now = at;
            self.rules.handle_timeout(at, &mut self.out);
            let after = (at - start).as_millis() as u64;
            seen.extend(self.written().into_iter().map(|hex| (after, hex)));
        }
        self.now = end;
        seen
    }

    /// A stream of one setpoint at 100 Hz.
    fn stream(&mut self, hex: &str, count: usize) {
        for _ in 0..count {
            self.client(hex);
            assert_eq!(self.pass(10), []);
        }
    }
}

fn at(milliseconds: u64, hexes: &[&str]) -> Vec<(u64, String)> {
    hexes
        .iter()
        .map(|hex| (milliseconds, (*hex).to_owned()))
        .collect()
}

#[test]
fn first_setpoint_with_thrust_is_preceded_by_a_zero_once_per_connection() {
    let mut rig = Rig::new(Safety::default());
    rig.rules.handle_drone_up();
    assert_eq!(rig.client(RPYT_ON), [RPYT_ZERO, RPYT_ON]);
    assert_eq!(rig.client(RPYT_ON), [RPYT_ON]);
    rig.rules.handle_drone_up();
    assert_eq!(rig.client(RPYT_ON), [RPYT_ZERO, RPYT_ON]);
    assert_eq!(rig.rules.actions().unlock, 2);
}

#[test]
fn a_new_client_unlocks_again_but_not_in_flight() {
    let mut rig = Rig::new(Safety::default());
    rig.client(RPYT_ON);
    rig.client("dd00");
    assert_eq!(rig.client(RPYT_ON), [RPYT_ON]);
    rig.client(NOTIFY);
    rig.client("dd00");
    assert_eq!(rig.client(RPYT_ON), [RPYT_ZERO, RPYT_ON]);
}

#[test]
fn a_zero_that_waits_is_not_replaced_by_the_thrust_behind_it() {
    let mut rig = Rig::new(Safety::default());
    rig.link.slow = true;
    for hex in ["5c03", RPYT_ZERO, RPYT_ON] {
        rig.client(hex);
    }
    while rig.link.backlog() > 0 {
        rig.link.write_one();
        rig.out.flush(rig.now, &mut rig.link);
    }
    assert_eq!(rig.link.take_written(), ["5c03", RPYT_ZERO, RPYT_ON]);
    assert_eq!(rig.rules.actions().unlock, 0);
}

#[test]
fn generic_setpoints_need_no_unlock() {
    assert_eq!(Rig::new(Safety::default()).client(HOVER), [HOVER]);
}

#[test]
fn high_level_command_after_a_stream_is_preceded_by_notify_stop() {
    let mut rig = Rig::new(Safety::default());
    rig.stream(HOVER, 3);
    assert_eq!(rig.client(LAND_2), [NOTIFY, LAND_2]);
    assert_eq!(rig.client(TAKEOFF), [TAKEOFF]);
    assert_eq!(rig.pass(10_000), []);
}

#[test]
fn a_waiting_setpoint_does_not_follow_the_notify_stop() {
    let mut rig = Rig::new(Safety::default());
    rig.link.slow = true;
    rig.client("5c03");
    rig.client(HOVER);
    rig.client(LAND_2);
    while rig.link.backlog() > 0 {
        rig.link.write_one();
        rig.out.flush(rig.now, &mut rig.link);
    }
    assert_eq!(rig.link.take_written(), ["5c03", NOTIFY, LAND_2]);
}

#[test]
fn a_broken_stream_lands_before_the_firmware_levels_out() {
    let mut rig = Rig::with(LinkLoss::Land);
    rig.stream(HOVER, 100);
    assert_eq!(rig.pass(60_000), at(290, &[NOTIFY, LAND]));
    assert_eq!(rig.rules.actions().link_loss, 1);
}

#[test]
fn a_broken_stream_stops_when_told_to() {
    let mut rig = Rig::with(LinkLoss::Stop);
    rig.stream(RPYT_ON, 100);
    assert_eq!(rig.pass(60_000), at(290, &[STOP, NOTIFY]));
}

#[test]
fn a_broken_stream_holds_and_lands_at_the_limit() {
    let mut rig = Rig::with(LinkLoss::Hold);
    rig.stream(HOVER, 100);
    let expected = [at(290, &[NOTIFY, HOLD]), at(5290, &[LAND])].concat();
    assert_eq!(rig.pass(60_000), expected);
}

#[test]
fn holding_ends_when_setpoints_come_back() {
    let mut rig = Rig::with(LinkLoss::Hold);
    rig.stream(HOVER, 100);
    rig.pass(1_000);
    rig.stream(HOVER, 700);
    assert_eq!(rig.client(NOTIFY), [NOTIFY]);
    assert_eq!(rig.pass(60_000), []);
}

#[test]
fn a_broken_stream_is_handed_over_when_told_to() {
    let mut rig = Rig::with(LinkLoss::Handover);
    rig.stream(HOVER, 100);
    assert_eq!(rig.pass(60_000), at(290, &[NOTIFY, HOLD]));
}

#[test]
fn a_stream_that_ended_properly_is_handed_back_and_nothing_else() {
    for end in [STOP, RPYT_ZERO] {
        let mut rig = Rig::with(LinkLoss::Land);
        rig.stream(RPYT_ON, 10);
        rig.client(end);
        assert_eq!(rig.pass(60_000), at(300, &[NOTIFY]), "{end}");
    }
    let mut rig = Rig::with(LinkLoss::Land);
    rig.stream(HOVER, 10);
    rig.client(NOTIFY);
    assert_eq!(rig.pass(60_000), []);
}

#[test]
fn nothing_flying_means_nothing_sent() {
    let mut rig = Rig::with(LinkLoss::Land);
    for hex in ["dd00", "5c03", "2c03", "fc00092c959083c3da41"] {
        rig.client(hex);
    }
    assert_eq!(rig.pass(60_000), []);
    rig.rules.finish(rig.now, &mut rig.out);
    assert_eq!(rig.written(), Vec::<String>::new());
}

#[test]
fn emergency_stop_overtakes_and_ends_everything() {
    let mut rig = Rig::with(LinkLoss::Land);
    rig.stream(HOVER, 10);
    rig.link.slow = true;
    for hex in ["5c03", HOVER, "2c03", "9d03"] {
        rig.client(hex);
    }
    while rig.link.backlog() > 0 {
        rig.link.write_one();
        rig.out.flush(rig.now, &mut rig.link);
    }
    assert_eq!(rig.link.take_written(), ["5c03", "9d03", "2c03"]);
    assert_eq!(rig.pass(60_000), []);
}

#[test]
fn high_level_flight_lands_when_no_client_comes_back() {
    let mut rig = Rig::with(LinkLoss::Land);
    rig.client(TAKEOFF);
    rig.rules.handle_client_down(rig.now);
    rig.pass(9_000);
    rig.rules.handle_client_up();
    assert_eq!(rig.pass(60_000), []);
    rig.rules.handle_client_down(rig.now);
    assert_eq!(rig.pass(60_000), at(10_000, &[LAND]));
}

#[test]
fn landed_drones_stay_where_they_are_when_the_client_leaves() {
    let mut rig = Rig::with(LinkLoss::Land);
    rig.client(TAKEOFF);
    rig.client(LAND_2);
    rig.rules.handle_client_down(rig.now);
    assert_eq!(rig.pass(60_000), []);
}

#[test]
fn ending_the_bridge_applies_the_policy_at_once() {
    for (link_loss, expected) in [
        (LinkLoss::Land, vec![NOTIFY, LAND]),
        (LinkLoss::Hold, vec![NOTIFY, LAND]),
        (LinkLoss::Stop, vec![STOP, NOTIFY]),
        (LinkLoss::Handover, vec![NOTIFY, HOLD]),
    ] {
        let mut rig = Rig::with(link_loss);
        rig.stream(HOVER, 3);
        rig.rules.finish(rig.now, &mut rig.out);
        assert_eq!(rig.written(), expected, "{link_loss:?}");
    }
    let mut rig = Rig::with(LinkLoss::Land);
    rig.client(TAKEOFF);
    rig.rules.finish(rig.now, &mut rig.out);
    assert_eq!(rig.written(), [LAND]);
}

#[test]
fn setpoints_that_come_while_the_bridge_ends_do_not_undo_the_landing() {
    let mut rig = Rig::with(LinkLoss::Land);
    rig.stream(HOVER, 3);
    rig.rules.finish(rig.now, &mut rig.out);
    assert_eq!(rig.written(), [NOTIFY, LAND]);
    for hex in [HOVER, TAKEOFF, NOTIFY] {
        assert_eq!(rig.client(hex), Vec::<String>::new());
    }
    assert_eq!(rig.out.counters().superseded, 3);
    assert_eq!(rig.client("5c03"), ["5c03"], "motors off at any time");
}

#[test]
fn a_packet_that_the_gate_refuses_is_no_setpoint_and_replaces_none() {
    let mut rig = Rig::with(LinkLoss::Land);
    for hex in ["7c0a00", "3c00", "7d00", "4c0263"] {
        assert_eq!(rig.client(hex), Vec::<String>::new());
    }
    assert_eq!(
        (rig.rules.poll_timeout(), rig.out.counters().refused),
        (None, 4)
    );
    rig.link.slow = true;
    for hex in ["5c03", HOVER, "7c", "7c0a00"] {
        rig.client(hex);
    }
    rig.link.write_one();
    rig.out.flush(rig.now, &mut rig.link);
    rig.link.write_one();
    assert_eq!(rig.link.take_written(), ["5c03", HOVER]);
}

#[test]
fn memories_pass_once_the_drone_has_named_them() {
    let mut rig = Rig::with(LinkLoss::Land);
    assert_eq!(rig.client("4c0201"), Vec::<String>::new());
    rig.rules.handle_downlink(&crate::test::packet("400102"));
    assert_eq!(rig.client("4c0201"), ["4c0201"]);
}
