use super::*;
use crate::test::{MemoryLink, received};

const HOVER: &str = "7c0acdcc4c3ecdccccbd000070410000003f";

#[test]
fn packets_pass_both_ways_in_one_pump() {
    let now = Instant::now();
    let (mut client, mut drone) = (MemoryLink::up(), MemoryLink::up());
    let mut bridge = Bridge::new(Some(Safety::default()));
    client
        .inbox
        .extend([received("fd00", now), received(HOVER, now)]);
    drone.inbox.push_back(received("5201a1200000000000", now));
    bridge.pump(now, &mut client, &mut drone);
    assert_eq!(drone.take_written(), [HOVER, "fd00"]);
    assert_eq!(client.take_written(), ["5201a1200000000000"]);
}

#[test]
fn null_packets_go_nowhere_and_are_no_loss() {
    let now = Instant::now();
    let (mut client, mut drone) = (MemoryLink::up(), MemoryLink::up());
    let mut bridge = Bridge::new(Some(Safety::default()));
    for hex in ["ff", "f3", "f7"] {
        client.inbox.push_back(received(hex, now));
        drone.inbox.push_back(received(hex, now));
    }
    bridge.pump(now, &mut client, &mut drone);
    assert!(client.written.is_empty() && drone.written.is_empty());
    let summary = bridge.summary(&client, &drone);
    assert_eq!(
        (
            summary.uplink.null,
            summary.downlink.null,
            summary.downlink.sent
        ),
        (3, 3, 0)
    );
}

#[test]
fn a_dying_client_link_does_not_stop_the_policy() {
    let start = Instant::now();
    let (mut client, mut drone) = (MemoryLink::up(), MemoryLink::up());
    let mut bridge = Bridge::new(Some(Safety::default()));
    client.inbox.push_back(received(HOVER, start));
    bridge.pump(start, &mut client, &mut drone);
    client.events.push_back(Event::Down("peer silent".into()));
    client.state = link::State::Down;
    let (due, why) = bridge.poll_timeout().unwrap();
    assert_eq!(why, "setpoints broke off");
    bridge.pump(due, &mut client, &mut drone);
    assert_eq!(drone.take_written().len(), 3);
    let reasons: Vec<_> = std::iter::from_fn(|| bridge.poll_event()).collect();
    assert!(reasons.contains(&BridgeEvent::Safety(Reason::LinkLoss(
        crate::LinkLoss::Land
    ))));
}

#[test]
fn a_bridge_before_another_bridge_adds_nothing() {
    let now = Instant::now();
    let (mut client, mut drone) = (MemoryLink::up(), MemoryLink::up());
    let mut bridge = Bridge::new(None);
    client
        .inbox
        .push_back(received("3c000020410000a0400000a0413075", now));
    bridge.pump(now, &mut client, &mut drone);
    assert_eq!(drone.take_written(), ["3c000020410000a0400000a0413075"]);
    assert_eq!(bridge.poll_timeout(), None);
    bridge.finish(now);
    assert!(bridge.is_drained());
}

#[test]
fn the_pace_of_the_drones_link_is_told_upstream() {
    let now = Instant::now();
    let ms = std::time::Duration::from_millis(1);
    for safety in [Some(Safety::default()), None] {
        let (mut client, mut drone) = (MemoryLink::up(), MemoryLink::up());
        let mut bridge = Bridge::new(safety);
        for pace in [Some(3 * ms), Some(9 * ms), None] {
            drone.pace = pace;
            bridge.pump(now, &mut client, &mut drone);
            assert_eq!(client.behind, pace);
            assert_eq!(drone.behind, None, "telemetry is not held up by it");
        }
    }
}
