//! A rule for one direction of one topic and what has become of it: which publishers it hears, which of its own it
//! has, and whether its thread runs. Opening and closing are here; why is decided in `plan` and `policy`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, mpsc};

use anyhow::{Context as _, Result};

use crate::rcl_raw::{Domain, Endpoint, Gid, Publisher, Subscription, TypeSupport};

use super::Event;
use super::config::{Mode, RouteRule};
use super::origins::{Origins, Place, Registry};
use super::pack;
use super::plan::{LaneKey, Verdict};
use super::policy::{self, Choice};
use super::route::{Plan, Running, Setup, Way};
use super::stats::Counters;

/// The lanes and ways of a plan, to see whether it is a new one.
type Shape = (Vec<LaneKey>, Vec<(Gid, Way)>);

/// A route that is open.
#[derive(Debug)]
struct Open {
    choice: Choice,
    lanes: BTreeMap<LaneKey, Arc<Publisher>>,
    verdicts: BTreeMap<Gid, Verdict>,
    shape: Shape,
    running: Option<Running>,
}

/// A rule and what has become of it.
#[derive(Debug)]
pub(super) struct Forwarding {
    /// The rule.
    pub(super) rule: RouteRule,
    /// Counters over all the times it was open.
    pub(super) counters: Arc<Counters>,
    /// What it is doing or waiting for.
    pub(super) state: &'static str,
    /// Where messages come from.
    pub(super) source: Place,
    /// Where they go.
    pub(super) target: Place,
    taken: Arc<TypeSupport>,
    published: Arc<TypeSupport>,
    open: Option<Open>,
    warned: BTreeSet<(Gid, &'static str)>,
}

impl Forwarding {
    /// Loads the types.
    ///
    /// # Errors
    /// A type that cannot be loaded.
    pub(super) fn new(rule: RouteRule) -> Result<Self> {
        let key = || format!("topics.{}.type", rule.from_topic);
        let types = Arc::new(TypeSupport::load(&rule.type_name).with_context(key)?);
        let packed = || -> Result<_> {
            let types = TypeSupport::load(pack::TYPE).with_context(|| {
                format!(
                    "topics.{}.mode: compress and decompress need the message {}, of the package domain_bridge",
                    rule.from_topic,
                    pack::TYPE
                )
            })?;
            Ok(Arc::new(types))
        };
        let (taken, published) = match rule.mode {
            Mode::Normal => (Arc::clone(&types), types),
            Mode::Compress => (types, packed()?),
            Mode::Decompress => (packed()?, types),
        };
        Ok(Self {
            source: (rule.from_domain, rule.from_topic.clone()),
            target: (rule.to_domain, rule.to_topic.clone()),
            rule,
            counters: Arc::default(),
            state: "waiting for a publisher",
            taken,
            published,
            open: None,
            warned: BTreeSet::new(),
        })
    }

    /// What it says in logs.
    pub(super) fn label(&self) -> String {
        let rule = &self.rule;
        format!(
            "{} in {} > {} in {}",
            rule.from_topic, rule.from_domain, rule.to_topic, rule.to_domain
        )
    }

    /// The type that is expected at the source.
    pub(super) fn taken_type(&self) -> &str {
        match self.rule.mode {
            Mode::Decompress => pack::TYPE,
            Mode::Normal | Mode::Compress => &self.rule.type_name,
        }
    }

    /// Whether it forwards.
    pub(super) const fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Whether its thread has begun to stop or never ran; else it is told to.
    pub(super) fn ask_to_stop(&self) {
        if let Some(running) = self.open.as_ref().and_then(|open| open.running.as_ref()) {
            running.ask_to_stop();
        }
    }

    /// The QoS in use, of both ends.
    pub(super) fn describe(&self) -> String {
        self.open
            .as_ref()
            .map_or_else(String::new, |open| policy::describe(&open.choice.publisher))
    }

    /// Whether the source has lost its liveliness.
    fn is_lifeless(&self) -> bool {
        let running = self.open.as_ref().and_then(|open| open.running.as_ref());
        running.is_some_and(Running::is_lifeless)
    }

    /// Closes it and returns its publishers, which readers may still be taking from.
    pub(super) fn close(
        &mut self,
        state: &'static str,
        registry: &mut Registry,
    ) -> Vec<Arc<Publisher>> {
        self.state = state;
        let Some(open) = self.open.take() else {
            return Vec::new();
        };
        for lane in open.lanes.values() {
            registry.remove_own(&lane.gid());
        }
        drop(open.running);
        tracing::info!(route = self.label(), state, "route is closed");
        open.lanes.into_values().collect()
    }

