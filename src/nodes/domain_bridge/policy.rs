//! Which QoS a route uses, from its rule and from the publishers at its source. Pure.

use crate::rcl_raw::{Endpoint, Qos};

use super::config::QosRule;

/// Samples kept where the rule does not say; the graph does not tell a remote publisher's depth.
const DEPTH: u32 = 10;

const KEEP_LAST: i32 = 1;
const KEEP_ALL: i32 = 2;
const RELIABLE: i32 = 1;
const BEST_EFFORT: i32 = 2;
const TRANSIENT_LOCAL: i32 = 1;
const VOLATILE: i32 = 2;
const AUTOMATIC: i32 = 1;
const MANUAL_BY_TOPIC: i32 = 3;

/// The QoS of both ends: what the rule fixes, and for the rest the strictest that every publisher offers.
#[must_use]
pub(super) fn choose(rule: &QosRule, publishers: &[Endpoint]) -> Qos {
    let all = |offers: fn(&Qos) -> bool| publishers.iter().all(|publisher| offers(&publisher.qos));
    let reliable = rule
        .reliable
        .unwrap_or_else(|| all(|qos| qos.reliability == RELIABLE));
    let transient_local = rule
        .transient_local
        .unwrap_or_else(|| all(|qos| qos.durability == TRANSIENT_LOCAL));
    Qos {
        history: if rule.keep_all { KEEP_ALL } else { KEEP_LAST },
        depth: rule.depth.unwrap_or(DEPTH),
        reliability: if reliable { RELIABLE } else { BEST_EFFORT },
        durability: if transient_local {
            TRANSIENT_LOCAL
        } else {
            VOLATILE
        },
        deadline_ns: rule.deadline_ns.unwrap_or(0),
        lifespan_ns: rule.lifespan_ns.unwrap_or(0),
        liveliness: if rule.manual_liveliness {
            MANUAL_BY_TOPIC
        } else {
            AUTOMATIC
        },
        lease_ns: rule.lease_ns.unwrap_or(0),
    }
}

/// Whether a route that runs with `active` can stay when `wanted` would be chosen now: it hears every publisher
/// and promises nothing less. A stream is never torn down for a compatible newcomer.
#[must_use]
pub(super) const fn can_stay(active: &Qos, wanted: &Qos) -> bool {
    let hears_all = active.reliability == wanted.reliability || active.reliability == BEST_EFFORT;
    let hears_late = active.durability == wanted.durability || active.durability == VOLATILE;
    hears_all && hears_late
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
    let history = if qos.history == KEEP_ALL {
        "keep_all".into()
    } else {
        format!("keep_last {}", qos.depth)
    };
    format!("{reliability}, {durability}, {history}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rcl_raw::Gid;

    fn publisher(reliability: i32, durability: i32) -> Endpoint {
        let qos = Qos {
            reliability,
            durability,
            ..choose(&QosRule::default(), &[])
        };
        Endpoint {
            qos,
            gid: Gid::default(),
            type_name: "std_msgs/msg/String".into(),
        }
    }

    #[test]
    fn mixed_publishers_get_what_all_of_them_offer() {
        let mixed = [
            publisher(RELIABLE, TRANSIENT_LOCAL),
            publisher(BEST_EFFORT, VOLATILE),
        ];
        assert_eq!(
            describe(&choose(&QosRule::default(), &mixed)),
            "best_effort, volatile, keep_last 10"
        );
        let strict = [
            publisher(RELIABLE, TRANSIENT_LOCAL),
            publisher(RELIABLE, TRANSIENT_LOCAL),
        ];
        assert_eq!(
            describe(&choose(&QosRule::default(), &strict)),
            "reliable, transient_local, keep_last 10"
        );
    }

    #[test]
    fn a_rule_wins_over_the_publishers() {
        let rule = QosRule {
            reliable: Some(false),
            depth: Some(3),
            ..QosRule::default()
        };
        let qos = choose(&rule, &[publisher(RELIABLE, VOLATILE)]);
        assert_eq!(describe(&qos), "best_effort, volatile, keep_last 3");
    }

    #[test]
    fn only_a_deaf_route_is_opened_again() {
        let reliable = choose(&QosRule::default(), &[publisher(RELIABLE, VOLATILE)]);
        let best_effort = choose(&QosRule::default(), &[publisher(BEST_EFFORT, VOLATILE)]);
        assert!(!can_stay(&reliable, &best_effort));
        assert!(can_stay(&best_effort, &reliable) && can_stay(&reliable, &reliable));
    }
}
