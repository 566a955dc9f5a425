use super::*;
use crate::test::{MemoryLink, packet};

const PACE: Pace = Pace {
    one_at_a_time: true,
    wait_for_link: true,
};

fn setpoint(key: u8, hex: &str, expires: Instant) -> Setpoint {
    Setpoint {
        key,
        packet: packet(hex),
        expires,
    }
}

fn drain(outbox: &mut Outbox, now: Instant, link: &mut MemoryLink) -> Vec<String> {
    outbox.flush(now, link);
    while link.backlog() > 0 {
        link.write_one();
        outbox.flush(now, link);
    }
    link.take_written()
}

#[test]
fn setpoints_and_ordered_packets_take_turns_behind_urgent_ones() {
    let now = Instant::now();
    let late = now + Duration::from_millis(100);
    let mut outbox = Outbox::new(PACE);
    for hex in ["5c03", "2c03", "4c01"] {
        outbox.offer_ordered(packet(hex), None);
    }
    outbox.offer_latest(setpoint(0, "3c00", late));
    outbox.offer_latest(setpoint(1, "7c00", late));
    outbox.inject(packet("7d0000000000"), None);
    let mut link = MemoryLink::up();
    link.slow = true;
    let order = drain(&mut outbox, now, &mut link);
    assert_eq!(
        order,
        ["7d0000000000", "3c00", "5c03", "7c00", "2c03", "4c01"]
    );
    assert!(outbox.is_empty());
}

#[test]
fn one_at_a_time_waits_for_the_link_to_write() {
    let now = Instant::now();
    let mut outbox = Outbox::new(PACE);
    outbox.offer_ordered(packet("5c03"), None);
    outbox.offer_ordered(packet("2c03"), None);
    let mut link = MemoryLink::up();
    link.slow = true;
    outbox.flush(now, &mut link);
    outbox.flush(now, &mut link);
    assert_eq!(link.backlog(), 1);
}

#[test]
fn stale_setpoint_is_never_sent_after_a_block() {
    let now = Instant::now();
    let late = now + Duration::from_millis(100);
    let mut outbox = Outbox::new(PACE);
    let mut link = MemoryLink::up();
    link.refusal = Some(Refusal::QueueFull);
    outbox.offer_latest(setpoint(1, "7c00", late));
    outbox.flush(now, &mut link);
    assert_eq!(outbox.poll_timeout(), Some((now + RETRY, "link was full")));
    link.refusal = None;
    outbox.flush(late, &mut link);
    assert_eq!(
        (link.take_written(), outbox.counters().expired),
        (vec![], 1)
    );
}

#[test]
fn ordered_packets_survive_a_full_link_in_order() {
    let now = Instant::now();
    let mut outbox = Outbox::new(PACE);
    let mut link = MemoryLink::up();
    link.refusal = Some(Refusal::QueueFull);
    outbox.offer_ordered(packet("5c03"), None);
    outbox.offer_ordered(packet("2c03"), None);
    outbox.flush(now, &mut link);
    link.refusal = None;
    outbox.flush(now, &mut link);
    assert_eq!(link.take_written(), ["5c03", "2c03"]);
}

#[test]
fn the_queue_is_bounded_and_the_newest_is_refused() {
    let mut outbox = Outbox::new(PACE);
    for _ in 0..ORDERED + 3 {
        outbox.offer_ordered(packet("5c03"), None);
    }
    assert_eq!(outbox.counters().full, 3);
}

#[test]
fn requests_wait_for_the_link_and_telemetry_does_not() {
    let now = Instant::now();
    let mut link = MemoryLink::up();
    link.state = State::Connecting;
    let mut up = Outbox::new(PACE);
    let mut down = Outbox::new(Pace {
        one_at_a_time: false,
        wait_for_link: false,
    });
    for outbox in [&mut up, &mut down] {
        outbox.offer_ordered(packet("fd00"), None);
        outbox.flush(now, &mut link);
    }
    link.state = State::Up;
    up.flush(now, &mut link);
    down.flush(now, &mut link);
    assert_eq!(link.take_written(), ["fd00"]);
    assert_eq!((up.counters().sent, down.counters().not_connected), (1, 1));
}

#[test]
fn a_takeoff_that_waited_for_the_link_too_long_is_dropped() {
    let now = Instant::now();
    let mut link = MemoryLink::up();
    link.state = State::Down;
    let mut outbox = Outbox::new(PACE);
    let life = Duration::from_millis(500);
    outbox.offer_ordered(packet("8c07000000003f000000000000000040"), Some(now + life));
    outbox.offer_ordered(packet("2c03"), None);
    outbox.flush(now, &mut link);
    link.state = State::Up;
    outbox.flush(now + life, &mut link);
    assert_eq!(
        (link.take_written(), outbox.counters().expired),
        (vec!["2c03".to_owned()], 1)
    );
}
