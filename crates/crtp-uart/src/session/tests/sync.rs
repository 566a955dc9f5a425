use super::*;

#[test]
fn host_answers_the_offer_and_greets() {
    let mut pair = Pair::new();
    assert_eq!(pair.host.poll_transmit(pair.now), None, "it listens first");
    assert_eq!(pair.device.poll_transmit(pair.now), Some(&[0xff, 0x00][..]));
    pair.host.handle_bytes(pair.now, &[0xff, 0x00]);
    let token_and_greeting = [0xff, 0x00, 0xff, 0x04, 0x19, 0x01, 0x21, 0x01, 0xc3];
    let written = pair.host.poll_transmit(pair.now).map(<[u8]>::to_vec);
    assert_eq!(written.as_deref(), Some(&token_and_greeting[..]));
    assert_eq!(pair.host.poll_transmit(pair.now), None, "no second frame");
    pair.device.handle_bytes(pair.now, &token_and_greeting);
    pair.settle();
    let greeting = [
        Event::Up,
        Event::System(System::UseThisLink(true)),
        Event::System(System::ClientConnected(true)),
    ];
    assert_eq!(pair.events(), (vec![Event::Up], greeting.to_vec()));
}

#[test]
fn device_offers_every_100_ms_until_answered() {
    let mut pair = Pair::new();
    pair.wired = (true, false);
    pair.settle();
    pair.advance(Duration::from_millis(240));
    assert_eq!(pair.device.stats().tokens_sent, 3);
    pair.wired = (true, true);
    pair.advance(Duration::from_millis(100));
    assert_eq!(pair.host.phase(), Phase::Up);
    let sent = pair.device.stats().tokens_sent;
    pair.advance(Duration::from_secs(1));
    assert_eq!(
        pair.device.stats().tokens_sent,
        sent,
        "exactly one per frame"
    );
}

#[test]
fn host_finds_a_silent_drone_that_was_in_use_before() {
    let mut pair = Pair::up();
    pair.host = Session::host(Config::host(576_000), pair.now);
    pair.advance(Duration::from_secs(1));
    assert_eq!(pair.host.phase(), Phase::Up);
    pair.host.send(pair.now, echo(1), None, None).unwrap();
    pair.settle();
    assert_eq!(pair.device_received(), [*echo(1)]);
}

#[test]
fn host_finds_a_talking_drone_that_was_in_use_before() {
    let mut pair = Pair::up();
    pair.host = Session::host(Config::host(576_000), pair.now);
    pair.device
        .send(pair.now, packet(&[0x00, b'x']), None, None)
        .unwrap();
    pair.settle();
    assert_eq!(
        pair.host.phase(),
        Phase::Up,
        "a good frame is a sign of life"
    );
    pair.advance(Duration::from_secs(1));
    let greeting = Event::System(System::ClientConnected(true));
    assert!(pair.events().1.contains(&greeting));
}

#[test]
fn restart_of_a_known_host_resumes_within_half_a_second() {
    let mut pair = Pair::up();
    pair.host.restart(pair.now);
    pair.advance(Duration::from_millis(500));
    assert_eq!(pair.host.phase(), Phase::Up);
}

#[test]
fn no_sign_of_the_drone_is_reported_at_3_s_and_then_ever_less_often() {
    let mut pair = Pair::new();
    pair.wired = (false, false);
    pair.advance(Duration::from_secs(3));
    let waited = Event::SyncTimeout(Duration::from_secs(3));
    assert_eq!(pair.events().0, [waited]);
    pair.advance(Duration::from_secs(57));
    assert_eq!(pair.events().0.len(), 4, "at 6, 12, 24 and 48 s");
    assert_eq!(pair.host.phase(), Phase::Syncing);
    pair.wired = (true, true);
    pair.advance(Duration::from_millis(100));
    assert_eq!(pair.host.phase(), Phase::Up);
}

#[test]
fn a_drone_that_stands_still_is_never_sent_more_than_its_buffer_holds() {
    let mut pair = Pair::up();
    pair.wired = (true, false);
    let before = (pair.host.stats(), pair.frames);
    for number in 0..60 {
        pair.host.send(pair.now, echo(number), None, None).unwrap();
    }
    pair.settle();
    pair.advance(Duration::from_secs(600));
    let tokens = pair.host.stats().tokens_sent - before.0.tokens_sent;
    let frames = u64::from(pair.frames - before.1);
    assert_eq!(
        frames,
        1 + 3,
        "one with credit, three tokens taken for lost"
    );
    assert!(2 * tokens + 36 * (frames - 1) < 200, "{tokens} tokens");
}

#[test]
fn goodbye_needs_no_help_and_takes_no_longer_than_it_may() {
    let mut pair = Pair::up();
    pair.host.close(pair.now);
    pair.settle();
    let goodbye = [
        Event::System(System::ClientConnected(false)),
        Event::System(System::UseThisLink(false)),
    ];
    assert_eq!(pair.events().1, goodbye);
    assert_eq!(pair.host.phase(), Phase::Closed);
    assert_eq!(pair.host.poll_timeout(), None);

    let mut deaf = Pair::up();
    deaf.wired = (false, false);
    deaf.host.close(deaf.now);
    deaf.settle();
    assert!(matches!(deaf.host.phase(), Phase::Closing(_)));
    deaf.advance(Duration::from_millis(200));
    assert_eq!(deaf.host.phase(), Phase::Closed);
    let refused = deaf.host.send(deaf.now, echo(1), None, None);
    assert_eq!(refused, Err(SendError::NotUp));
}

/// Report: a battery-powered drone with no USB: connecting waits for ever on the first clear-to-send.
#[test]
fn a_battery_powered_drone_that_wakes_after_7_s_is_told_in_time_and_found() {
    let mut pair = Pair::new();
    pair.wired = (false, false);
    pair.advance(3000 * MS);
    let told = Event::SyncTimeout(3000 * MS);
    assert_eq!(pair.events().0, [told], "in the configured time");
    pair.advance(4000 * MS);
    assert_eq!(pair.host.phase(), Phase::Syncing);
    // It is switched on now.
    pair.device = Session::device(Config::device(), pair.now);
    pair.wired = (true, true);
    pair.settle();
    pair.advance(200 * MS);
    assert_eq!(pair.events().0.last(), Some(&Event::Up));
    pair.host.send(pair.now, echo(1), None, None).unwrap();
    pair.settle();
    assert_eq!(pair.device_received(), [*echo(1)]);
}
