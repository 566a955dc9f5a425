use proptest::prelude::*;

use super::*;

#[test]
fn a_lost_token_to_the_host_costs_less_than_half_a_second() {
    let mut pair = Pair::up();
    pair.wired = (true, false);
    pair.host.send(pair.now, echo(1), None, None).unwrap();
    pair.settle();
    pair.wired = (true, true);
    pair.host.send(pair.now, echo(2), None, None).unwrap();
    pair.settle();
    assert_eq!(pair.device_received(), [*echo(1)]);
    pair.advance(400 * MS);
    assert_eq!(pair.device_received(), [*echo(2)]);
    let stats = pair.host.stats();
    assert_eq!((stats.stalls, stats.presumed_tokens), (1, 1));
}

#[test]
fn a_lost_token_to_the_drone_is_offered_again_after_100_ms() {
    let mut pair = Pair::up();
    let log = packet(&[0x52, 1]);
    pair.wired = (false, true);
    pair.device.send(pair.now, log, None, None).unwrap();
    pair.device.send(pair.now, log, None, None).unwrap();
    pair.settle();
    assert_eq!(pair.device.backlog(), 1);
    pair.wired = (true, true);
    pair.advance(100 * MS);
    assert_eq!(pair.device.backlog(), 0);
}

#[test]
fn a_drone_that_restarts_is_greeted_again() {
    let mut pair = Pair::up();
    pair.advance(2000 * MS);
    pair.device.restart(pair.now);
    pair.settle();
    assert_eq!(pair.device.phase(), Phase::Up);
    let (host, device) = pair.events();
    assert_eq!(host, [Event::PeerRestarted]);
    assert!(device.contains(&Event::System(System::ClientConnected(true))));
}

#[test]
fn a_drone_that_restarts_while_it_owes_a_token_is_greeted_again() {
    let mut pair = Pair::up();
    pair.wired = (false, false);
    pair.host.send(pair.now, echo(1), None, None).unwrap();
    pair.settle();
    pair.advance(1500 * MS);
    pair.wired = (true, true);
    pair.device.restart(pair.now);
    pair.settle();
    pair.advance(500 * MS);
    assert_eq!(pair.device.phase(), Phase::Up);
    let greeting = Event::System(System::ClientConnected(true));
    assert!(pair.events().1.contains(&greeting));
}

#[test]
fn a_frame_cut_off_does_not_hold_up_the_next() {
    let mut pair = Pair::up();
    pair.host.handle_bytes(pair.now, &[0xff, 100, 0x0b]);
    let frame = cpx::to_host(&packet(&[0x52, 1]));
    pair.host.handle_bytes(pair.now, &frame);
    assert_eq!(pair.host.recv(), None);
    pair.advance(30 * MS);
    assert_eq!(pair.host.recv(), Some(packet(&[0x52, 1])));
}

/// One step of a random exchange: who acts, and whether the wire eats it.
type Step = (u8, bool);

fn act(pair: &mut Pair, (action, lost): Step, number: u8) {
    pair.wired = (!lost, !lost);
    match action {
        0 => drop(pair.host.send(pair.now, echo(number), None, None)),
        1 => drop(pair.host.send(pair.now, echo(number), Some(0), None)),
        2 => drop(
            pair.device
                .send(pair.now, packet(&[0x52, number]), None, None),
        ),
        3 => drop((pair.host_writes(), pair.device.recv())),
        4 => drop((pair.device_writes(), pair.host.recv())),
        _ => pair.advance(MS * u32::from(number)),
    }
}

proptest! {
    /// Whatever was lost, both directions work again within three seconds of an unbroken wire.
    #[test]
    fn every_loss_heals(steps in prop::collection::vec((0_u8..6, any::<bool>()), 1..60)) {
        let mut pair = Pair::new();
        for (number, step) in steps.into_iter().enumerate() {
            act(&mut pair, step, number as u8);
        }
        pair.wired = (true, true);
        for _ in 0..300 {
            pair.advance(10 * MS);
            pair.device_received();
            while pair.host.recv().is_some() {}
            pair.settle();
        }
        prop_assert_eq!(pair.host.phase(), Phase::Up);
        prop_assert_eq!(pair.host.backlog() + pair.device.backlog(), 0);
        pair.host.send(pair.now, echo(250), None, None).unwrap();
        pair.device.send(pair.now, packet(&[0x52, 250]), None, None).unwrap();
        pair.settle();
        prop_assert_eq!(pair.device_received(), [*echo(250)]);
        prop_assert_eq!(pair.host.recv(), Some(packet(&[0x52, 250])));
    }

    /// On an unbroken wire there is never a second frame in flight, whatever the order of events.
    #[test]
    fn never_two_frames_in_flight(actions in prop::collection::vec(0_u8..5, 1..200)) {
        let mut pair = Pair::up();
        for (number, action) in actions.into_iter().enumerate() {
            act(&mut pair, (action, false), number as u8);
        }
        prop_assert_eq!(pair.max_in_flight, 1);
        prop_assert_eq!(pair.device.stats().overruns + pair.host.stats().overruns, 0);
    }
}
