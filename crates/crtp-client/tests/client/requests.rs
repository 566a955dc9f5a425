//! Commands, the supervisor, memories.

use crtp::high_level::{Command, DefineTrajectory, GoTo2};
use crtp::{ProtocolVersion, Status, supervisor};
use crtp_client::{Config, Event, Reply, Request, RequestError, RequestId};

use crate::ms;
use crate::pair::Pair;

fn go_to() -> Command {
    Command::GoTo(GoTo2 {
        group_mask: 0,
        relative: true,
        linear: false,
        x: 1.0,
        y: 0.0,
        z: 0.0,
        yaw: 0.0,
        duration: 1.0,
    })
}

fn reply(pair: &mut Pair, wanted: RequestId) -> Result<Reply, RequestError> {
    let is_it = |e: &Event| matches!(e, Event::Reply { request, .. } if *request == wanted);
    match pair.until(is_it) {
        Event::Reply { outcome, .. } => outcome,
        other => panic!("{other:?}"),
    }
}

fn ask(pair: &mut Pair, request: Request) -> Result<Reply, RequestError> {
    let id = pair.client.request(pair.now, request).unwrap();
    reply(pair, id)
}

#[test]
fn a_command_is_taken_or_refused() {
    let mut pair = Pair::connected(Config::default());
    let taken = ask(&mut pair, Request::HighLevel(go_to()));
    assert!(matches!(taken, Ok(Reply::HighLevel(reply)) if reply.command == 12));
    pair.drone.flyable = false;
    let refused = ask(&mut pair, Request::HighLevel(go_to()));
    assert_eq!(refused, Err(RequestError::Refused(Status::BUSY)));
}

#[test]
fn a_relative_flight_is_never_sent_twice() {
    let mut pair = Pair::connected(Config {
        ping_period: None,
        ..Config::default()
    });
    let id = pair
        .client
        .request(pair.now, Request::HighLevel(go_to()))
        .unwrap();
    let before = pair.now;
    // The command arrives, its answer is lost.
    pair.run(ms(1));
    pair.loss = 1.0;
    assert_eq!(reply(&mut pair, id), Err(RequestError::TimedOut));
    assert_eq!(pair.now - before, ms(1500));
    assert_eq!(
        pair.taken(0x80).len() + pair.client.stats().repeats as usize,
        1
    );
}

#[test]
fn old_drones_get_old_commands() {
    let mut pair = Pair::new(Config::default());
    pair.drone.version = ProtocolVersion(7);
    pair.client.connect(pair.now);
    pair.until(|event| matches!(event, Event::Connected { .. }));
    ask(&mut pair, Request::HighLevel(go_to())).unwrap();
    assert_eq!(pair.taken(0x80)[0].data()[0], 4);
    let armed = ask(
        &mut pair,
        Request::Supervisor(supervisor::Command::Arm(true)),
    );
    assert_eq!(
        armed,
        Ok(Reply::Supervisor(supervisor::CommandReply::Arm {
            success: true,
            armed: true
        }))
    );
    assert_eq!(pair.taken(0xd0)[0].data(), [1, 1]);
    let stop = Request::Supervisor(supervisor::Command::EmergencyStop);
    assert_eq!(ask(&mut pair, stop), Ok(Reply::Sent));
    pair.run(ms(10));
    assert_eq!(pair.taken(0x61)[0].data(), [3]);
    let info = pair.client.request(pair.now, Request::SupervisorInfo);
    assert_eq!(
        info.unwrap_err().to_string(),
        "the supervisor's state needs protocol version 12 or later, the drone has 7"
    );
}

#[test]
fn the_supervisor_answers() {
    let mut pair = Pair::connected(Config::default());
    let info = ask(&mut pair, Request::SupervisorInfo);
    assert_eq!(info, Ok(Reply::SupervisorInfo(supervisor::Info(0x020e))));
    let recovered = ask(&mut pair, Request::Supervisor(supervisor::Command::Recover));
    assert!(matches!(recovered, Ok(Reply::Supervisor(_))));
    let stop = Request::Supervisor(supervisor::Command::EmergencyStop);
    assert_eq!(ask(&mut pair, stop), Ok(Reply::Sent));
    pair.run(ms(10));
    assert_eq!(pair.taken(0x91).last().unwrap().data(), [3]);
}

#[test]
fn an_emergency_stop_overtakes_all_that_waits() {
    let mut pair = Pair::connected(Config::default());
    pair.delay = ms(0);
    for name in ["flight.mode", "flight.rate", "flight.limit"] {
        pair.client.read_param(pair.now, name).unwrap();
    }
    let stop = Request::Supervisor(supervisor::Command::EmergencyStop);
    pair.client.request(pair.now, stop).unwrap();
    assert_eq!(pair.client.poll_transmit().unwrap().as_bytes(), [0x9d, 3]);
}

#[test]
fn a_trajectory_is_written_in_chunks_and_then_defined() {
    let mut pair = Pair::connected(Config::default());
    pair.loss = 0.1;
    let bytes: Vec<u8> = (0..300_u32).map(|i| (i * 7) as u8).collect();
    let define = DefineTrajectory {
        trajectory_id: 1,
        location: 1,
        kind: 0,
        offset: 132,
        pieces: 2,
    };
    let id = pair
        .client
        .write_memory(pair.now, 0, 132, bytes.clone(), Some(define))
        .unwrap();
    let is_it = |e: &Event| matches!(e, Event::Reply { request, .. } if *request == id);
    pair.run(ms(100));
    pair.loss = 0.0;
    assert!(matches!(
        pair.until(is_it),
        Event::Reply {
            outcome: Ok(Reply::Written),
            ..
        }
    ));
    assert_eq!(pair.drone.memory[132..432], bytes);
    assert_eq!(pair.taken(0x80).len(), 1);

    let id = pair.client.read_memory(pair.now, 0, 132, 300).unwrap();
    assert_eq!(reply(&mut pair, id), Ok(Reply::Memory(bytes)));
}

#[test]
fn memories_that_are_not_there_are_refused() {
    let mut pair = Pair::connected(Config::default());
    let unknown = pair.client.read_memory(pair.now, 9, 0, 10);
    assert_eq!(unknown, Err(RequestError::Refused(Status::NOT_FOUND)));
    let beyond = pair.client.read_memory(pair.now, 0, 4090, 10).unwrap();
    assert_eq!(
        reply(&mut pair, beyond),
        Err(RequestError::Refused(Status::IO))
    );
}

#[test]
fn who_waits_is_told_when_the_link_ends() {
    let mut pair = Pair::connected(Config {
        request_timeout: ms(2000),
        ..Config::default()
    });
    pair.dead = true;
    let id = pair
        .client
        .request(pair.now, Request::SupervisorInfo)
        .unwrap();
    assert_eq!(reply(&mut pair, id), Err(RequestError::NotConnected));
}
