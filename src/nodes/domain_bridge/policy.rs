//! Which QoS a route uses, from its rule and from the publishers at its source, and which readers it cannot serve.
//! Pure.

use crate::rcl_raw::{Endpoint, Qos};

use super::config::QosRule;

/// Samples kept where the rule does not say; the graph does not tell a remote publisher's depth.
const DEPTH: u32 = 10;
/// Samples of all publishers together that a latching topic's subscription keeps at least: their caches come at once.
const SHARED: u32 = 32;
/// What a message may take in the bridge at most, ns: a deadline offered is later by it, a lifespan shorter.
const RESIDENCE: i64 = 10_000_000;

const KEEP_LAST: i32 = 1;
const KEEP_ALL: i32 = 2;
const RELIABLE: i32 = 1;
const BEST_EFFORT: i32 = 2;
const TRANSIENT_LOCAL: i32 = 1;
const VOLATILE: i32 = 2;
const AUTOMATIC: i32 = 1;
const MANUAL_BY_TOPIC: i32 = 3;

/// The QoS of both ends of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// Of the subscription at the source.
    pub(super) subscription: Qos,
    /// Of the publishers at the destination.
    pub(super) publisher: Qos,
    /// For how long a message is of use from when it was published at the source, ns; `i64::MAX` for ever.
    pub(super) lifespan_ns: i64,
}

impl Choice {
    /// Whether the source's liveliness is watched: it can be lost.
    pub(super) const fn watches_liveliness(&self) -> bool {
        is_finite(self.subscription.lease_ns)
    }

    /// Whether the destination's publishers must be told that they are alive.
    pub(super) const fn asserts_liveliness(&self) -> bool {
        self.publisher.liveliness == MANUAL_BY_TOPIC
    }

    /// Whether late readers get old samples.
    pub(super) const fn is_cached(&self) -> bool {
        self.publisher.durability == TRANSIENT_LOCAL
    }
}

const fn is_finite(ns: i64) -> bool {
    ns > 0 && ns < i64::MAX
}

/// What a message may take in the bridge without harm: a tenth of the time, at most 10 ms.
fn residence(ns: i64) -> i64 {
    (ns / 10).min(RESIDENCE)
}

/// The greatest of the publishers' durations; `i64::MAX` unless all are finite.
fn greatest(publishers: &[Endpoint], of: impl Fn(&Qos) -> i64) -> i64 {
    let finite = |ns: i64| if is_finite(ns) { ns } else { i64::MAX };
    publishers
        .iter()
        .map(|publisher| finite(of(&publisher.qos)))
        .max()
        .unwrap_or(i64::MAX)
}

/// The QoS of both ends: what the rule fixes, and for the rest the strictest that every publisher offers.
#[must_use]
pub(super) fn choose(rule: &QosRule, publishers: &[Endpoint]) -> Choice {
    let all = |offers: fn(&Qos) -> bool| publishers.iter().all(|publisher| offers(&publisher.qos));
    let reliable = rule
        .reliable
        .unwrap_or_else(|| all(|qos| qos.reliability == RELIABLE));
    let transient_local = rule
        .transient_local
        .unwrap_or_else(|| all(|qos| qos.durability == TRANSIENT_LOCAL));
    let manual = !publishers.is_empty() && all(|qos| qos.liveliness == MANUAL_BY_TOPIC);
    let deadline = greatest(publishers, |qos| qos.deadline_ns);
    let lifespan = greatest(publishers, |qos| qos.lifespan_ns);
    let lease = greatest(publishers, |qos| qos.lease_ns);
    let depth = rule.depth.unwrap_or(DEPTH);
    let subscription = Qos {
        history: if rule.keep_all { KEEP_ALL } else { KEEP_LAST },
        depth: if transient_local {
            depth.saturating_mul(publishers.len() as u32).max(SHARED)
        } else {
            depth
        },
        reliability: if reliable { RELIABLE } else { BEST_EFFORT },
        durability: if transient_local {
            TRANSIENT_LOCAL
        } else {
            VOLATILE
        },
        deadline_ns: 0,
        lifespan_ns: 0,
        liveliness: if manual { MANUAL_BY_TOPIC } else { AUTOMATIC },
        lease_ns: if is_finite(lease) { lease } else { 0 },
    };
    let publisher = Qos {
        depth,
        deadline_ns: rule.deadline_ns.unwrap_or_else(|| later(deadline)),
        lifespan_ns: rule.lifespan_ns.unwrap_or_else(|| shorter(lifespan)),
        liveliness: match rule.manual_liveliness.unwrap_or(manual) {
            true => MANUAL_BY_TOPIC,
            false => AUTOMATIC,
        },
        lease_ns: rule.lease_ns.unwrap_or_else(|| later(lease)),
        ..subscription
    };
    Choice {
        subscription,
        publisher,
        lifespan_ns: rule.lifespan_ns.unwrap_or(lifespan),
    }
}

