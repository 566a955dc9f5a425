//! What becomes of each route when a graph has changed: which publishers it hears, with what QoS, or why it waits.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::rcl_raw::{Endpoint, Gid};

use super::bridge::Bridge;
use super::config::{RouteRule, refuse_cycles};
use super::forwarding::Forwarding;
use super::plan::{self, Ends, Verdict};
use super::policy;
use super::site::{Site, node_of};

/// How long the publishers of another bridge may stay unannounced; then they are taken for ordinary ones.
const ANNOUNCING: Duration = Duration::from_secs(1);
/// Most routes that wildcards may make.
const MOST: usize = 512;
/// What rmw calls the node of an endpoint whose node it does not know.
const NO_NAME: &str = "_NODE_NAME_UNKNOWN_";
/// Most publishers that are remembered as seen first at some time.
const REMEMBERED: usize = 4096;

/// What the graph shows of both ends of a route.
struct View {
    publishers: Vec<Endpoint>,
    strangers: Vec<Endpoint>,
    readers: Vec<Endpoint>,
}

impl Bridge {
    /// Makes routes for the topics that have come and that a wildcard admits.
    pub(super) fn follow_wildcards(&mut self) {
        for wildcard in self.wildcards.clone() {
            let topics = match self.sites[&wildcard.from_domain].domain.topics() {
                Ok(topics) => topics,
                Err(error) => {
                    tracing::warn!(%error, "cannot list topics");
                    continue;
                }
            };
            for (topic, type_name) in topics.iter().filter(|(topic, _)| wildcard.admits(topic)) {
                self.add_wild(&wildcard.rule(topic, type_name));
            }
        }
    }

    fn add_wild(&mut self, rule: &RouteRule) {
        let same = |route: &Forwarding| {
            route.rule.from_topic == rule.from_topic
                && (route.rule.from_domain, route.rule.to_domain)
                    == (rule.from_domain, rule.to_domain)
        };
        let key = (rule.from_domain, rule.from_topic.clone());
        if self.routes.iter().any(same) || self.refused.contains(&key) {
            return;
        }
        let has_publisher = self.sites[&rule.from_domain]
            .domain
            .publishers(&rule.from_topic);
        if !has_publisher.is_ok_and(|found| !found.is_empty()) {
            return;
        }
        let mut all: Vec<_> = self.routes.iter().map(|route| route.rule.clone()).collect();
        all.push(rule.clone());
        let made = if self.routes.len() >= MOST {
            Err(anyhow::anyhow!("there are {MOST} routes already"))
        } else if let Err((_, why)) = refuse_cycles(&all) {
            Err(anyhow::anyhow!(why))
        } else {
            Forwarding::new(rule.clone())
        };
        match made {
            Ok(route) => self.routes.push(route),
            Err(error) => {
                tracing::warn!(topic = rule.from_topic, domain = rule.from_domain, %error, "a wildcard's topic is left out");
                self.refused.insert(key);
            }
        }
    }

    fn view(&self, route: &Forwarding) -> Result<View> {
        let rule = &route.rule;
        let found = self.sites[&rule.from_domain]
            .domain
            .publishers(&rule.from_topic)?;
        let (publishers, strangers) = found
            .into_iter()
            .partition(|publisher| publisher.type_name == route.taken_type());
        let readers = self.sites[&rule.to_domain]
            .domain
            .subscriptions(&rule.to_topic)?;
        Ok(View {
            publishers,
            strangers,
            readers,
        })
    }