    /// Opens what is missing of the publishers, so that they can be announced before a message leaves by them.
    ///
    /// # Errors
    /// What rcl said.
    pub(super) fn prepare(
        &mut self,
        choice: Choice,
        verdicts: BTreeMap<Gid, Verdict>,
        readers: &[Endpoint],
        to: &Arc<Domain>,
        registry: &mut Registry,
    ) -> Result<()> {
        let stays = |open: &Open| policy::can_stay(&open.choice, &choice, readers);
        if self.open.as_ref().is_some_and(|open| !stays(open)) {
            drop(self.close("changing its QoS", registry));
        }
        let wanted = self.wanted_lanes(&choice, &verdicts);
        let open = self.open.get_or_insert_with(|| Open {
            choice,
            lanes: BTreeMap::new(),
            verdicts: BTreeMap::new(),
            shape: Shape::default(),
            running: None,
        });
        open.verdicts = verdicts;
        let (kept, gone) = std::mem::take(&mut open.lanes)
            .into_iter()
            .partition::<BTreeMap<_, _>, _>(|(key, _)| wanted.contains(key));
        open.lanes = kept;
        gone.values()
            .for_each(|lane| registry.remove_own(&lane.gid()));
        for key in wanted {
            if open.lanes.contains_key(&key) {
                continue;
            }
            let qos = &open.choice.publisher;
            let lane = Publisher::open(to, &self.rule.to_topic, &self.published, qos)?;
            registry.add_own(lane.gid(), self.target.clone(), key.origins.clone());
            open.lanes.insert(key, Arc::new(lane));
        }
        Ok(())
    }

    /// The lanes that the verdicts name, and one for what the source's own publishers say, so that readers find it
    /// before the first message; none while the source has lost its liveliness.
    fn wanted_lanes(
        &self,
        choice: &Choice,
        verdicts: &BTreeMap<Gid, Verdict>,
    ) -> BTreeSet<LaneKey> {
        if self.is_lifeless() {
            return BTreeSet::new();
        }
        let named = verdicts.values().filter_map(|verdict| match verdict {
            Verdict::Forward(key) => Some(key.clone()),
            Verdict::Circles | Verdict::Unannounced => None,
        });
        let mut wanted: BTreeSet<_> = named.collect();
        if !choice.is_cached() || wanted.iter().any(|key| key.source.is_none()) {
            wanted.insert(self.native());
        }
        wanted
    }

    /// The lane for messages that have been nowhere else.
    fn native(&self) -> LaneKey {
        LaneKey {
            origins: Origins::from([self.source.clone()]),
            source: None,
        }
    }

    /// Lets messages flow by what was prepared.
    ///
    /// # Errors
    /// What rcl said, or the thread cannot be made.
    pub(super) fn commit(
        &mut self,
        from: &Arc<Domain>,
        events: &mpsc::SyncSender<Event>,
    ) -> Result<()> {
        let (label, native) = (self.label(), self.native());
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        let keys: Vec<_> = open.lanes.keys().cloned().collect();
        let place = |key: &LaneKey| keys.binary_search(key).ok();
        let ways = open.verdicts.iter().filter_map(|(gid, verdict)| {
            Some((
                *gid,
                match verdict {
                    Verdict::Forward(key) => Way::Lane(place(key)?),
                    Verdict::Circles => Way::Circles,
                    Verdict::Unannounced => return None,
                },
            ))
        });
        let shape: Shape = (keys.clone(), ways.collect());
        if open.running.is_some() && shape == open.shape {
            return Ok(());
        }
        let plan = Plan {
            lanes: open.lanes.values().map(Arc::clone).collect(),
            ways: shape.1.clone(),
            strangers: place(&native),
        };
        open.shape = shape;
        self.state = if plan.lanes.is_empty() {
            "the source is not alive"
        } else {
            "up"
        };
        if let Some(running) = &open.running {
            running.install(plan);
            return Ok(());
        }
        let choice = open.choice;
        let (qos, watch) = (&choice.subscription, choice.watches_liveliness());
        let subscription =
            Subscription::open(from, &self.rule.from_topic, &self.taken, qos, watch)?;
        let setup = Setup {
            label: label.clone(),
            choice,
            counters: Arc::clone(&self.counters),
            events: events.clone(),
        };
        open.running = Some(Running::start(subscription, &self.rule, setup, plan)?);
        tracing::info!(
            route = label,
            qos = policy::describe(&choice.publisher),
            "route is up"
        );
        Ok(())
    }

    /// Warns once of every reader that cannot hear what the route offers, naming the policy.
    pub(super) fn warn_of_deaf(&mut self, readers: &[Endpoint]) {
        let Some(open) = &self.open else { return };
        for reader in readers {
            let Some(policy) = policy::mismatch(&open.choice.publisher, &reader.qos) else {
                continue;
            };
            if self.warned.insert((reader.gid, policy)) {
                tracing::warn!(
                    topic = self.rule.to_topic,
                    domain = self.rule.to_domain,
                    reader = reader.node,
                    policy,
                    asks = policy::describe(&reader.qos),
                    offered = policy::describe(&open.choice.publisher),
                    "incompatible QoS: the reader hears nothing"
                );
            }
        }
    }

    /// Warns once of every publisher of another type.
    pub(super) fn warn_of_type(&mut self, stranger: &Endpoint) {
        if self.warned.insert((stranger.gid, "type")) {
            tracing::warn!(
                topic = self.rule.from_topic,
                domain = self.rule.from_domain,
                publisher = stranger.node,
                has = stranger.type_name,
                expected = self.taken_type(),
                "another type: the publisher is not heard"
            );
        }
    }
}
