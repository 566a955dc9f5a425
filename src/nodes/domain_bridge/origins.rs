//! Where the messages of a publisher have been before, so that no chain of bridges leads them in a circle. Pure.
//!
//! A place is a topic in a domain. Each publisher a bridge opens carries messages of one history only, and every
//! bridge announces the histories of its publishers on a hidden topic of each domain, keyed by the publisher's
//! identity. A route never forwards to a place that a message has come through.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::rcl_raw::Gid;

/// The topic that bridges announce themselves on; hidden, as it begins with an underscore.
pub(super) const TOPIC: &str = "/_domain_bridge/origins";
/// Longest announcement that is read, bytes.
const LONGEST: usize = 4 << 20;

/// A topic, or service, in a domain.
pub(super) type Place = (usize, String);
/// The places that messages have come through.
pub(super) type Origins = BTreeSet<Place>;

/// One publisher of a bridge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Lane {
    gid: String,
    topic: String,
    origins: Origins,
}

/// A service that a bridge offers for a server elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Proxy {
    name: String,
    origins: Origins,
}

/// What a bridge announces in a domain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Announcement {
    version: u32,
    lanes: Vec<Lane>,
    services: Vec<Proxy>,
}

/// A publisher of this process.
#[derive(Clone, Debug)]
struct Own {
    place: Place,
    origins: Origins,
}

/// What is known about the publishers of this and other bridges.
#[derive(Debug, Default)]
pub(super) struct Registry {
    own: BTreeMap<Gid, Own>,
    own_services: BTreeMap<Place, Origins>,
    foreign: BTreeMap<(usize, Gid), Announcement>,
    histories: BTreeMap<Gid, Origins>,
}

impl Registry {
    /// A publisher of this process, at `place`.
    pub(super) fn add_own(&mut self, gid: Gid, place: Place, origins: Origins) {
        self.own.insert(gid, Own { place, origins });
    }

    /// A publisher of this process is gone.
    pub(super) fn remove_own(&mut self, gid: &Gid) {
        self.own.remove(gid);
    }

    /// The services this process offers for others.
    pub(super) fn set_own_services(&mut self, services: BTreeMap<Place, Origins>) {
        self.own_services = services;
    }

    /// What this process announces in a domain.
    pub(super) fn announcement(&self, domain: usize) -> String {
        let here = self.own.iter().filter(|(_, own)| own.place.0 == domain);
        let lanes = here.map(|(gid, own)| Lane {
            gid: gid.to_string(),
            topic: own.place.1.clone(),
            origins: own.origins.clone(),
        });
        let services = self
            .own_services
            .iter()
            .filter(|((at, _), _)| *at == domain);
        let services = services.map(|((_, name), origins)| Proxy {
            name: name.clone(),
            origins: origins.clone(),
        });
        let whole = Announcement {
            version: 1,
            lanes: lanes.collect(),
            services: services.collect(),
        };
        serde_json::to_string(&whole).unwrap_or_default()
    }

