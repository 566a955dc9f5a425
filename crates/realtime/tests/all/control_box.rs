//! The control box in simulated time: misses, stops, late and repeated replies, its own lateness.

use std::collections::BTreeMap;
use std::time::Duration;

use realtime::Mono;
use realtime::control_box::responder::{Disturbance, HoldStill, Responder};
use realtime::control_box::rules::{ControlBox, Event, OnMiss, Reply, Rules};
use realtime::control_box::score::Counts;
use realtime::control_box::wire::{Command, REPLY_BYTES, State};

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

/// A box with a responder behind a link of fixed delay, driven from event to event.
struct World {
    machine: ControlBox,
    /// Replies under way: arrival time and order, bytes.
    under_way: BTreeMap<(u64, u64), Vec<u8>>,
    now: u64,
    order: u64,
    events: Vec<Event>,
    verdicts: Vec<Reply>,
    states: Vec<State>,
}

impl World {
    fn new(rules: Rules) -> Self {
        Self {
            machine: ControlBox::new(rules, Mono(MS)).unwrap(),
            under_way: BTreeMap::new(),
            now: 0,
            order: 0,
            events: Vec::new(),
            verdicts: Vec::new(),
            states: Vec::new(),
        }
    }

    fn reply_at(&mut self, at: u64, id: u64) {
        let mut bytes = [0; REPLY_BYTES];
        Command {
            id,
            ..Command::default()
        }
        .encode(&mut bytes);
        self.order += 1;
        self.under_way.insert((at, self.order), bytes.to_vec());
    }

    /// Runs until `end`; `answer` says how long after a state's sending its reply arrives, `None` for never.
    fn run(&mut self, end: u64, answer: &mut impl FnMut(&State) -> Option<u64>) {
        while let Some(next) = self.next_time().filter(|next| *next <= end) {
            self.now = next;
            self.deliver();
            self.machine.handle_timeout(Mono(next));
            if let Some(state) = self.machine.poll_transmit() {
                self.states.push(state);
                if let Some(delay) = answer(&state) {
                    self.reply_at(self.now + delay, state.id);
                }
            }
            self.events.extend(self.machine.poll_event());
        }
    }

    fn next_time(&self) -> Option<u64> {
        let arrival = self.under_way.keys().next().map(|(at, _)| *at);
        let timer = self.machine.poll_timeout().map(|(at, _)| at.0);
        arrival.into_iter().chain(timer).min()
    }

    fn deliver(&mut self) {
        while let Some(entry) = self
            .under_way
            .first_entry()
            .filter(|entry| entry.key().0 <= self.now)
        {
            let bytes = entry.remove();
            self.verdicts
                .push(self.machine.handle_reply(Mono(self.now), &bytes));
        }
    }

    fn counts(&self) -> Counts {
        let counts = self.machine.score().counts;
        assert_eq!(
            counts.sent,
            counts.accepted + counts.missed + counts.excluded + self.machine.in_flight()
        );
        counts
    }
}

/// A prompt responder that leaves out the ids for which `silent` holds.
fn with_silence(silent: impl Fn(u64) -> bool, rules: Rules, cycles: u64) -> World {
    let mut world = World::new(rules);
    world.run((cycles + 1) * MS, &mut |state: &State| {
        (!silent(state.id)).then_some(115 * US)
    });
    world
}

#[test]
fn nineteen_misses_then_a_hit_do_not_stop() {
    let world = with_silence(|id| (10..29).contains(&id), Rules::default(), 100);
    assert_eq!(world.events, []);
    assert_eq!(
        (world.counts().missed, world.machine.score().worst_streak),
        (19, 19)
    );
    assert_eq!(world.machine.score().streaks[19], 1);
}

#[test]
fn twenty_misses_stop() {
    let world = with_silence(|id| id >= 10, Rules::default(), 100);
    let stopped = Event::Stopped {
        id: 29,
        streak: 20,
        reason: "communication_constraints_violation",
    };
    assert_eq!(world.events, [stopped]);
    assert_eq!((world.counts().sent, world.counts().missed), (29, 20));
    assert!(world.machine.poll_timeout().is_none());
}

