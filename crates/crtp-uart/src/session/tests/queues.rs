use super::*;
use crate::SendError;

fn setpoint(number: u8) -> Admitted {
    let mut bytes = [0; 15];
    (bytes[0], bytes[1]) = (0x3c, 0);
    bytes[13] = number;
    admitted(&bytes)
}

/// A pair whose device keeps the next token until it is asked to write.
fn blocked() -> Pair {
    let mut pair = Pair::up();
    pair.host.send(pair.now, echo(0), None, None).unwrap();
    pair.host_writes();
    pair
}

#[test]
fn only_the_newest_setpoint_leaves() {
    let mut pair = blocked();
    for number in 1..=5 {
        let key = crtp::mailbox_key(&setpoint(number));
        pair.host
            .send(pair.now, setpoint(number), key, None)
            .unwrap();
    }
    assert_eq!(pair.host.backlog(), 1);
    pair.settle();
    assert_eq!(pair.device_received(), [*echo(0), *setpoint(5)]);
    assert_eq!(pair.host.stats().superseded, 4);
}

#[test]
fn setpoints_and_ordered_packets_take_turns() {
    let mut pair = blocked();
    let mut got = Vec::new();
    for number in 1..=3 {
        pair.host.send(pair.now, echo(number), None, None).unwrap();
    }
    for number in 1..=4 {
        pair.host
            .send(pair.now, setpoint(number), Some(0), None)
            .unwrap();
        pair.device_writes();
        pair.host_writes();
        got.extend(pair.device_received());
    }
    pair.settle();
    got.extend(pair.device_received());
    let wanted = [
        *echo(0),
        *setpoint(1),
        *echo(1),
        *setpoint(3),
        *echo(2),
        *setpoint(4),
        *echo(3),
    ];
    assert_eq!(got, wanted);
}

#[test]
fn mailboxes_take_turns_among_themselves() {
    let mut pair = blocked();
    let ordered = |number| admitted(&[0xfc, 0x80, number]);
    let mut got = Vec::new();
    for round in 0..4 {
        for key in 0..3 {
            pair.host
                .send(pair.now, ordered(key), Some(key), None)
                .unwrap();
        }
        pair.device_writes();
        pair.host_writes();
        got.extend(pair.device_received().pop());
        assert_eq!(got[round], *ordered(round as u8 % 3));
    }
}

/// Report: sparse stream, link blocked, no more input: the packet dies at its own deadline.
#[test]
fn a_blocked_packet_expires_by_the_clock() {
    let mut pair = blocked();
    let expires = Some(pair.now + 20 * MS);
    pair.host
        .send(pair.now, setpoint(1), Some(0), expires)
        .unwrap();
    pair.host.send(pair.now, echo(1), None, expires).unwrap();
    assert_eq!(pair.host.poll_timeout().unwrap().1, "packet expires");
    pair.now += 20 * MS;
    pair.host.handle_timeout(pair.now);
    assert_eq!((pair.host.backlog(), pair.host.stats().expired), (0, 2));
    pair.settle();
    assert_eq!(pair.device_received(), [*echo(0)]);
}

#[test]
fn expiry_is_checked_when_the_token_arrives() {
    let mut pair = blocked();
    let expires = Some(pair.now + 20 * MS);
    pair.host
        .send(pair.now, setpoint(1), Some(0), expires)
        .unwrap();
    pair.now += 20 * MS;
    pair.settle();
    assert_eq!(pair.device_received(), [*echo(0)]);
    let late = pair.host.send(pair.now, setpoint(2), Some(0), expires);
    assert_eq!(late, Err(SendError::Expired));
}

#[test]
fn the_ordered_queue_is_bounded_and_says_so() {
    let mut pair = blocked();
    for number in 0..64 {
        pair.host.send(pair.now, echo(number), None, None).unwrap();
    }
    let refused = pair.host.send(pair.now, echo(64), None, None).unwrap_err();
    assert_eq!(refused.to_string(), "queue of 64 ordered packets is full");
    pair.host
        .send(pair.now, setpoint(1), Some(0), None)
        .expect("a full queue does not keep setpoints out");
    let no_such = pair.host.send(pair.now, setpoint(1), Some(16), None);
    assert_eq!(no_such, Err(SendError::Key(16)));
}

#[test]
fn nothing_waits_across_a_restart() {
    let mut pair = blocked();
    pair.host.send(pair.now, echo(1), None, None).unwrap();
    pair.host
        .send(pair.now, setpoint(1), Some(0), None)
        .unwrap();
    pair.host.restart(pair.now);
    assert_eq!((pair.host.backlog(), pair.host.stats().discarded), (0, 2));
}

/// Report: nobody reads the other end of the UART for 10 s.
#[test]
fn nobody_reads_the_other_end_for_10_s() {
    let mut pair = Pair::up();
    pair.wired = (false, false);
    let (mut full, start) = (0, pair.now);
    for number in 0..1000 {
        let expires = Some(pair.now + 100 * MS);
        pair.host
            .send(pair.now, setpoint(number as u8), Some(0), expires)
            .unwrap();
        let ordered = pair.host.send(pair.now, echo(number as u8), None, None);
        full += u32::from(ordered == Err(SendError::Full(64)));
        pair.advance(10 * MS);
    }
    assert_eq!(pair.now - start, 10_000 * MS);
    assert!(pair.host.backlog() <= 65, "bounded");
    let stats = pair.host.stats();
    assert!(stats.superseded > 900 && full > 900, "{stats:?}, {full}");
    assert_eq!(stats.stalls, 1, "told once");
    pair.host.close(pair.now);
    pair.advance(1000 * MS);
    assert_eq!(pair.host.phase(), Phase::Closed);
    // Whoever reads again gets what is fresh: nothing here.
    assert_eq!(pair.host.backlog(), 0);
}