    /// Takes in what the bridge behind publisher `from` announced in a domain. True if it is news.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub(super) fn handle_announcement(
        &mut self,
        domain: usize,
        from: Gid,
        text: &str,
    ) -> Result<bool, String> {
        if text.len() > LONGEST {
            return Err(format!("it has {} bytes; allowed: {LONGEST}", text.len()));
        }
        let told: Announcement = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if told.version != 1 {
            return Err(format!("version {} is unknown; known: 1", told.version));
        }
        let news = self.foreign.insert((domain, from), told.clone()) != Some(told);
        self.index();
        Ok(news)
    }

    /// Forgets the bridges of a domain whose announcing publishers are gone.
    pub(super) fn keep_announcers(&mut self, domain: usize, alive: &BTreeSet<Gid>) {
        let before = self.foreign.len();
        self.foreign
            .retain(|(at, gid), _| *at != domain || alive.contains(gid));
        if self.foreign.len() != before {
            self.index();
        }
    }

    fn index(&mut self) {
        let lanes = self.foreign.values().flat_map(|told| &told.lanes);
        let known = lanes.filter_map(|lane| Some((Gid::parse(&lane.gid)?, lane.origins.clone())));
        self.histories = known.collect();
    }

    /// Where a publisher's messages have been; `None` for one that no bridge has announced.
    pub(super) fn of(&self, gid: &Gid) -> Option<&Origins> {
        let own = self.own.get(gid).map(|own| &own.origins);
        own.or_else(|| self.histories.get(gid))
    }

    /// Whether another bridge publishes a topic of a domain with messages that have been at `target`. For a
    /// middleware that does not tell the publisher of a message by the identity that the graph shows.
    pub(super) fn leads_back(&self, source: &Place, target: &Place) -> bool {
        let here = self.foreign.iter().filter(|((at, _), _)| *at == source.0);
        here.flat_map(|(_, told)| &told.lanes)
            .any(|lane| lane.topic == source.1 && lane.origins.contains(target))
    }

    /// Where the calls of a service that a bridge offers at `place` end; `None` if no bridge has announced it.
    pub(super) fn of_service(&self, place: &Place) -> Option<Origins> {
        let here = self.foreign.iter().filter(|((at, _), _)| *at == place.0);
        let mut proxies = here.flat_map(|(_, told)| &told.services);
        let foreign = proxies.find(|proxy| proxy.name == place.1);
        let own = self.own_services.get(place);
        own.or_else(|| foreign.map(|proxy| &proxy.origins)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(domain: usize) -> Place {
        (domain, "/chatter".into())
    }

    #[test]
    fn an_announcement_tells_another_bridge_where_messages_have_been() {
        let mut here = Registry::default();
        here.add_own(Gid::of(1), place(2), Origins::from([place(1)]));
        here.add_own(Gid::of(2), place(3), Origins::from([place(2)]));
        let mut there = Registry::default();
        let text = here.announcement(2);
        assert_eq!(there.handle_announcement(2, Gid::of(9), &text), Ok(true));
        assert_eq!(there.handle_announcement(2, Gid::of(9), &text), Ok(false));
        assert_eq!(there.of(&Gid::of(1)), Some(&Origins::from([place(1)])));
        assert_eq!(there.of(&Gid::of(2)), None, "announced in another domain");
        assert!(there.leads_back(&place(2), &place(1)));
        assert!(!there.leads_back(&place(2), &place(3)) && !there.leads_back(&place(3), &place(1)));
    }

    #[test]
    fn a_bridge_that_is_gone_is_forgotten() {
        let mut here = Registry::default();
        here.add_own(Gid::of(1), place(2), Origins::from([place(1)]));
        let mut there = Registry::default();
        there
            .handle_announcement(2, Gid::of(9), &here.announcement(2))
            .unwrap();
        there.keep_announcers(3, &BTreeSet::new());
        assert!(there.of(&Gid::of(1)).is_some());
        there.keep_announcers(2, &BTreeSet::new());
        assert!(there.of(&Gid::of(1)).is_none());
    }

    #[test]
    fn services_are_announced_too() {
        let mut here = Registry::default();
        here.set_own_services(BTreeMap::from([(
            (2, "/add".into()),
            Origins::from([(1, "/add".into())]),
        )]));
        let mut there = Registry::default();
        there
            .handle_announcement(2, Gid::of(9), &here.announcement(2))
            .unwrap();
        assert_eq!(
            there.of_service(&(2, "/add".into())),
            here.of_service(&(2, "/add".into()))
        );
        assert_eq!(
            there.of_service(&(2, "/add".into())),
            Some(Origins::from([(1, "/add".into())]))
        );
        assert_eq!(there.of_service(&(3, "/add".into())), None);
    }

    #[test]
    fn rubbish_is_refused_and_changes_nothing() {
        let mut registry = Registry::default();
        for bad in [
            "",
            "{}",
            "[1]",
            "{\"version\":2,\"lanes\":[],\"services\":[]}",
        ] {
            assert!(
                registry.handle_announcement(1, Gid::of(1), bad).is_err(),
                "{bad}"
            );
        }
        assert!(registry.foreign.is_empty());
    }
}
