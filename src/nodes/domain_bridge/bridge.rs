//! The whole bridge: domains, routes and services, and what is done when the graph of a domain changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::rcl_raw::Gid;

use super::Event;
use super::config::{RouteRule, Rules, WildcardRule};
use super::diagnostics::{self, Status};
use super::forwarding::Forwarding;
use super::origins::Registry;
use super::services::Proxy;
use super::site::Site;

/// How long readers may take to get what was published before a route's publishers are closed.
const FLUSH: Duration = Duration::from_millis(500);

/// What holds for the whole bridge.
#[derive(Clone, Debug)]
pub(super) struct Options {
    /// Arguments for rcl.
    pub(super) args: Vec<String>,
    /// Whether to publish diagnostics.
    pub(super) diagnostics: bool,
    /// Whether a route is closed when its source has no publisher any more.
    pub(super) auto_remove: bool,
}

/// The whole bridge.
#[derive(Debug)]
pub(super) struct Bridge {
    pub(super) options: Options,
    name: String,
    pub(super) sites: BTreeMap<usize, Site>,
    pub(super) routes: Vec<Forwarding>,
    pub(super) services: Vec<Proxy>,
    pub(super) wildcards: Vec<WildcardRule>,
    pub(super) refused: BTreeSet<(usize, String)>,
    pub(super) registry: Registry,
    pub(super) first_seen: BTreeMap<Gid, Instant>,
    events: mpsc::SyncSender<Event>,
    ready: bool,
    /// Another look is due though nothing changes: something waits for its time.
    pub(super) unsettled: bool,
}

impl Bridge {
    /// Loads every type, then opens every domain.
    ///
    /// # Errors
    /// A type that cannot be loaded, or what rcl said.
    pub(super) fn open(
        rules: &Rules,
        options: Options,
        events: mpsc::SyncSender<Event>,
    ) -> Result<Self> {
        let routes = rules.routes.iter().cloned().map(Forwarding::new);
        let mut bridge = Self {
            options,
            name: rules.name.clone(),
            sites: BTreeMap::new(),
            routes: routes.collect::<Result<_>>()?,
            services: Vec::new(),
            wildcards: rules.wildcards.clone(),
            refused: BTreeSet::new(),
            registry: Registry::default(),
            first_seen: BTreeMap::new(),
            events,
            ready: false,
            unsettled: true,
        };
        bridge.enter(rules)?;
        Ok(bridge)
    }

    /// Opens the domains and service clients that the rules need and that are not there yet.
    fn enter(&mut self, rules: &Rules) -> Result<()> {
        let Options {
            args, diagnostics, ..
        } = &self.options;
        for id in rules.domains() {
            if !self.sites.contains_key(&id) {
                let site = Site::open(id, &self.name, args, *diagnostics, &self.events)?;
                self.sites.insert(id, site);
            }
        }
        for rule in &rules.services {
            if self.services.iter().all(|proxy| proxy.rule != *rule) {
                let (from, to) = (&self.sites[&rule.from_domain], &self.sites[&rule.to_domain]);
                let opened = Proxy::open(rule, &from.domain, &to.domain);
                self.services
                    .push(opened.with_context(|| format!("services.{}", rule.from_name))?);
            }
        }
        Ok(())
    }

    /// Goes over to other rules: what is in both goes on undisturbed.
    ///
    /// # Errors
    /// A type that cannot be loaded, or what rcl said; the routes stay as they were then.
    pub(super) fn change(&mut self, rules: &Rules) -> Result<()> {
        let known = |rule: &RouteRule| self.routes.iter().any(|route| route.rule == *rule);
        let fresh = rules.routes.iter().filter(|rule| !known(rule)).cloned();
        let fresh: Vec<_> = fresh.map(Forwarding::new).collect::<Result<_>>()?;
        self.enter(rules)?;
        let registry = &mut self.registry;
        self.routes.retain_mut(|route| {
            let stays = rules.routes.contains(&route.rule);
            if !stays {
                drop(route.close("no rule", registry));
            }
            stays
        });
        self.services
            .retain(|proxy| rules.services.contains(&proxy.rule));
        self.routes.extend(fresh);
        self.wildcards.clone_from(&rules.wildcards);
        self.refused.clear();
        self.ready = false;
        tracing::info!(
            routes = self.routes.len(),
            services = self.services.len(),
            "rules are changed"
        );
        Ok(())
    }

