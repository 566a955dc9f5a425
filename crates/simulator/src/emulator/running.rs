//! An emulated path between two network namespaces: a thread for each direction reads one TUN device and writes the
//! other. Carries whole IP packets, so that every protocol runs over it unmodified.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use realtime::thread::policy::DEFAULT_PRIORITY;
use realtime::{Applied, Policy, ThreadPolicy};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::Serialize;

use super::conditions::Scenario;
use super::direction::{Direction, Meta};
use super::lateness::{Lateness, Recorder};
use super::namespaces::{ADDRESS_A, ADDRESS_B, EmulationError, Namespaces};
use super::packet::{Nat, header_len, refresh_udp_checksum};
use super::stats::{DirectionStats, Published};
use super::weather::Side;

/// Packets read before those that are due get their turn.
const READ_BATCH: usize = 64;
/// How long a request to stop may go unnoticed.
const STOP_CHECK: Duration = Duration::from_millis(50);
const MAX_PACKET: usize = 65_536;

/// A path that carries packets until it is stopped or dropped.
#[derive(Debug)]
pub struct Emulation {
    start: Instant,
    scenario: Scenario,
    seed: u64,
    stop: Arc<AtomicBool>,
    published: [Arc<Published>; 2],
    threads: Vec<JoinHandle<io::Result<Outcome>>>,
    // Dropped last: the devices in the threads go first.
    namespaces: Namespaces,
}

/// What a thread knows at its end.
#[derive(Debug)]
struct Outcome {
    lateness: Lateness,
    not_written: u64,
    scheduling: Applied,
}

/// What an emulation did.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The scenario with all its values.
    pub scenario: Scenario,
    /// Seed of the chance in it.
    pub seed: u64,
    /// `tun` or `udp`.
    pub form: &'static str,
    /// How long it ran, seconds.
    pub seconds: f64,
    /// Packets from end a to end b.
    pub up: DirectionStats,
    /// Packets from end b to end a.
    pub down: DirectionStats,
    /// How late the emulator was, up and down.
    pub lateness: [Lateness; 2],
    /// Packets that the receiving device or socket did not take.
    pub not_written: u64,
    /// What the threads ran under, and what was refused.
    pub scheduling: Vec<Applied>,
    /// Whether the emulator kept time, so that figures measured over it are worth something.
    pub clean: bool,
}

impl Report {
    /// Whether lateness was at most 1 ms at p99.9 in both directions.
    pub(super) fn judge(lateness: &[Lateness]) -> bool {
        lateness.iter().all(Lateness::is_clean)
    }
}

/// One direction and all it touches.
struct Lane {
    side: Side,
    direction: Direction,
    from: Arc<File>,
    to: Arc<File>,
    start: Instant,
    nat: Arc<Nat>,
    scenario: Scenario,
    published: Arc<Published>,
    stop: Arc<AtomicBool>,
    lateness: Recorder,
    not_written: u64,
}

impl Emulation {
    /// Makes the namespaces `PREFIX-a` and `PREFIX-b` and the path between them. Its clock starts now.
    ///
    /// # Errors
    /// Not root, no TUN driver, no iproute2, or the namespaces exist.
    pub fn start(prefix: &str, scenario: Scenario, seed: u64) -> Result<Self, EmulationError> {
        let namespaces = Namespaces::create(prefix)?;
        let [a, b] = namespaces.open_devices()?.map(Arc::new);
        let mut emulation = Self {
            start: Instant::now(),
            scenario,
            seed,
            stop: Arc::new(AtomicBool::new(false)),
            published: [Arc::default(), Arc::default()],
            threads: Vec::new(),
            namespaces,
        };
        let nat = Arc::new(Nat::new());
        emulation.spawn(Side::Up, &a, &b, &nat)?;
        emulation.spawn(Side::Down, &b, &a, &nat)?;
        Ok(emulation)
    }

    fn spawn(
        &mut self,
        side: Side,
        from: &Arc<File>,
        to: &Arc<File>,
        nat: &Arc<Nat>,
    ) -> Result<(), EmulationError> {
        let failed = |source| EmulationError::System {
            what: "cannot start the emulator".into(),
            source,
        };
        let conditions = match side {
            Side::Up => &self.scenario.up,
            Side::Down => &self.scenario.down,
        };
        let lateness =
            Recorder::new().ok_or_else(|| failed(io::Error::other("no room for a histogram")))?;
        let lane = Lane {
            side,
            direction: Direction::new(self.start, conditions.clone(), self.seed, side),
            from: Arc::clone(from),
            to: Arc::clone(to),
            start: self.start,
            nat: Arc::clone(nat),
            scenario: self.scenario.clone(),
            published: Arc::clone(&self.published[side as usize]),
            stop: Arc::clone(&self.stop),
            lateness,
            not_written: 0,
        };
        let name = format!("emulate-{side:?}").to_lowercase();
        let thread = thread::Builder::new().name(name);
        self.threads
            .push(thread.spawn(move || lane.run()).map_err(failed)?);
        Ok(())
    }

