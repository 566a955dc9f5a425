//! The rules of a domain bridge: ros2/domain_bridge's YAML read as it is, checked, and resolved to routes.
//!
//! Two stages: [`raw::File`] is what was written, [`Rules`] is what the bridge needs. Nothing is opened here.

mod cycles;
mod domain_map;
mod pattern;
mod raw;
mod resolve;
mod values;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use serde_saphyr::DuplicateKeyPolicy;

pub(super) use cycles::refuse_cycles;
pub use domain_map::DomainMap;
pub use pattern::Pattern;

/// What is wrong with a rule file.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {key}: {why}")]
pub struct ConfigError {
    file: String,
    key: String,
    why: String,
}

/// QoS policies that a rule fixes; the others follow the source's publishers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QosRule {
    /// Reliable (`true`) or best effort.
    pub reliable: Option<bool>,
    /// Transient local (`true`) or volatile.
    pub transient_local: Option<bool>,
    /// Keep all instead of the last `depth`.
    pub keep_all: bool,
    /// Samples kept; 10 unless set.
    pub depth: Option<u32>,
    /// Deadline offered, ns, `i64::MAX` for infinite.
    pub deadline_ns: Option<i64>,
    /// Lifespan offered, ns, `i64::MAX` for infinite.
    pub lifespan_ns: Option<i64>,
    /// Manual by topic (`true`) or automatic.
    pub manual_liveliness: Option<bool>,
    /// Liveliness lease duration offered, ns, `i64::MAX` for infinite.
    pub lease_ns: Option<i64>,
}

/// What is done to the bytes on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Nothing.
    #[default]
    Normal,
    /// They are packed into ros2/domain_bridge's `CompressedMsg`.
    Compress,
    /// They are taken out of a `CompressedMsg`.
    Decompress,
}

/// One direction of one topic.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteRule {
    /// Where messages come from.
    pub from_domain: usize,
    /// Where they go.
    pub to_domain: usize,
    /// Fully qualified name at the source.
    pub from_topic: String,
    /// Fully qualified name at the destination.
    pub to_topic: String,
    /// `package/msg/Name`.
    pub type_name: String,
    /// Fixed policies.
    pub qos: QosRule,
    /// Packed, unpacked or as it is.
    pub mode: Mode,
    /// Subscribe only while the destination has a reader.
    pub lazy: bool,
    /// The bridge is ready only when this route is up.
    pub mandatory: bool,
    /// Least time between two messages; others are dropped.
    pub spacing: Option<Duration>,
}

/// One service: its server is in one domain, its clients in another.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceRule {
    /// Where the server is.
    pub from_domain: usize,
    /// Where the clients are.
    pub to_domain: usize,
    /// Fully qualified name of the server's service.
    pub from_name: String,
    /// Fully qualified name that clients call.
    pub to_name: String,
    /// `package/srv/Name`, or `package/action/Name_…` for a part of an action.
    pub type_name: String,
    /// When a call is given up; `None` waits for ever.
    pub timeout: Option<Duration>,
    /// The bridge is ready only when this service is there.
    pub mandatory: bool,
}

/// A rule for topics that may come.
#[derive(Clone, Debug, PartialEq)]
pub struct WildcardRule {
    /// Where messages come from.
    pub from_domain: usize,
    /// Where they go, under the same name.
    pub to_domain: usize,
    allow: Vec<Pattern>,
    deny: Vec<Pattern>,
    qos: QosRule,
    lazy: bool,
    spacing: Option<Duration>,
}

impl WildcardRule {
    /// Whether a topic is allowed and not denied.
    #[must_use]
    pub fn admits(&self, topic: &str) -> bool {
        let any = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(topic));
        any(&self.allow) && !any(&self.deny)
    }

    /// The rule for a topic of this name and type.
    #[must_use]
    pub fn rule(&self, topic: &str, type_name: &str) -> RouteRule {
        RouteRule {
            from_domain: self.from_domain,
            to_domain: self.to_domain,
            from_topic: topic.to_owned(),
            to_topic: topic.to_owned(),
            type_name: type_name.to_owned(),
            qos: self.qos.clone(),
            mode: Mode::Normal,
            lazy: self.lazy,
            mandatory: false,
            spacing: self.spacing,
        }
    }
}