    /// Whether another look is due though nothing changes.
    pub(super) const fn is_unsettled(&self) -> bool {
        self.unsettled
    }

    /// Takes in what another bridge announced; true if it is news.
    pub(super) fn handle_announcement(&mut self, domain: usize, from: Gid, text: &str) -> bool {
        match self.registry.handle_announcement(domain, from, text) {
            Ok(news) => news,
            Err(why) => {
                tracing::warn!(domain, why, "another bridge's announcement cannot be read");
                false
            }
        }
    }

    /// Looks at every domain: opens and closes routes and services, and tells the other bridges. True when the
    /// bridge has just become ready.
    pub(super) fn update(&mut self, now: Instant) -> bool {
        self.unsettled = false;
        for (id, site) in &mut self.sites {
            warned(
                site.refresh(*id, &mut self.registry),
                "cannot look for other bridges",
            );
        }
        self.follow_wildcards();
        for index in 0..self.routes.len() {
            if let Err(error) = self.prepare(index, now) {
                self.unsettled = true;
                let route = self.routes[index].label();
                tracing::warn!(route, %error, "cannot open; will try again");
            }
        }
        self.update_services();
        for (id, site) in &mut self.sites {
            warned(
                site.announce(*id, &self.registry),
                "cannot announce the routes",
            );
        }
        for route in &mut self.routes {
            let from = &self.sites[&route.rule.from_domain].domain;
            if let Err(error) = route.commit(from, &self.events) {
                self.unsettled = true;
                tracing::warn!(route = route.label(), %error, "cannot start; will try again");
            }
        }
        self.becomes_ready()
    }

    fn becomes_ready(&mut self) -> bool {
        let routes = self
            .routes
            .iter()
            .all(|route| route.is_open() || !route.rule.mandatory);
        let services = self
            .services
            .iter()
            .all(|proxy| proxy.is_up() || !proxy.rule.mandatory);
        let now = routes && services && !self.ready;
        self.ready |= now;
        now
    }

    /// Publishes the state of every route and service in the domains at its ends.
    pub(super) fn diagnose(&self) {
        for (id, site) in &self.sites {
            let routes = self
                .routes
                .iter()
                .filter(|route| route.rule.from_domain == *id || route.rule.to_domain == *id);
            let services = self
                .services
                .iter()
                .filter(|proxy| proxy.rule.from_domain == *id || proxy.rule.to_domain == *id);
            let statuses: Vec<_> = routes
                .map(status)
                .chain(services.map(service_status))
                .collect();
            warned(site.diagnose(&statuses), "cannot publish diagnostics");
        }
    }

    /// Forwards what has arrived, waits for readers to have it, and says what every route did.
    pub(super) fn close_all(mut self) {
        self.routes.iter().for_each(Forwarding::ask_to_stop);
        let mut lanes = Vec::new();
        for route in &mut self.routes {
            lanes.extend(route.close("stopped", &mut self.registry));
        }
        let end = Instant::now() + FLUSH;
        let late = lanes
            .iter()
            .filter(|lane| !lane.flush(end.saturating_duration_since(Instant::now())));
        let late = late.count();
        if late > 0 {
            tracing::info!(
                publishers = late,
                "readers did not confirm everything in time"
            );
        }
        for route in &self.routes {
            let figures = diagnostics::figures(&route.counters, "");
            let shown: Vec<_> = figures
                .iter()
                .filter(|(_, value)| value != "0" && !value.is_empty())
                .map(|(name, value)| format!("{name} {value}"))
                .collect();
            tracing::info!(
                route = route.label(),
                figures = shown.join(", "),
                "route ends"
            );
        }
    }
}

fn status(route: &Forwarding) -> Status {
    Status {
        name: route.label(),
        ok: route.is_open() || !route.rule.mandatory || route.rule.lazy,
        message: route.state.into(),
        values: diagnostics::figures(&route.counters, &route.describe()),
    }
}

fn service_status(proxy: &Proxy) -> Status {
    let values = proxy.counters.by_name();
    Status {
        name: proxy.label(),
        ok: proxy.is_up() || !proxy.rule.mandatory,
        message: if proxy.is_up() {
            "up"
        } else {
            "waiting for a server"
        }
        .into(),
        values: values
            .map(|(name, count)| (name.to_owned(), count.to_string()))
            .into(),
    }
}

fn warned(result: Result<()>, what: &str) {
    if let Err(error) = result {
        tracing::warn!(%error, "{what}");
    }
}
