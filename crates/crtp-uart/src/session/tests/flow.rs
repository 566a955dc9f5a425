use super::*;

/// Report: a second clear-to-send when none is awaited kills the reader.
#[test]
fn three_tokens_in_a_row_are_one_credit() {
    let mut pair = Pair::up();
    pair.host
        .handle_bytes(pair.now, &[0xff, 0, 0xff, 0, 0xff, 0]);
    assert_eq!(pair.host.stats().surplus_tokens, 3);
    for number in 0..20 {
        pair.host.send(pair.now, echo(number), None, None).unwrap();
    }
    pair.max_in_flight = 0;
    let mut got = Vec::new();
    for _ in 0..20 {
        pair.settle();
        got.extend(pair.device_received());
    }
    assert_eq!(got, (0..20).map(|number| *echo(number)).collect::<Vec<_>>());
    assert_eq!(pair.max_in_flight, 1);
    assert_eq!(pair.host.phase(), Phase::Up);
}

#[test]
fn one_frame_per_token() {
    let mut pair = Pair::up();
    pair.host.send(pair.now, echo(1), None, None).unwrap();
    pair.host.send(pair.now, echo(2), None, None).unwrap();
    assert!(pair.host_writes());
    assert!(!pair.host_writes());
    assert!(!pair.host.may_send());
    assert_eq!(pair.host.backlog(), 1);
    pair.settle();
    assert_eq!(pair.host.backlog(), 0);
    assert_eq!(pair.max_in_flight, 1);
}

#[test]
fn answer_and_next_frame_leave_in_one_write() {
    let mut pair = Pair::up();
    pair.device
        .send(pair.now, packet(&[0x00, b'x']), None, None)
        .unwrap();
    pair.device_writes();
    pair.host.send(pair.now, echo(1), None, None).unwrap();
    let written = pair.host.poll_transmit(pair.now).unwrap();
    assert_eq!(count(written), (1, 1));
}

#[test]
fn device_with_a_full_inbox_withholds_the_token() {
    let mut pair = Pair::up();
    for number in 0..10 {
        pair.host.send(pair.now, echo(number), None, None).unwrap();
    }
    pair.settle();
    assert_eq!(pair.host.backlog(), 5, "four in the queue, one in hand");
    assert_eq!(pair.device.recv(), Some(*echo(0)));
    pair.settle();
    assert_eq!(pair.host.backlog(), 4);
    assert_eq!(pair.device.stats().overruns, 0);
}

#[test]
fn a_frame_without_credit_is_dropped_and_counted_when_there_is_no_room() {
    let mut pair = Pair::up();
    for number in 0..6 {
        pair.device
            .handle_bytes(pair.now, &cpx::to_drone(&echo(number)));
    }
    assert_eq!(pair.device.stats().overruns, 1);
    assert_eq!(pair.device_received().len(), 5);
}

/// A missing token for 200 ms is a counted stall, never a hang.
#[test]
fn a_withheld_token_is_a_stall_and_the_link_stays() {
    let mut pair = Pair::up();
    pair.host.send(pair.now, echo(1), None, None).unwrap();
    pair.host_writes();
    pair.now += 199 * MS;
    pair.host.handle_timeout(pair.now);
    assert_eq!(pair.host.stats().stalls, 0);
    pair.now += MS;
    pair.host.handle_timeout(pair.now);
    assert_eq!(pair.events().0, [Event::Stalled]);
    assert_eq!(pair.host.phase(), Phase::Up);
    pair.settle();
    assert_eq!(pair.events().0, [Event::Resumed]);
    assert_eq!(pair.host.stats().stalls, 1);
}

#[test]
fn a_good_frame_that_is_no_crtp_is_answered_and_counted() {
    let mut pair = Pair::up();
    let console = [0xff, 4, 0x13, 0x02, b'h', b'i'];
    let sum = console.iter().fold(0, |sum, byte| sum ^ byte);
    let empty = [0xff, 2, 0x0b, 0x03, 0xff ^ 2 ^ 0x0b ^ 0x03];
    pair.host.handle_bytes(pair.now, &console);
    pair.host.handle_bytes(pair.now, &[sum]);
    assert_eq!(count(pair.host.poll_transmit(pair.now).unwrap()), (0, 1));
    pair.host.handle_bytes(pair.now, &empty);
    assert_eq!(count(pair.host.poll_transmit(pair.now).unwrap()), (0, 1));
    let stats = pair.host.stats();
    assert_eq!((stats.other_frames, stats.bad_crtp), (1, 1));
    assert_eq!(pair.host.recv(), None);
}

#[test]
fn the_time_for_a_frame_is_learnt_and_a_stall_does_not_count() {
    let mut pair = Pair::up();
    assert_eq!(
        pair.host.service_time(),
        Some(Duration::ZERO),
        "the greeting"
    );
    for number in 0..40 {
        pair.host.send(pair.now, echo(number), None, None).unwrap();
        pair.host_writes();
        pair.advance(5 * MS);
        pair.settle();
        assert_eq!(pair.device_received(), [*echo(number)]);
    }
    let learnt = pair.host.service_time().unwrap();
    assert!((4 * MS..=5 * MS).contains(&learnt), "{learnt:?}");

    pair.advance(Duration::ZERO);
    pair.wired.1 = false;
    pair.host.send(pair.now, echo(50), None, None).unwrap();
    pair.settle();
    pair.advance(300 * MS);
    pair.wired.1 = true;
    pair.advance(2_000 * MS);
    assert!(pair.host.stats().stalls > 0);
    assert_eq!(pair.host.service_time(), Some(learnt));

    pair.host.restart(pair.now);
    assert_eq!(pair.host.service_time(), None);
}