    /// When its clock started.
    pub const fn started(&self) -> Instant {
        self.start
    }

    /// The namespaces, end a first.
    pub const fn names(&self) -> &[String; 2] {
        self.namespaces.names()
    }

    /// The addresses in them, end a first.
    pub fn addresses() -> [std::net::Ipv4Addr; 2] {
        [ADDRESS_A, ADDRESS_B]
    }

    /// Counters so far, up and down.
    pub fn stats(&self) -> [DirectionStats; 2] {
        [self.published[0].read(), self.published[1].read()]
    }

    /// Whether a thread has ended, which only an error makes it do.
    pub fn has_failed(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Stops and removes the namespaces.
    ///
    /// # Errors
    /// A device broke while it ran.
    pub fn stop(mut self) -> Result<Report, EmulationError> {
        self.stop.store(true, Ordering::Relaxed);
        let seconds = self.start.elapsed().as_secs_f64();
        let mut outcomes = Vec::new();
        for thread in std::mem::take(&mut self.threads) {
            let broke_down = |_| Err(io::Error::other("its thread broke down"));
            let outcome = thread.join().unwrap_or_else(broke_down);
            outcomes.push(outcome.map_err(|source| EmulationError::System {
                what: "the emulator stopped".into(),
                source,
            })?);
        }
        let [up, down] = self.stats();
        let lateness = [outcomes[0].lateness, outcomes[1].lateness];
        Ok(Report {
            scenario: self.scenario.clone(),
            seed: self.seed,
            form: "tun",
            seconds,
            up,
            down,
            lateness,
            not_written: outcomes.iter().map(|o| o.not_written).sum(),
            clean: Report::judge(&lateness),
            scheduling: outcomes.into_iter().map(|o| o.scheduling).collect(),
        })
    }
}

impl Drop for Emulation {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // Without `stop` nobody asks how it went.
            let _outcome = thread.join();
        }
    }
}

/// Real-time class where allowed, exact timers in any case.
pub(super) fn schedule_exactly() -> io::Result<Applied> {
    ThreadPolicy {
        policy: Some(Policy::Fifo(DEFAULT_PRIORITY)),
        timer_slack_ns: Some(1),
        ..ThreadPolicy::default()
    }
    .apply()
}

impl Lane {
    fn run(mut self) -> io::Result<Outcome> {
        let scheduling = schedule_exactly()?;
        let mut buffer = vec![0; MAX_PACKET];
        while !self.stop.load(Ordering::Relaxed) {
            self.read_all(&mut buffer)?;
            self.write_due()?;
            self.published.write(&self.direction.stats());
            self.wait()?;
        }
        Ok(Outcome {
            lateness: self.lateness.summary(),
            not_written: self.not_written,
            scheduling,
        })
    }

    fn read_all(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        for _ in 0..READ_BATCH {
            let len = match rustix::io::read(&*self.from, &mut *buffer) {
                Ok(len) => len,
                Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let now = Instant::now();
            let packet = &mut buffer[..len];
            if self.side == Side::Up && !self.scenario.nat.is_empty() {
                let epoch = self.scenario.nat_epoch(now - self.start);
                self.nat.outward(packet, epoch);
            }
            let meta = Meta {
                protected: header_len(packet),
                ..Meta::default()
            };
            self.direction.handle_packet(now, packet, meta);
        }
        Ok(())
    }

    fn write_due(&mut self) -> io::Result<()> {
        let mut stale = 0;
        let now = Instant::now();
        while let Some(delivery) = self.direction.poll_packet(now) {
            if delivery.corrupted {
                refresh_udp_checksum(delivery.bytes);
            }
            if self.side == Side::Down && !self.scenario.nat.is_empty() {
                let epoch = self.scenario.nat_epoch(now - self.start);
                if !self.nat.inward(delivery.bytes, epoch) {
                    stale += 1;
                    continue;
                }
            }
            match rustix::io::write(&*self.to, delivery.bytes) {
                Ok(_) => self.lateness.record(Instant::now() - delivery.due),
                Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS | Errno::INVAL | Errno::IO) => {
                    self.not_written += 1;
                }
                Err(error) => return Err(error.into()),
            }
        }
        (0..stale).for_each(|_| self.direction.count_nat_stale());
        Ok(())
    }

    fn wait(&self) -> io::Result<()> {
        let until_due = self
            .direction
            .poll_timeout()
            .map(|(at, _)| at.saturating_duration_since(Instant::now()));
        wait_readable(&mut [PollFd::new(&*self.from, PollFlags::IN)], until_due)
    }
}

/// Waits for one of the descriptors, at most until a packet is due or a request to stop has to be looked for.
pub(super) fn wait_readable(fds: &mut [PollFd<'_>], until_due: Option<Duration>) -> io::Result<()> {
    let span = until_due.unwrap_or(STOP_CHECK).min(STOP_CHECK);
    let timeout = Timespec::try_from(span).ok();
    match poll(fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
