//! The domain bridge: forwards topics, services and actions between DDS domains in one process, as the bytes they
//! are.
//!
//! One context and node per domain, one thread per route, and two watchers per domain that look at the graph when it
//! changes and hear other bridges: a route opens when its source has a publisher and follows that publisher's QoS.

mod bridge;
mod cdr;
mod config;
mod diagnostics;
mod forwarding;
mod offering;
mod origins;
mod pack;
mod plan;
mod policy;
mod ready;
mod route;
mod routing;
mod services;
mod site;
mod stats;

use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::Result;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

pub use config::{
    ConfigError, DomainMap, Mode, Pattern, QosRule, RouteRule, Rules, ServiceRule, WildcardRule,
};

use crate::rcl_raw::Gid;
use crate::ros::args::{ArgsError, NodeArgs};
use bridge::{Bridge, Options};

/// How often diagnostics are published, and how long the bridge sleeps at most.
const BEAT: Duration = Duration::from_secs(1);
/// How long changes of the graph are collected before the routes are looked at.
const COLLECT: Duration = Duration::from_millis(10);
/// Events that wait at most; a further look at the graph is not queued then.
const EVENTS: usize = 256;

/// What wakes the bridge.
#[derive(Debug)]
enum Event {
    /// A domain's graph changed, or a route needs a look at it.
    Graph,
    /// Another bridge announced something.
    Announced {
        domain: usize,
        from: Gid,
        text: String,
    },
    /// SIGHUP: read the rules again.
    Reload,
    /// SIGINT or SIGTERM.
    Stop,
}

/// The parameter that gives the file's domains other numbers.
const DOMAIN_MAP: &str = "domain_map";

/// What the parameters say.
struct Settings {
    config: String,
    domain_map: DomainMap,
    lazy: bool,
    auto_remove: bool,
    diagnostics: bool,
}

impl Settings {
    fn read(args: &NodeArgs) -> Result<Self, ArgsError> {
        let settings = Self {
            config: args.text("config", "")?,
            domain_map: DomainMap::parse(DOMAIN_MAP, &args.text(DOMAIN_MAP, "")?)?,
            lazy: args.bool("wait_for_subscription", false)?,
            auto_remove: args.bool("auto_remove", true)?,
            diagnostics: args.bool("diagnostics", true)?,
        };
        args.refuse_unknown()?;
        if settings.config.is_empty() {
            return Err(ArgsError::value(
                "config",
                "nothing",
                "the path of a rule file",
            ));
        }
        Ok(settings)
    }

    fn rules(&self) -> Result<Rules> {
        let mut rules = Rules::read(Path::new(&self.config), self.lazy)?;
        self.domain_map.apply(DOMAIN_MAP, &mut rules)?;
        Ok(rules)
    }
}

/// Runs the bridge until SIGINT or SIGTERM; SIGHUP makes it read its rules again.
///
/// # Errors
/// A parameter or rule that is not allowed, a type that cannot be loaded, or what rcl says. Nothing is started
/// then.
pub fn run(args: &NodeArgs) -> Result<()> {
    let settings = Settings::read(args)?;
    let rules = settings.rules()?;
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let (sender, events) = mpsc::sync_channel(EVENTS);
    let options = Options {
        args: without_renames(args.passed_on()),
        diagnostics: settings.diagnostics,
        auto_remove: settings.auto_remove,
    };
    let bridge = Bridge::open(&rules, options, sender.clone())?;
    for id in rules.domains() {
        crate::ros::domain::warn_if_risky(id);
    }
    let handle = signals.handle();
    let on_signal = std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            for signal in signals.forever() {
                let event = if signal == SIGHUP {
                    Event::Reload
                } else {
                    Event::Stop
                };
                // The receiver is gone only when the bridge already ends.
                sender.send(event).ok();
            }
        })?;
    serve(bridge, &settings, events);
    handle.close();
    on_signal
        .join()
        .map_err(|_| anyhow::anyhow!("the signal thread panicked"))
}

/// Does what events ask for until one says stop.
fn serve(mut bridge: Bridge, settings: &Settings, events: mpsc::Receiver<Event>) {
    let mut beat = Instant::now();
    update(&mut bridge);
    loop {
        let left = BEAT.saturating_sub(beat.elapsed());
        let due = match events.recv_timeout(left) {
            Ok(Event::Stop) | Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Ok(Event::Graph) => {
                std::thread::sleep(COLLECT);
                true
            }
            Ok(Event::Announced { domain, from, text }) => {
                bridge.handle_announcement(domain, from, &text)
            }
            Ok(Event::Reload) => reload(&mut bridge, settings),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                beat = Instant::now();
                bridge.diagnose();
                bridge.is_unsettled()
            }
        };
        if due {
            update(&mut bridge);
        }
    }
    // Watchers that wait for room in the queue must not be waited for.
    drop(events);
    bridge.close_all();
}

fn update(bridge: &mut Bridge) {
    if bridge.update(Instant::now()) {
        tracing::info!("domain bridge is ready");
        if let Some(socket) = std::env::var_os("NOTIFY_SOCKET")
            && let Err(error) = ready::tell(&socket)
        {
            tracing::warn!(%error, "cannot tell the service manager");
        }
    }
}

/// Reads the rules again; bad ones change nothing.
fn reload(bridge: &mut Bridge, settings: &Settings) -> bool {
    let changed = settings.rules().and_then(|rules| bridge.change(&rules));
    if let Err(error) = &changed {
        tracing::error!("the rules stay as they are: {error:#}");
    }
    true
}

/// The arguments for rcl without remaps: each domain's node has its own name, and routes name topics in full.
fn without_renames(args: &[String]) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        if arg == "-r" {
            rest.next();
        } else {
            out.push(arg.clone());
        }
    }
    out
}