fn later(ns: i64) -> i64 {
    if is_finite(ns) {
        ns.saturating_add(residence(ns))
    } else {
        0
    }
}

fn shorter(ns: i64) -> i64 {
    if is_finite(ns) { ns - residence(ns) } else { 0 }
}

/// Whether a route that runs with `active` can stay when `wanted` would be chosen now: it hears every publisher
/// and no reader at its destination is deaf that would hear otherwise. A stream is never torn down for a compatible
/// newcomer.
#[must_use]
pub(super) fn can_stay(active: &Choice, wanted: &Choice, readers: &[Endpoint]) -> bool {
    let (now, then) = (&active.subscription, &wanted.subscription);
    let unlimited = |ns: i64| if is_finite(ns) { ns } else { i64::MAX };
    let hears_all =
        mismatch(then, now).is_none() && unlimited(now.lease_ns) >= unlimited(then.lease_ns);
    let cures = |reader: &Endpoint| {
        mismatch(&active.publisher, &reader.qos).is_some()
            && mismatch(&wanted.publisher, &reader.qos).is_none()
    };
    hears_all && !readers.iter().any(cures)
}

/// The first policy for which an offer does not meet a request, as DDS matches them.
#[must_use]
pub(super) fn mismatch(offer: &Qos, request: &Qos) -> Option<&'static str> {
    let unlimited = |ns: i64| if is_finite(ns) { ns } else { i64::MAX };
    if offer.reliability == BEST_EFFORT && request.reliability == RELIABLE {
        Some("reliability")
    } else if offer.durability == VOLATILE && request.durability == TRANSIENT_LOCAL {
        Some("durability")
    } else if unlimited(offer.deadline_ns) > unlimited(request.deadline_ns) {
        Some("deadline")
    } else if offer.liveliness != MANUAL_BY_TOPIC && request.liveliness == MANUAL_BY_TOPIC {
        Some("liveliness")
    } else if unlimited(offer.lease_ns) > unlimited(request.lease_ns) {
        Some("liveliness_lease_duration")
    } else {
        None
    }
}