/// Everything a domain bridge is to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// Base of the node names.
    pub name: String,
    /// The routes, in the order of the file, a two-way topic as two.
    pub routes: Vec<RouteRule>,
    /// The services; an action as three of them and two routes.
    pub services: Vec<ServiceRule>,
    /// Rules for topics that may come, a two-way one as two.
    pub wildcards: Vec<WildcardRule>,
}

impl Rules {
    /// Reads and checks a rule file; `lazy` is for topics that do not say.
    ///
    /// # Errors
    /// [`ConfigError`] naming file, key and what is allowed.
    pub fn read(path: &Path, lazy: bool) -> Result<Self, ConfigError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| ConfigError {
            file: file.clone(),
            key: "file".into(),
            why: error.to_string(),
        })?;
        Self::parse(&file, &text, lazy)
    }

    /// Checks the text of a rule file called `file`.
    ///
    /// # Errors
    /// [`ConfigError`] naming file, key and what is allowed.
    pub fn parse(file: &str, text: &str, lazy: bool) -> Result<Self, ConfigError> {
        let failed = |key: &str, why: String| ConfigError {
            file: file.into(),
            key: key.into(),
            why,
        };
        let options = serde_saphyr::options! { duplicate_keys: DuplicateKeyPolicy::PassThrough };
        let raw: raw::File = serde_saphyr::from_str_with_options(text, options)
            .map_err(|error| failed("file", error.to_string()))?;
        resolve::rules(&raw, lazy).map_err(|(key, why)| failed(&key, why))
    }

    /// The domains in use.
    #[must_use]
    pub fn domains(&self) -> BTreeSet<usize> {
        let routes = self.routes.iter().map(|r| [r.from_domain, r.to_domain]);
        let services = self.services.iter().map(|s| [s.from_domain, s.to_domain]);
        let wildcards = self.wildcards.iter().map(|w| [w.from_domain, w.to_domain]);
        routes.chain(services).chain(wildcards).flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Rules, ConfigError> {
        Rules::parse("rules.yaml", text, false)
    }

    #[test]
    fn a_rule_takes_its_domains_from_itself_or_the_top() {
        let rules = parse("from_domain: 2\nto_domain: 3\ntopics:\n  foo:\n    type: std_msgs/msg/String\n    to_domain: 5\n").unwrap();
        assert_eq!(
            (rules.routes[0].from_domain, rules.routes[0].to_domain),
            (2, 5)
        );
        assert_eq!(rules.routes[0].from_topic, "/foo");
        assert_eq!(rules.domains().into_iter().collect::<Vec<_>>(), [2, 5]);
    }

    #[test]
    fn the_same_topic_may_stand_there_twice_for_two_domains() {
        let text = "topics:\n  chatter:\n    type: std_msgs/msg/String\n    from_domain: 1\n    to_domain: 2\n  chatter:\n    type: std_msgs/msg/String\n    from_domain: 1\n    to_domain: 3\n";
        assert_eq!(parse(text).unwrap().routes.len(), 2);
    }

    #[test]
    fn both_ways_with_a_remap_swaps_the_names_on_the_way_back() {
        let text = "from_domain: 1\nto_domain: 2\ntopics: {a: {type: std_msgs/msg/String, remap: b, bidirectional: true}}";
        let rules = parse(text).unwrap();
        let ways: Vec<_> = rules
            .routes
            .iter()
            .map(|r| (r.from_domain, &*r.from_topic, r.to_domain, &*r.to_topic))
            .collect();
        assert_eq!(ways, [(1, "/a", 2, "/b"), (2, "/b", 1, "/a")]);
    }

    #[test]
    fn lease_duration_is_no_lifespan() {
        let text = "from_domain: 1\nto_domain: 2\ntopics: {a: {type: std_msgs/msg/String, qos: {liveliness_lease_duration: 5, lifespan: -1}}}";
        let qos = &parse(text).unwrap().routes[0].qos;
        assert_eq!((qos.lease_ns, qos.lifespan_ns), (Some(5), Some(i64::MAX)));
    }

    #[test]
    fn every_slip_is_refused_naming_file_key_and_what_is_allowed() {
        let topic = |rule: &str| format!("from_domain: 1\nto_domain: 2\ntopics: {{a: {{{rule}}}}}");
        let typed = |rule: &str| topic(&format!("type: std_msgs/msg/String, {rule}"));
        for (text, key, allowed) in [
            (typed("from_domain: 9999"), "topics.a.from_domain", "from 0 to 232"),
            (typed("to_domain: 233"), "topics.a.to_domain", "from 0 to 232"),
            (typed("to_domain: -1"), "topics.a.to_domain", "-1"),
            (typed("to_domain: 5.0"), "topics.a.to_domain", "5.0"),
            (typed("to_domain: five"), "topics.a.to_domain", "\"five\""),
            (typed("to_domain: true"), "topics.a.to_domain", "true"),
            (typed("to_domain: 1"), "topics.a", "feed itself"),
            (topic("remap: b"), "topics.a.type", "missing"),
            (topic("type: String"), "topics.a.type", "package/msg/Name"),
            ("topics: {a: {type: std_msgs/msg/String, to_domain: 1}}".into(), "topics.a.from_domain", "missing"),
            (typed("qos: {depth: 0}"), "topics.a.qos.depth", "from 1 to"),
            (typed("qos: {depth: ten}"), "topics.a.qos.depth", "\"ten\""),
            (typed("qos: {reliability: relaible}"), "topics.a.qos.reliability", "reliable, best_effort"),
            (typed("qos: [reliable]"), "file", "line"),
            (typed("colour: red"), "file", "colour"),
            (typed("remap: 1b"), "topics.a.remap", "beginning with a digit"),
            ("mode: zip\nfrom_domain: 1\nto_domain: 2\ntopics: {a: {type: std_msgs/msg/String}}".into(), "topics.a.mode", "normal, compress, decompress"),
            (typed("rate_limit: 0"), "topics.a.rate_limit", "messages a second"),
            (topic("type: std_srvs/srv/Empty"), "topics.a.type", "package/msg/Name"),
            ("from_domain: 1\nto_domain: 2\ntopics: {fly/_action/status: {type: action_msgs/msg/GoalStatusArray}}".into(), "topics.fly/_action/status", "under actions"),
            ("from_domain: 1\nto_domain: 2\nservices: {s: {type: std_msgs/msg/String}}".into(), "services.s.type", "package/srv/Name"),
            ("from_domain: 1\nto_domain: 2\nservices: {s: {type: std_srvs/srv/Empty, timeout: 0}}".into(), "services.s.timeout", "seconds above 0"),
            ("from_domain: 1\nto_domain: 1\nservices: {s: {type: std_srvs/srv/Empty}}".into(), "services.s", "feed itself"),
            ("from_domain: 1\nto_domain: 2\nactions: {s: {type: std_srvs/srv/Empty}}".into(), "actions.s.type", "package/action/Name"),
            ("from_domain: 1\nto_domain: 2\nwildcards: [{allow: \"/a//b\"}]".into(), "wildcards.0.allow", "* within a token"),
            ("from_domain: 1\nto_domain: 1\nwildcards: [{allow: \"/**\"}]".into(), "wildcards.0", "feed itself"),
            ("topics: {}".into(), "topics", "at least one of topics, services, actions, wildcards"),
            ("name: 1x\ntopics: {}".into(), "name", "letters"),
        ] {
            let error = parse(&text).expect_err(&text).to_string();
            assert!(error.starts_with("rules.yaml: ") && error.contains(key) && error.contains(allowed), "{text}\n{error}");
        }
    }

    #[test]
    fn repeated_and_circular_rules_are_refused() {
        let rule = |from: u8, to: u8| {
            format!(
                "  a:\n    type: std_msgs/msg/String\n    from_domain: {from}\n    to_domain: {to}\n"
            )
        };
        let twice = parse(&format!("topics:\n{}{}", rule(1, 2), rule(1, 2)))
            .unwrap_err()
            .to_string();
        assert!(twice.contains("twice"), "{twice}");
        let circle = parse(&format!(
            "topics:\n{}{}{}",
            rule(1, 2),
            rule(2, 3),
            rule(3, 1)
        ))
        .unwrap_err()
        .to_string();
        assert!(circle.contains("circle"), "{circle}");
        assert!(parse(&format!("topics:\n{}{}", rule(1, 2), rule(2, 1))).is_ok());
    }

    #[test]
    fn a_topic_may_change_its_name_within_a_domain_unless_it_comes_back() {
        let rule = |from: &str, to: &str| {
            format!(
                "  {from}: {{type: std_msgs/msg/String, from_domain: 1, to_domain: 1, remap: {to}}}\n"
            )
        };
        assert!(parse(&format!("topics:\n{}", rule("a", "b"))).is_ok());
        let circle = format!(
            "topics:\n{}{}{}",
            rule("a", "b"),
            rule("b", "c"),
            rule("c", "a")
        );
        assert!(parse(&circle).unwrap_err().to_string().contains("circle"));
    }

    #[test]
    fn an_action_is_three_services_and_two_topics() {
        let rules = parse(
            "from_domain: 1\nto_domain: 2\nactions: {fly: {type: test_msgs/action/Fibonacci, remap: go}}",
        )
        .unwrap();
        let services: Vec<_> = rules
            .services
            .iter()
            .map(|s| (&*s.from_name, &*s.to_name, &*s.type_name))
            .collect();
        assert_eq!(
            services,
            [
                (
                    "/fly/_action/send_goal",
                    "/go/_action/send_goal",
                    "test_msgs/action/Fibonacci_SendGoal"
                ),
                (
                    "/fly/_action/get_result",
                    "/go/_action/get_result",
                    "test_msgs/action/Fibonacci_GetResult"
                ),
                (
                    "/fly/_action/cancel_goal",
                    "/go/_action/cancel_goal",
                    "action_msgs/srv/CancelGoal"
                ),
            ]
        );
        let topics: Vec<_> = rules
            .routes
            .iter()
            .map(|r| (&*r.from_topic, &*r.type_name))
            .collect();
        assert_eq!(
            topics,
            [
                (
                    "/fly/_action/feedback",
                    "test_msgs/action/Fibonacci_FeedbackMessage"
                ),
                ("/fly/_action/status", "action_msgs/msg/GoalStatusArray"),
            ]
        );
    }

    #[test]
    fn a_mode_may_be_common_or_a_topic_s_own() {
        let rules = parse("mode: compress\nfrom_domain: 1\nto_domain: 2\ntopics: {a: {type: std_msgs/msg/String}, b: {type: std_msgs/msg/String, mode: normal, bidirectional: true}}").unwrap();
        let modes: Vec<_> = rules.routes.iter().map(|r| r.mode).collect();
        assert_eq!(modes, [Mode::Compress, Mode::Normal, Mode::Normal]);
    }

    #[test]
    fn wildcards_become_rules_for_the_topics_that_are_allowed_and_not_denied() {
        let rules = parse("wildcards: [{allow: /cf*/**, deny: [/*/raw], from_domain: 1, to_domain: 2, bidirectional: true, rate_limit: 10}]").unwrap();
        let there = &rules.wildcards[0];
        assert!(there.admits("/cf1/pose") && !there.admits("/cf1/raw") && !there.admits("/rosout"));
        let rule = there.rule("/cf1/pose", "geometry_msgs/msg/PoseStamped");
        assert_eq!(
            (rule.from_domain, rule.to_domain, &*rule.to_topic),
            (1, 2, "/cf1/pose")
        );
        assert_eq!(rule.spacing, Some(std::time::Duration::from_millis(100)));
        assert!(!rule.mandatory);
        assert_eq!(
            (rules.wildcards[1].from_domain, rules.wildcards[1].to_domain),
            (2, 1)
        );
        assert_eq!(rules.domains().into_iter().collect::<Vec<_>>(), [1, 2]);
    }
}