    /// Decides about a route and opens its publishers or closes it.
    pub(super) fn prepare(&mut self, index: usize, now: Instant) -> Result<()> {
        let view = self.view(&self.routes[index])?;
        view.strangers
            .iter()
            .for_each(|stranger| self.routes[index].warn_of_type(stranger));
        let verdicts = self.judge(index, &view, now)?;
        let listens =
            |publisher: &&Endpoint| verdicts.get(&publisher.gid) != Some(&Verdict::Circles);
        let heard: Vec<_> = view.publishers.iter().filter(listens).cloned().collect();
        let route = &self.routes[index];
        if heard.is_empty() {
            if !route.is_open() || self.options.auto_remove {
                self.close(index, "waiting for a publisher");
            }
            return Ok(());
        }
        let from = &self.sites[&route.rule.from_domain];
        if !from.comparable && self.registry.leads_back(&route.source, &route.target) {
            self.close(index, "refused: it would circle through another bridge");
            return Ok(());
        }
        if route.rule.lazy && self.demand(index, &view.readers) == 0 {
            self.close(index, "waiting for a reader");
            return Ok(());
        }
        let choice = policy::choose(&route.rule.qos, &heard);
        let mut verdicts = verdicts;
        if choice.is_cached() && from.comparable {
            plan::cache_each(&mut verdicts);
        }
        let to = &self.sites[&route.rule.to_domain];
        let foreign = |reader: &Endpoint| reader.node != to.node;
        let readers: Vec<_> = view.readers.into_iter().filter(foreign).collect();
        // A reader's node may become known a moment after the reader; a warning waits for its name.
        let mut unnamed = false;
        let mut named = |reader: &Endpoint| {
            let seen = *self.first_seen.entry(reader.gid).or_insert(now);
            let told = reader.node != NO_NAME || now - seen >= ANNOUNCING;
            unnamed |= !told;
            told
        };
        let named: Vec<_> = readers
            .iter()
            .filter(|reader| named(reader))
            .cloned()
            .collect();
        self.unsettled |= unnamed;
        let route = &mut self.routes[index];
        route.prepare(choice, verdicts, &readers, &to.domain, &mut self.registry)?;
        route.warn_of_deaf(&named);
        Ok(())
    }

    fn close(&mut self, index: usize, state: &'static str) {
        let route = &mut self.routes[index];
        if route.state != state && !route.is_open() {
            tracing::info!(route = route.label(), state, "route waits");
        }
        drop(route.close(state, &mut self.registry));
    }

    fn judge(&mut self, index: usize, view: &View, now: Instant) -> Result<BTreeMap<Gid, Verdict>> {
        let unannounced = self.unannounced(index, view, now);
        self.unsettled |= !unannounced.is_empty();
        let route = &self.routes[index];
        let ends = Ends {
            source: &route.source,
            target: &route.target,
            publishers: &view.publishers,
            returning: &self.returning(route, view)?,
            unannounced: &unannounced,
        };
        Ok(plan::judge(&ends, &self.registry))
    }

    /// Publishers of bridges that have not announced them, for as long as they may still.
    fn unannounced(&mut self, index: usize, view: &View, now: Instant) -> BTreeSet<Gid> {
        if self.first_seen.len() > REMEMBERED {
            self.first_seen.clear();
        }
        let bridges = &self.sites[&self.routes[index].rule.from_domain].bridges;
        let of_bridges = view.publishers.iter().filter(|publisher| {
            bridges.contains(&node_of(publisher)) && self.registry.of(&publisher.gid).is_none()
        });
        let gids = of_bridges.map(|publisher| publisher.gid);
        gids.filter(|gid| now - *self.first_seen.entry(*gid).or_insert(now) < ANNOUNCING)
            .collect()
    }

    /// Publishers of a bridge that announces nothing, such as ros2/domain_bridge, which reads at our destination: its
    /// nodes are called `<name>_<domain>` and have no parameters.
    fn returning(&self, route: &Forwarding, view: &View) -> Result<BTreeSet<Gid>> {
        let (from, to) = (
            &self.sites[&route.rule.from_domain],
            &self.sites[&route.rule.to_domain],
        );
        let mut found = BTreeSet::new();
        for publisher in &view.publishers {
            let base = publisher
                .node
                .strip_suffix(&format!("_{}", route.rule.from_domain));
            let known = self.registry.of(&publisher.gid).is_some();
            let Some(base) = base.filter(|_| !known && publisher.node != from.node) else {
                continue;
            };
            let twin = format!("{base}_{}", route.rule.to_domain);
            let reads = view
                .readers
                .iter()
                .find(|reader| reader.node == twin && twin != to.node);
            if let Some(reader) = reads
                && !has_parameters(from, publisher)?
                && !has_parameters(to, reader)?
            {
                found.insert(publisher.gid);
            }
        }
        Ok(found)
    }

    /// Readers at a route's destination, without the one of its own way back.
    fn demand(&self, index: usize, readers: &[Endpoint]) -> usize {
        let route = &self.routes[index];
        let back = |other: &&Forwarding| {
            other.is_open() && other.source == route.target && other.target == route.source
        };
        readers
            .len()
            .saturating_sub(self.routes.iter().filter(back).count())
    }
}

fn has_parameters(site: &Site, endpoint: &Endpoint) -> Result<bool> {
    let services = site
        .domain
        .services_of(&endpoint.node, &endpoint.namespace)?;
    Ok(services
        .iter()
        .any(|(name, _)| name.ends_with("/get_parameters")))
}