/// One line for logs.
#[must_use]
pub(super) fn describe(qos: &Qos) -> String {
    let reliability = if qos.reliability == RELIABLE {
        "reliable"
    } else {
        "best_effort"
    };
    let durability = if qos.durability == TRANSIENT_LOCAL {
        "transient_local"
    } else {
        "volatile"
    };
    let mut text = format!("{reliability}, {durability}");
    match qos.history {
        KEEP_ALL => text.push_str(", keep_all"),
        KEEP_LAST => text.push_str(&format!(", keep_last {}", qos.depth)),
        // The graph does not tell.
        _ => {}
    }
    if qos.liveliness == MANUAL_BY_TOPIC {
        text.push_str(", manual_by_topic");
    }
    for (name, ns) in [
        ("deadline", qos.deadline_ns),
        ("lifespan", qos.lifespan_ns),
        ("liveliness_lease_duration", qos.lease_ns),
    ] {
        if is_finite(ns) {
            text.push_str(&format!(", {name} {} s", ns as f64 / 1e9));
        }
    }
    text
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::rcl_raw::Gid;

    pub(in super::super) fn publisher(gid: u8, reliability: i32, durability: i32) -> Endpoint {
        Endpoint {
            qos: Qos {
                reliability,
                durability,
                ..choose(&QosRule::default(), &[]).publisher
            },
            gid: Gid::of(gid),
            type_name: "std_msgs/msg/String".into(),
            node: "talker".into(),
            namespace: "/".into(),
        }
    }

    fn with(change: impl FnOnce(&mut Qos)) -> Endpoint {
        let mut publisher = publisher(1, RELIABLE, VOLATILE);
        change(&mut publisher.qos);
        publisher
    }

    fn offered(publishers: &[Endpoint]) -> String {
        describe(&choose(&QosRule::default(), publishers).publisher)
    }

    #[test]
    fn mixed_publishers_get_what_all_of_them_offer() {
        let mixed = [
            publisher(1, RELIABLE, TRANSIENT_LOCAL),
            publisher(2, BEST_EFFORT, VOLATILE),
        ];
        assert_eq!(offered(&mixed), "best_effort, volatile, keep_last 10");
        let strict = [
            publisher(1, RELIABLE, TRANSIENT_LOCAL),
            publisher(2, RELIABLE, TRANSIENT_LOCAL),
        ];
        assert_eq!(offered(&strict), "reliable, transient_local, keep_last 10");
    }

    #[test]
    fn caches_of_many_publishers_come_through_one_subscription() {
        let rule = QosRule {
            depth: Some(10),
            ..QosRule::default()
        };
        let many: Vec<_> = (0..9)
            .map(|gid| publisher(gid, RELIABLE, TRANSIENT_LOCAL))
            .collect();
        let choice = choose(&rule, &many);
        assert_eq!(
            (choice.subscription.depth, choice.publisher.depth),
            (90, 10)
        );
        let choice = choose(&rule, &many[..1]);
        assert_eq!(
            (choice.subscription.depth, choice.publisher.depth),
            (32, 10)
        );
    }

    #[test]
    fn a_rule_wins_over_the_publishers() {
        let rule = QosRule {
            reliable: Some(false),
            depth: Some(3),
            deadline_ns: Some(5_000_000),
            lifespan_ns: Some(i64::MAX),
            ..QosRule::default()
        };
        let source = with(|qos| qos.lifespan_ns = 1_000_000);
        let choice = choose(&rule, &[source]);
        assert_eq!(
            describe(&choice.publisher),
            "best_effort, volatile, keep_last 3, deadline 0.005 s"
        );
        assert_eq!(choice.lifespan_ns, i64::MAX);
    }

    #[test]
    fn deadline_lifespan_and_liveliness_follow_with_the_bridge_s_own_time_allowed_for() {
        let source = with(|qos| {
            qos.deadline_ns = 1_000_000_000;
            qos.lifespan_ns = 50_000_000;
            qos.liveliness = MANUAL_BY_TOPIC;
            qos.lease_ns = 500_000_000;
        });
        assert_eq!(
            offered(std::slice::from_ref(&source)),
            "reliable, volatile, keep_last 10, manual_by_topic, deadline 1.01 s, lifespan 0.045 s, liveliness_lease_duration 0.51 s"
        );
        let choice = choose(&QosRule::default(), std::slice::from_ref(&source));
        assert!(choice.watches_liveliness() && choice.asserts_liveliness());
        assert_eq!(choice.lifespan_ns, 50_000_000);
        // One publisher without any makes all of them infinite.
        assert_eq!(
            offered(&[source, publisher(2, RELIABLE, VOLATILE)]),
            "reliable, volatile, keep_last 10"
        );
    }

    #[test]
    fn only_a_deaf_route_is_opened_again() {
        let of = |endpoint| choose(&QosRule::default(), &[endpoint]);
        let reliable = of(publisher(1, RELIABLE, VOLATILE));
        let best_effort = of(publisher(1, BEST_EFFORT, VOLATILE));
        assert!(!can_stay(&reliable, &best_effort, &[]));
        assert!(can_stay(&best_effort, &reliable, &[]) && can_stay(&reliable, &reliable, &[]));
        let longer = of(with(|qos| qos.lease_ns = 2_000_000_000));
        let short = of(with(|qos| qos.lease_ns = 1_000_000_000));
        assert!(!can_stay(&short, &longer, &[]) && can_stay(&longer, &short, &[]));
    }

    #[test]
    fn a_route_is_opened_again_for_a_reader_that_would_hear_then() {
        let of = |endpoint| choose(&QosRule::default(), &[endpoint]);
        let reliable = of(publisher(1, RELIABLE, VOLATILE));
        let best_effort = of(publisher(1, BEST_EFFORT, VOLATILE));
        let strict = publisher(9, RELIABLE, VOLATILE);
        assert!(!can_stay(
            &best_effort,
            &reliable,
            std::slice::from_ref(&strict)
        ));
        assert!(
            can_stay(&best_effort, &best_effort, &[strict]),
            "it cannot be cured"
        );
    }

    #[test]
    fn every_policy_that_matches_is_compared() {
        let offer = publisher(1, BEST_EFFORT, VOLATILE).qos;
        let found = |change: fn(&mut Qos)| {
            let mut request = offer;
            change(&mut request);
            mismatch(&offer, &request)
        };
        assert_eq!(found(|_| ()), None);
        assert_eq!(found(|qos| qos.reliability = RELIABLE), Some("reliability"));
        assert_eq!(
            found(|qos| qos.durability = TRANSIENT_LOCAL),
            Some("durability")
        );
        assert_eq!(found(|qos| qos.deadline_ns = 5), Some("deadline"));
        assert_eq!(
            found(|qos| qos.liveliness = MANUAL_BY_TOPIC),
            Some("liveliness")
        );
        assert_eq!(
            found(|qos| qos.lease_ns = 5),
            Some("liveliness_lease_duration")
        );
        assert_eq!(found(|qos| qos.lifespan_ns = 5), None);
    }
}
