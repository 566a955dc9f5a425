//! A robot, a simulated drone at its link, and a clock that only the test moves.

use crtp_client::NoCache;
use link::SimLink;

use super::*;
use crate::fleet::Fleet;

/// A robot, its simulated drone, a clock, and everything it said.
pub(super) struct Rig {
    pub(super) drone: Drone,
    pub(super) link: SimLink,
    pub(super) now: Instant,
    pub(super) seen: Vec<DroneEvent>,
}

impl Rig {
    pub(super) fn new(settings: &str, simulated: simulator::Config) -> Self {
        Self::new_with(settings, simulated, |_| {})
    }

    pub(super) fn new_with(
        settings: &str,
        simulated: simulator::Config,
        change: impl FnOnce(&mut Robot),
    ) -> Self {
        let text = format!("robots:\n  cf1: {{uri: 'sim://', {settings}}}\n");
        let mut robot = Fleet::read(&text).unwrap().robots.remove(0);
        change(&mut robot);
        let now = Instant::now();
        Self {
            drone: Drone::new(&robot, Box::new(NoCache)),
            link: SimLink::new(now, simulated),
            now,
            seen: Vec::new(),
        }
    }

    pub(super) fn quiet() -> simulator::Config {
        simulator::Config {
            noise: false,
            ..simulator::Config::default()
        }
    }

    pub(super) fn connected(settings: &str, simulated: simulator::Config) -> Self {
        let mut rig = Self::new(settings, simulated);
        rig.until(|event| matches!(event, DroneEvent::Connected(_)));
        rig
    }

    /// One step of the clock: to the next timer, at most 10 ms on.
    fn step(&mut self) {
        let timers = [self.drone.poll_timeout(), self.link.poll_timeout()];
        let next = timers
            .into_iter()
            .flatten()
            .map(|(at, _)| at)
            .min()
            .unwrap_or(self.now);
        self.now = next.clamp(self.now, self.now + Duration::from_millis(10));
        if self
            .link
            .poll_timeout()
            .is_some_and(|(at, _)| at <= self.now)
        {
            self.link.handle_timeout(self.now);
        }
        self.drone.pump(self.now, &mut self.link);
        self.seen
            .extend(std::iter::from_fn(|| self.drone.poll_event()));
    }

    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            let before = self.now;
            self.step();
            self.now = self.now.max(before + Duration::from_micros(1));
        }
    }

    /// Lets time pass until something is said; what.
    pub(super) fn until(&mut self, wanted: impl Fn(&DroneEvent) -> bool) -> DroneEvent {
        let from = self.seen.len();
        let end = self.now + Duration::from_secs(20);
        loop {
            if let Some(event) = self.seen[from..].iter().find(|event| wanted(event)) {
                return event.clone();
            }
            assert!(
                self.now < end,
                "never said; the last was {:?}",
                self.seen.last()
            );
            self.pass(Duration::from_micros(1));
        }
    }

    pub(super) fn ask(&mut self, request: &Request) -> Result<(), String> {
        let asked = self.drone.request(self.now, request).unwrap();
        match self
            .until(|event| matches!(event, DroneEvent::Reply { ticket, .. } if *ticket == asked))
        {
            DroneEvent::Reply { outcome, .. } => outcome,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn count(&self, wanted: impl Fn(&DroneEvent) -> bool) -> usize {
        self.seen.iter().filter(|event| wanted(event)).count()
    }

    pub(super) fn stream(&mut self, setpoint: &Setpoint, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.drone.setpoint(self.now, setpoint).unwrap();
            self.pass(Duration::from_millis(10));
        }
    }

    pub(super) fn would_crash(&self) -> usize {
        self.link.drone().report().would_crash.count as usize
    }
}
