//! `openlink bridge`: joins two links on one thread until a signal ends it, then says what happened.
//!
//! It opens, waits and reports. What passes and when is decided by `bridge-core`.

mod report;

use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use bridge_core::{Bridge, BridgeEvent, LinkLoss, Safety};
use link::tap::Place;
use link::{Event, Link, Reactor, Role, State, Uri};

use crate::record::{self, Recording};
use crate::stop::Stop;
use crate::{threads, timer};

/// Time for the last packets to leave.
const DRAIN: Duration = Duration::from_millis(500);

/// Command line of `openlink bridge`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where commands come from: waits for callers unless the link says otherwise.
    #[arg(long, value_name = "URI")]
    from: Uri,
    /// Where commands go: calls, unless the address is a wildcard or the link says otherwise.
    #[arg(long, value_name = "URI")]
    to: Uri,
    /// When setpoints break off in flight: land, stop, hold (then land) or handover.
    #[arg(long, value_name = "POLICY", default_value = "land")]
    link_loss: LinkLoss,
    /// Silence after the last setpoint that counts as broken off, ms. The firmware levels out at 500.
    #[arg(long, value_name = "MS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(50..=450))]
    silence_ms: u64,
    /// How long `hold` holds before it lands, ms.
    #[arg(long, value_name = "MS", default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(0..=600_000))]
    hold_ms: u64,
    /// How long high-level flight may go on without any client before it lands, ms; 0: for ever.
    #[arg(long, value_name = "MS", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(0..=3_600_000))]
    high_level_ms: u64,
    /// Feed the drone's emergency watchdog: its motors stop within 1 s when this bridge or its link to the drone
    /// dies. Once begun, the drone needs it until it is restarted.
    #[arg(long)]
    watchdog: bool,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    thread: threads::Args,
    #[command(flatten)]
    record: record::Args,
}

impl Args {
    fn safety(&self) -> Safety {
        let high_level_limit = Duration::from_millis(self.high_level_ms);
        Safety {
            link_loss: self.link_loss,
            silence: Duration::from_millis(self.silence_ms),
            hold_limit: Duration::from_millis(self.hold_ms),
            high_level_limit: (!high_level_limit.is_zero()).then_some(high_level_limit),
            watchdog: self.watchdog,
        }
    }
}

/// Bridges until SIGINT or SIGTERM.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let ends = Ends::of(&args)?;
    timer::make_exact();
    args.thread.apply()?;
    let mut joined = Joined::open(&args, ends)?;
    let recording = args
        .record
        .start("bridge", &[&args.from.to_string(), &args.to.to_string()]);
    joined.record(&recording, ends);
    let stop = Stop::install(&joined.reactor.waker()).context("cannot listen for signals")?;
    tracing::info!(
        "bridging {} and {}; {}",
        args.from,
        args.to,
        rules(&args, ends)
    );
    let started = Instant::now();
    while !stop.requested() {
        joined.turn(None)?;
    }
    joined.finish()?;
    recording.finish();
    report::print(&args, started.elapsed(), &joined.summary());
    Ok(ExitCode::SUCCESS)
}

/// The safety rules in force, in words.
fn rules(args: &Args, ends: Ends) -> String {
    if ends.guarded {
        format!(
            "when setpoints break off for {} ms: {}",
            args.silence_ms, args.link_loss
        )
    } else {
        "the safety rules are those of the bridge nearest the drone".to_owned()
    }
}

/// Which of the two links leads to the drone, and whether it does so with no further bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ends {
    drone_is_from: bool,
    guarded: bool,
}

impl Ends {
    fn of(args: &Args) -> anyhow::Result<Self> {
        let (from, to) = (
            args.from.faces_drone(Role::From),
            args.to.faces_drone(Role::To),
        );
        if args.from.place() == args.to.place() {
            bail!(
                "{} and {} are the same place: a bridge needs two",
                args.from,
                args.to
            );
        }
        if from && to {
            bail!(
                "{} and {} both lead to a drone: one of them must lead to clients (append listen=1 to wait for them)",
                args.from,
                args.to
            );
        }
        Ok(Self {
            drone_is_from: from,
            guarded: from || to,
        })
    }
}