#[test]
fn a_stall_of_twenty_milliseconds_stops_exactly_and_one_of_nineteen_does_not() {
    let stall = |length: u64| {
        let mut world = World::new(Rules::default());
        let resume = 50 * MS + length * MS;
        world.run(200 * MS, &mut |state: &State| {
            let sent = state.time_ns;
            let stalled = (50 * MS..resume).contains(&sent);
            Some(if stalled {
                resume + 115 * US - sent
            } else {
                115 * US
            })
        });
        world
    };
    let stopped = stall(20);
    assert!(
        matches!(stopped.events[..], [Event::Stopped { streak: 20, .. }]),
        "{:?}",
        stopped.events
    );
    let survived = stall(19);
    assert_eq!(
        (survived.events.len(), survived.machine.score().worst_streak),
        (0, 19)
    );
    assert_eq!(
        survived.counts().late,
        19,
        "the late replies arrive and are misses all the same"
    );
}

#[test]
fn a_late_reply_is_a_miss_and_the_next_in_time_ends_the_row() {
    let mut world = World::new(Rules::default());
    world.run(10 * MS, &mut |state: &State| {
        Some(if state.id == 3 {
            MS + 100 * US
        } else {
            100 * US
        })
    });
    assert_eq!((world.counts().missed, world.counts().late), (1, 1));
    assert_eq!(
        (
            world.machine.score().streak,
            world.machine.score().streaks[1]
        ),
        (0, 1)
    );
}

#[test]
fn a_duplicate_is_not_counted_twice() {
    let mut world = World::new(Rules::default());
    world.run(3 * MS, &mut |_| Some(100 * US));
    let id = world.states.last().unwrap().id;
    world.reply_at(world.now + 50 * US, id);
    world.reply_at(world.now + 2 * MS, id);
    world.run(6 * MS, &mut |_| Some(100 * US));
    assert_eq!((world.counts().duplicate, world.counts().missed), (2, 0));
    assert_eq!(
        world.counts().accepted,
        world.counts().sent - world.machine.in_flight()
    );
}

#[test]
fn ids_wrap() {
    let rules = Rules {
        first_id: u64::MAX - 4,
        ..Rules::default()
    };
    let world = with_silence(|id| id == 2, rules, 20);
    let ids: Vec<u64> = world.states.iter().map(|state| state.id).take(8).collect();
    assert_eq!(
        ids,
        [
            u64::MAX - 4,
            u64::MAX - 3,
            u64::MAX - 2,
            u64::MAX - 1,
            u64::MAX,
            0,
            1,
            2
        ]
    );
    assert_eq!(
        (
            world.counts().missed,
            world.counts().malformed,
            world.counts().late
        ),
        (1, 0, 0)
    );
}

#[test]
fn replies_of_370_and_372_bytes_and_unknown_ids_are_rejected() {
    let mut world = World::new(Rules::default());
    world.run(3 * MS, &mut |_| None);
    let id = world.states.last().unwrap().id;
    let mut machine = world.machine;
    for length in [370, 372] {
        let mut bytes = vec![0; length];
        bytes[..8].copy_from_slice(&id.to_le_bytes());
        assert_eq!(
            machine.handle_reply(Mono(world.now + 10), &bytes),
            Reply::WrongSize
        );
    }
    for unknown in [id + 1, 0, u64::MAX] {
        let mut bytes = [0; REPLY_BYTES];
        Command {
            id: unknown,
            ..Command::default()
        }
        .encode(&mut bytes);
        assert_eq!(
            machine.handle_reply(Mono(world.now + 10), &bytes),
            Reply::Malformed
        );
    }
    assert_eq!(
        (
            machine.score().counts.wrong_size,
            machine.score().counts.malformed
        ),
        (2, 3)
    );
}

#[test]
fn replies_older_than_the_memory_are_stale() {
    let mut world = World::new(Rules::default());
    world.run(300 * MS, &mut |state: &State| {
        Some(if state.id == 5 { 250 * MS } else { 100 * US })
    });
    assert_eq!(
        (
            world.counts().stale,
            world.counts().late,
            world.counts().missed
        ),
        (1, 0, 1)
    );
}

/// The box does not run for 7.6 slots: it skips them, sends no burst, and blames nobody.
#[test]
fn the_box_skips_its_own_late_slots_and_never_bursts() {
    let mut machine = ControlBox::new(Rules::default(), Mono(MS)).unwrap();
    let mut sends = Vec::new();
    let mut reply = [0; REPLY_BYTES];
    for wake in [MS, 2 * MS, 9 * MS + 600 * US, 10 * MS, 11 * MS] {
        machine.handle_timeout(Mono(wake));
        if let Some(state) = machine.poll_transmit() {
            sends.push(wake);
            Command {
                id: state.id,
                ..Command::default()
            }
            .encode(&mut reply);
            machine.handle_reply(Mono(wake + 100 * US), &reply);
        }
    }
    assert_eq!(sends, [MS, 2 * MS, 10 * MS, 11 * MS]);
    let counts = machine.score().counts;
    assert_eq!(
        (counts.box_overrun, counts.missed, counts.accepted),
        (7, 0, 4)
    );
}

