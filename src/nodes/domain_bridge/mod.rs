//! The domain bridge: forwards topics between DDS domains in one process, as the bytes they are.
//!
//! One context and node per domain, one thread per route, and one watcher per domain that looks at the graph
//! when it changes: a route opens when its source has a publisher and follows that publisher's QoS.

mod config;
mod policy;
mod route;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

pub use config::{ConfigError, QosRule, RouteRule, Rules};

use crate::rcl_raw::{Domain, Endpoint, Ends, Route, TypeSupport};
use crate::ros::args::{ArgsError, NodeArgs};
use route::{Counters, OwnGids, Running};

/// How long the graph may stay unobserved at most.
const WATCH: Duration = Duration::from_secs(1);

/// What wakes the bridge.
enum Event {
    /// A domain's graph changed, or may have.
    Graph,
    /// SIGINT or SIGTERM.
    Stop,
}

/// A rule and what has become of it.
struct Forwarding {
    rule: RouteRule,
    types: Arc<TypeSupport>,
    counters: Arc<Counters>,
    running: Option<Running>,
}

/// The whole bridge.
struct Bridge {
    domains: BTreeMap<usize, Arc<Domain>>,
    routes: Vec<Forwarding>,
    own: OwnGids,
    announced: bool,
}

/// Runs the bridge until SIGINT or SIGTERM.
///
/// # Errors
/// A parameter or rule that is not allowed, a type that cannot be loaded, or what rcl says. Nothing is started
/// then.
pub fn run(args: &NodeArgs) -> Result<()> {
    let file = args.text("config", "")?;
    args.refuse_unknown()?;
    if file.is_empty() {
        return Err(ArgsError::value("config", "nothing", "the path of a rule file").into());
    }
    let rules = Rules::read(Path::new(&file))?;
    let mut bridge = Bridge::open(&rules, args)?;
    let (sender, events) = mpsc::sync_channel(64);
    let stopping = Arc::new(AtomicBool::new(false));
    let watchers = bridge.watch(&sender, &stopping)?;
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let handle = signals.handle();
    let on_signal = std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            if signals.forever().next().is_some() {
                // The receiver is gone only when the bridge already ends.
                sender.send(Event::Stop).ok();
            }
        })?;
    bridge.update();
    while let Ok(Event::Graph) = events.recv() {
        bridge.update();
    }
    bridge.close(watchers, &stopping);
    handle.close();
    drop(events);
    on_signal
        .join()
        .map_err(|_| anyhow::anyhow!("the signal thread panicked"))
}

impl Bridge {
    fn open(rules: &Rules, args: &NodeArgs) -> Result<Self> {
        let mut types = BTreeMap::new();
        for rule in &rules.routes {
            let support = TypeSupport::load(&rule.type_name)
                .with_context(|| format!("topics.{}.type", rule.from_topic))?;
            types.insert(rule.type_name.clone(), Arc::new(support));
        }
        let mut domains = BTreeMap::new();
        for id in rules.domains() {
            let name = format!("{}_{id}", rules.name);
            let domain = Domain::open(id, &name, &without_renames(args.passed_on()))
                .with_context(|| format!("domain {id}"))?;
            domains.insert(id, Arc::new(domain));
        }
        let routes = rules.routes.iter().map(|rule| Forwarding {
            types: Arc::clone(&types[&rule.type_name]),
            rule: rule.clone(),
            counters: Arc::default(),
            running: None,
        });
        Ok(Self {
            domains,
            routes: routes.collect(),
            own: OwnGids::default(),
            announced: false,
        })
    }

    /// Starts a thread per domain that reports changes of its graph.
    fn watch(
        &self,
        sender: &mpsc::SyncSender<Event>,
        stopping: &Arc<AtomicBool>,
    ) -> Result<Vec<JoinHandle<()>>> {
        let start = |domain: &Arc<Domain>| {
            let (domain, sender, stopping) =
                (Arc::clone(domain), sender.clone(), Arc::clone(stopping));
            let watch = move || {
                while !stopping.load(Ordering::Acquire) {
                    if let Err(error) = domain.wait_graph(WATCH) {
                        tracing::warn!(%error, "cannot watch the graph");
                        std::thread::sleep(WATCH);
                    }
                    // A full queue means that a look at the graph is due anyway.
                    sender.try_send(Event::Graph).ok();
                }
            };
            std::thread::Builder::new()
                .name("graph".into())
                .spawn(watch)
        };
        Ok(self.domains.values().map(start).collect::<Result<_, _>>()?)
    }

    /// Opens the routes whose source has appeared, and opens those anew that do not hear every publisher.
    fn update(&mut self) {
        for index in 0..self.routes.len() {
            if let Err(error) = self.update_route(index) {
                tracing::warn!(route = label(&self.routes[index].rule), %error, "cannot open; will try again");
            }
        }
        let up = self
            .routes
            .iter()
            .filter(|route| route.running.is_some())
            .count();
        if up == self.routes.len() && !self.announced {
            self.announced = true;
            tracing::info!(routes = up, "domain bridge is ready");
        }
    }

    fn update_route(&mut self, index: usize) -> Result<()> {
        let publishers = self.publishers(&self.routes[index].rule)?;
        let Self {
            domains,
            routes,
            own,
            ..
        } = self;
        let route = &mut routes[index];
        if publishers.is_empty() {
            return Ok(());
        }
        let wanted = policy::choose(&route.rule.qos, &publishers);
        if route
            .running
            .as_ref()
            .is_some_and(|running| policy::can_stay(&running.qos, &wanted))
        {
            return Ok(());
        }
        route.running = None;
        let rule = &route.rule;
        let ends = Ends {
            from: (&rule.from_topic, wanted),
            to: (&rule.to_topic, wanted),
        };
        let opened = Route::open(
            &domains[&rule.from_domain],
            &domains[&rule.to_domain],
            &ends,
            &route.types,
        )?;
        route.running = Some(Running::start(
            opened,
            wanted,
            own,
            &route.counters,
            &label(rule),
        )?);
        tracing::info!(
            route = label(rule),
            qos = policy::describe(&wanted),
            "route is up"
        );
        Ok(())
    }

    /// The publishers at a route's source that are not ours.
    fn publishers(&self, rule: &RouteRule) -> Result<Vec<Endpoint>> {
        let mut found = self.domains[&rule.from_domain].publishers(&rule.from_topic)?;
        found.retain(|publisher| !self.own.contains(&publisher.gid));
        Ok(found)
    }

    fn close(mut self, watchers: Vec<JoinHandle<()>>, stopping: &AtomicBool) {
        stopping.store(true, Ordering::Release);
        for domain in self.domains.values() {
            domain.wake();
        }
        for route in &mut self.routes {
            route.running = None;
            let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
            tracing::info!(
                route = label(&route.rule),
                forwarded = count(&route.counters.forwarded),
                bytes = count(&route.counters.bytes),
                own = count(&route.counters.own),
                errors = count(&route.counters.errors),
                "route ends"
            );
        }
        for watcher in watchers {
            if watcher.join().is_err() {
                tracing::error!("a graph watcher panicked");
            }
        }
    }
}

fn label(rule: &RouteRule) -> String {
    format!(
        "{} in {} > {} in {}",
        rule.from_topic, rule.from_domain, rule.to_topic, rule.to_domain
    )
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