/// Two open links, the rules between them and the loop around them.
struct Joined {
    reactor: Reactor,
    links: [Box<dyn Link>; 2],
    bridge: Bridge,
    drone_is_from: bool,
}

impl Joined {
    fn open(args: &Args, ends: Ends) -> anyhow::Result<Self> {
        let now = Instant::now();
        Ok(Self {
            reactor: Reactor::new().context("cannot set up the loop")?,
            links: [
                link::open(now, &args.from, Role::From)?,
                link::open(now, &args.to, Role::To)?,
            ],
            bridge: Bridge::new(ends.guarded.then(|| args.safety())),
            drone_is_from: ends.drone_is_from,
        })
    }

    /// Places: at the drone, or on the ground where a further bridge is nearer to it.
    fn record(&mut self, recording: &Recording, ends: Ends) {
        let (client, drone) = if ends.guarded {
            (Place::Ground, Place::Drone)
        } else {
            (Place::Client, Place::Network)
        };
        let (from, to) = if ends.drone_is_from {
            (drone, client)
        } else {
            (client, drone)
        };
        self.links[0].set_tap(recording.tap(0, from));
        self.links[1].set_tap(recording.tap(1, to));
        self.bridge
            .set_tap(recording.tap(u8::from(ends.drone_is_from), client));
    }

    /// Waits for work, at most until `until`, and does it.
    fn turn(&mut self, until: Option<Instant>) -> io::Result<Instant> {
        let due = self.bridge.poll_timeout().map(|(at, _)| at);
        let now = self
            .reactor
            .turn(&mut self.links, due.into_iter().chain(until).min())?;
        self.pump(now);
        Ok(now)
    }

    fn pump(&mut self, now: Instant) {
        let [from, to] = &mut self.links;
        let (client, drone) = if self.drone_is_from {
            (to, from)
        } else {
            (from, to)
        };
        self.bridge.pump(now, client.as_mut(), drone.as_mut());
        while let Some(event) = self.bridge.poll_event() {
            log(&event);
        }
    }

    /// Deals with a drone in flight, lets the last packets leave and says goodbye.
    fn finish(&mut self) -> io::Result<()> {
        let now = Instant::now();
        self.bridge.finish(now);
        self.pump(now);
        self.turn_until(now + DRAIN, |joined| {
            joined.bridge.is_drained() && joined.backlog() == 0
        })?;
        let now = Instant::now();
        self.links.iter_mut().for_each(|link| link.close(now));
        self.turn_until(now + DRAIN, |joined| {
            joined
                .links
                .iter()
                .all(|link| link.state() == State::Closed)
        })
    }

    fn turn_until(&mut self, end: Instant, done: impl Fn(&Self) -> bool) -> io::Result<()> {
        while !done(self) && self.turn(Some(end))? < end {}
        Ok(())
    }

    fn backlog(&self) -> usize {
        self.links.iter().map(|link| link.backlog()).sum()
    }

    fn summary(&self) -> bridge_core::Summary {
        let [from, to] = &self.links;
        let (client, drone) = if self.drone_is_from {
            (to, from)
        } else {
            (from, to)
        };
        self.bridge.summary(client.as_ref(), drone.as_ref())
    }
}

fn log(event: &BridgeEvent) {
    match event {
        BridgeEvent::Client(event) => log_link("client side", event),
        BridgeEvent::Drone(event) => log_link("drone side", event),
        BridgeEvent::Safety(reason) => tracing::warn!("{reason}"),
    }
}

fn log_link(side: &str, event: &Event) {
    match event {
        Event::Up(text) => tracing::info!("{side} up: {text}"),
        Event::Down(text) => tracing::warn!("{side} down: {text}"),
        Event::Notice(text) => tracing::info!("{side}: {text}"),
    }
}