#[test]
fn a_state_sent_late_is_not_held_against_the_responder() {
    let mut machine = ControlBox::new(Rules::default(), Mono(MS)).unwrap();
    for wake in [MS, 2 * MS + 300 * US, 3 * MS] {
        machine.handle_timeout(Mono(wake));
        machine.poll_transmit();
    }
    let counts = machine.score().counts;
    assert_eq!(
        (
            counts.sent,
            counts.box_late_sends,
            counts.excluded,
            counts.missed
        ),
        (3, 1, 1, 1)
    );
    assert_eq!(machine.score().streak, 1);
}

#[test]
fn auto_recover_starts_again_after_the_pause() {
    let rules = Rules {
        auto_recover: Some(Duration::from_millis(500)),
        ..Rules::default()
    };
    let world = with_silence(|id| (10..30).contains(&id), rules, 1000);
    assert!(
        matches!(
            world.events[..],
            [Event::Stopped { id: 29, .. }, Event::Recovered]
        ),
        "{:?}",
        world.events
    );
    let gap = world.states[29].time_ns - world.states[28].time_ns;
    assert_eq!(gap, 501 * MS);
    assert_eq!(world.counts().stops, 1);
    assert_eq!(world.machine.score().streak, 0);
}

#[test]
fn a_missed_command_is_replayed_or_extrapolated() {
    let torques = |on_miss| {
        let mut machine = ControlBox::new(
            Rules {
                on_miss,
                ..Rules::default()
            },
            Mono(MS),
        )
        .unwrap();
        let mut seen = Vec::new();
        for cycle in 1..=5u64 {
            machine.handle_timeout(Mono(cycle * MS));
            let state = machine.poll_transmit().unwrap();
            seen.push(state.torque[0]);
            if cycle <= 2 {
                let mut bytes = [0; REPLY_BYTES];
                Command {
                    id: state.id,
                    torque: [cycle as f64; 7],
                }
                .encode(&mut bytes);
                machine.handle_reply(Mono(cycle * MS + 10), &bytes);
            }
        }
        seen
    };
    assert_eq!(torques(OnMiss::Replay), [0.0, 1.0, 2.0, 2.0, 2.0]);
    assert_eq!(torques(OnMiss::Extrapolate), [0.0, 1.0, 2.0, 3.0, 4.0]);
}

/// A minute at 1 kHz with a real controller: no miss, and the arm comes to rest.
#[test]
fn a_simulated_minute_is_held_still_without_a_miss() {
    let mut world = World::new(Rules::default());
    let mut responder = Responder::new(
        HoldStill,
        Disturbance {
            jitter: Duration::from_micros(300),
            seed: 3,
            ..Disturbance::default()
        },
    );
    let end = 60_000 * MS;
    while world.now < end {
        let mut last = None;
        world.run(world.now + MS, &mut |state: &State| {
            last = Some(*state);
            None
        });
        if let Some(state) = last {
            let (command, hold) = responder.handle_state(&state);
            let mut bytes = [0; REPLY_BYTES];
            command.encode(&mut bytes);
            world.order += 1;
            let arrival = state.time_ns + 100 * US + hold.as_nanos() as u64;
            world
                .under_way
                .insert((arrival, world.order), bytes.to_vec());
        }
    }
    assert_eq!((world.counts().missed, world.counts().sent), (0, 60_000));
    assert!(
        world
            .states
            .last()
            .unwrap()
            .position
            .iter()
            .all(|position| position.abs() < 1e-3)
    );
}

#[test]
fn a_cycle_of_the_box_allocates_nothing() {
    let mut machine = ControlBox::new(Rules::default(), Mono(MS)).unwrap();
    let mut reply = [0; REPLY_BYTES];
    let cycles = allocation_counter::measure(|| {
        for cycle in 1..=1000 {
            machine.handle_timeout(Mono(cycle * MS));
            if let Some(state) = machine.poll_transmit().filter(|state| state.id % 7 > 0) {
                Command {
                    id: state.id,
                    ..Command::default()
                }
                .encode(&mut reply);
                machine.handle_reply(Mono(cycle * MS + 100 * US), &reply);
            }
        }
    });
    assert_eq!(cycles.count_total, 0);
    assert!(machine.score().counts.missed > 100);
}
