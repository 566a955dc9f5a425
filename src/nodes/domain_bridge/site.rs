//! One domain that the bridge is in: its node, what the bridge announces there and which other bridges it sees.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::rcl_raw::{Domain, Endpoint, Gid, Publisher, Qos, Subscription, TypeSupport, Waker};

use super::Event;
use super::origins::{self, Registry};
use super::policy;
use super::{cdr, config, diagnostics};

/// How long the graph, or another bridge, may stay unobserved at most.
const WATCH: Duration = Duration::from_secs(1);
/// Announcements kept by the reader, one of each bridge.
const ANNOUNCERS: u32 = 64;

/// A domain and the bridge's node in it.
#[derive(Debug)]
pub(super) struct Site {
    /// Context and node.
    pub(super) domain: Arc<Domain>,
    /// The node's name.
    pub(super) node: String,
    /// Nodes of other bridges that announce themselves, with namespaces.
    pub(super) bridges: BTreeSet<(String, String)>,
    /// The middleware tells publishers by the identities that the graph shows.
    pub(super) comparable: bool,
    announcer: Publisher,
    announced: String,
    diagnostics: Option<Publisher>,
    watchers: Vec<JoinHandle<()>>,
    waker: Waker,
    stop: Arc<AtomicBool>,
}

/// What announcements are published and read with: the last one of each bridge, for late ones too.
fn announcing(depth: u32) -> Qos {
    let rule = config::QosRule {
        reliable: Some(true),
        transient_local: Some(true),
        depth: Some(depth),
        ..config::QosRule::default()
    };
    policy::choose(&rule, &[]).publisher
}

impl Site {
    /// Opens a domain and starts watching it.
    ///
    /// # Errors
    /// What rcl said, or a thread cannot be made.
    pub(super) fn open(
        id: usize,
        name: &str,
        args: &[String],
        with_diagnostics: bool,
        events: &mpsc::SyncSender<Event>,
    ) -> Result<Self> {
        let node = format!("{name}_{id}");
        let domain =
            Arc::new(Domain::open(id, &node, args).with_context(|| format!("domain {id}"))?);
        let text = Arc::new(TypeSupport::load("std_msgs/msg/String")?);
        let announcer = Publisher::open(&domain, origins::TOPIC, &text, &announcing(1))?;
        let reader = Subscription::open(
            &domain,
            origins::TOPIC,
            &text,
            &announcing(ANNOUNCERS),
            false,
        )?;
        let mut site = Self {
            diagnostics: with_diagnostics
                .then(|| open_diagnostics(&domain))
                .flatten(),
            domain,
            node,
            bridges: BTreeSet::new(),
            comparable: false,
            announcer,
            announced: String::new(),
            watchers: Vec::new(),
            waker: reader.waker(),
            stop: Arc::default(),
        };
        site.watch_graph(events.clone())?;
        site.watch_announcements(id, reader, events.clone())?;
        Ok(site)
    }

    fn watch_graph(&mut self, events: mpsc::SyncSender<Event>) -> std::io::Result<()> {
        let (domain, stop) = (Arc::clone(&self.domain), Arc::clone(&self.stop));
        let watch = move || {
            while !stop.load(Ordering::Acquire) {
                match domain.wait_graph(WATCH) {
                    // A full queue means that a look at the graph is due anyway.
                    Ok(true) => drop(events.try_send(Event::Graph)),
                    Ok(false) => {}
                    Err(error) => {
                        tracing::warn!(%error, "cannot watch the graph");
                        std::thread::sleep(WATCH);
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().name("graph".into());
        self.watchers.push(thread.spawn(watch)?);
        Ok(())
    }

    fn watch_announcements(
        &mut self,
        id: usize,
        mut reader: Subscription,
        events: mpsc::SyncSender<Event>,
    ) -> std::io::Result<()> {
        let stop = Arc::clone(&self.stop);
        let own = self.announcer.gid();
        let watch = move || {
            while !stop.load(Ordering::Acquire) {
                if let Err(error) = hear(id, own, &mut reader, &events) {
                    tracing::warn!(domain = id, %error, "cannot hear other bridges");
                    std::thread::sleep(WATCH);
                }
            }
        };
        let thread = std::thread::Builder::new().name("bridges".into());
        self.watchers.push(thread.spawn(watch)?);
        Ok(())
    }

    /// Looks which other bridges there are.
    ///
    /// # Errors
    /// What rcl said.
    pub(super) fn refresh(&mut self, id: usize, registry: &mut Registry) -> Result<()> {
        let all = self.domain.publishers(origins::TOPIC)?;
        let own = self.announcer.gid();
        self.comparable |= all.iter().any(|announcer| announcer.gid == own);
        let others = all.iter().filter(|announcer| announcer.gid != own);
        self.bridges = others.map(node_of).collect();
        if self.comparable {
            let alive: BTreeSet<Gid> = all.iter().map(|announcer| announcer.gid).collect();
            registry.keep_announcers(id, &alive);
        }
        Ok(())
    }

    /// Tells the other bridges, if there is something new.
    ///
    /// # Errors
    /// What rcl said.
    pub(super) fn announce(&mut self, id: usize, registry: &Registry) -> Result<()> {
        let text = registry.announcement(id);
        if text != self.announced {
            self.announcer.publish(&cdr::text_message(&text))?;
            self.announced = text;
        }
        Ok(())
    }

    /// Publishes the state of what this domain is an end of.
    ///
    /// # Errors
    /// What rcl said.
    pub(super) fn diagnose(&self, statuses: &[diagnostics::Status]) -> Result<()> {
        if let Some(publisher) = &self.diagnostics {
            publisher.publish(&diagnostics::message(&self.node, statuses))?;
        }
        Ok(())
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.domain.wake();
        self.waker.wake();
        for watcher in self.watchers.drain(..) {
            if watcher.join().is_err() {
                tracing::error!("a watcher panicked");
            }
        }
    }
}

/// Name and namespace of an endpoint's node.
pub(super) fn node_of(endpoint: &Endpoint) -> (String, String) {
    (endpoint.node.clone(), endpoint.namespace.clone())
}

fn open_diagnostics(domain: &Arc<Domain>) -> Option<Publisher> {
    let rule = config::QosRule {
        reliable: Some(true),
        ..config::QosRule::default()
    };
    let qos = policy::choose(&rule, &[]).publisher;
    let opened = TypeSupport::load(diagnostics::TYPE)
        .and_then(|types| Publisher::open(domain, diagnostics::TOPIC, &Arc::new(types), &qos));
    opened
        .inspect_err(|error| tracing::warn!(%error, "no diagnostics"))
        .ok()
}

/// Waits once for announcements and hands on those of others.
fn hear(
    id: usize,
    own: Gid,
    reader: &mut Subscription,
    events: &mpsc::SyncSender<Event>,
) -> Result<()> {
    reader.wait(WATCH)?;
    while let Some(taken) = reader.take()? {
        if taken.gid == own {
            continue;
        }
        let text = cdr::only_text(taken.data).unwrap_or_default().to_owned();
        let event = Event::Announced {
            domain: id,
            from: taken.gid,
            text,
        };
        // The receiver is gone only when the bridge already ends.
        events.send(event).ok();
    }
    Ok(())
}
