//! Which publishers a route listens to, and which publisher of its own each one's messages leave by. Pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::rcl_raw::{Endpoint, Gid};

use super::origins::{Origins, Place, Registry};

/// What tells one publisher of a route from another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LaneKey {
    /// Where its messages have been, the route's own source included.
    pub(super) origins: Origins,
    /// The one publisher it stands for, where each needs its own cache.
    pub(super) source: Option<Gid>,
}

/// What becomes of a publisher's messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// They leave by this lane.
    Forward(LaneKey),
    /// They have been at the destination already.
    Circles,
    /// A bridge's publisher that has not been announced yet: wait.
    Unannounced,
}

/// What is known about the two ends of a route.
#[derive(Debug)]
pub(super) struct Ends<'a> {
    /// Topic and domain of the source.
    pub(super) source: &'a Place,
    /// Topic and domain of the destination.
    pub(super) target: &'a Place,
    /// Publishers at the source.
    pub(super) publishers: &'a [Endpoint],
    /// Publishers, of bridges that announce nothing, that lead back to the destination.
    pub(super) returning: &'a BTreeSet<Gid>,
    /// Publishers of nodes that announce histories but have not announced these.
    pub(super) unannounced: &'a BTreeSet<Gid>,
}

/// The verdict on every publisher at the source.
#[must_use]
pub(super) fn judge(ends: &Ends<'_>, registry: &Registry) -> BTreeMap<Gid, Verdict> {
    let verdict = |publisher: &Endpoint| {
        let before = registry.of(&publisher.gid);
        let circles = before.is_some_and(|origins| origins.contains(ends.target));
        if circles || ends.returning.contains(&publisher.gid) {
            return Verdict::Circles;
        }
        if before.is_none() && ends.unannounced.contains(&publisher.gid) {
            return Verdict::Unannounced;
        }
        let mut origins = before.cloned().unwrap_or_default();
        origins.insert(ends.source.clone());
        Verdict::Forward(LaneKey {
            origins,
            source: None,
        })
    };
    let judged = ends.publishers.iter();
    judged
        .map(|publisher| (publisher.gid, verdict(publisher)))
        .collect()
}

/// Gives every publisher a lane of its own: what a late reader gets then is each one's last samples, whatever the
/// others send, and no more once a publisher is gone.
pub(super) fn cache_each(verdicts: &mut BTreeMap<Gid, Verdict>) {
    for (gid, verdict) in verdicts {
        if let Verdict::Forward(lane) = verdict {
            lane.source = Some(*gid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::policy::tests::publisher;
    use super::*;

    fn place(domain: usize) -> Place {
        (domain, "/chatter".into())
    }

    fn judged(
        registry: &Registry,
        from: usize,
        to: usize,
        gids: &[u8],
        returning: &[u8],
    ) -> BTreeMap<Gid, Verdict> {
        let publishers: Vec<_> = gids.iter().map(|gid| publisher(*gid, 1, 2)).collect();
        let returning = returning.iter().map(|gid| Gid::of(*gid)).collect();
        let ends = Ends {
            source: &place(from),
            target: &place(to),
            publishers: &publishers,
            returning: &returning,
            unannounced: &BTreeSet::new(),
        };
        judge(&ends, registry)
    }

    fn lane(places: &[usize]) -> Verdict {
        Verdict::Forward(LaneKey {
            origins: places.iter().map(|domain| place(*domain)).collect(),
            source: None,
        })
    }

    #[test]
    fn two_opposite_one_way_bridges_do_not_feed_each_other() {
        let mut there = Registry::default();
        there.add_own(Gid::of(7), place(2), Origins::from([place(1)]));
        let mut back = Registry::default();
        back.handle_announcement(2, Gid::of(9), &there.announcement(2))
            .unwrap();
        let verdicts = judged(&back, 2, 1, &[7, 8], &[]);
        assert_eq!(verdicts[&Gid::of(7)], Verdict::Circles);
        assert_eq!(verdicts[&Gid::of(8)], lane(&[2]));
    }

    #[test]
    fn a_ring_of_three_passes_each_message_to_the_two_others() {
        let mut registry = Registry::default();
        // 2 > 3 forwards what is born in 2, and what came from 1, by different publishers.
        registry.add_own(Gid::of(1), place(3), Origins::from([place(2)]));
        registry.add_own(Gid::of(2), place(3), Origins::from([place(1), place(2)]));
        let verdicts = judged(&registry, 3, 1, &[1, 2, 3], &[]);
        assert_eq!(verdicts[&Gid::of(1)], lane(&[2, 3]));
        assert_eq!(verdicts[&Gid::of(2)], Verdict::Circles);
        assert_eq!(verdicts[&Gid::of(3)], lane(&[3]));
    }

    #[test]
    fn a_publisher_seen_to_return_is_skipped_without_an_announcement() {
        let verdicts = judged(&Registry::default(), 2, 1, &[4, 5], &[4]);
        assert_eq!(verdicts[&Gid::of(4)], Verdict::Circles);
        assert_eq!(verdicts[&Gid::of(5)], lane(&[2]));
    }

    #[test]
    fn with_a_cache_each_publisher_has_its_own_lane() {
        let mut verdicts = judged(&Registry::default(), 1, 2, &[4, 5], &[]);
        cache_each(&mut verdicts);
        let lanes: BTreeSet<_> = verdicts.values().map(|v| format!("{v:?}")).collect();
        assert_eq!(lanes.len(), 2);
    }
}
