//! The rules of a domain bridge: ros2/domain_bridge's YAML read as it is, checked, and resolved to routes.
//!
//! Two stages: [`File`] is what was written, [`Rules`] is what the bridge needs. Nothing is opened here.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_saphyr::DuplicateKeyPolicy;

use crate::ros::domain;

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
    /// Deadline, ns; `None` is the middleware's default.
    pub deadline_ns: Option<i64>,
    /// Lifespan, ns.
    pub lifespan_ns: Option<i64>,
    /// Manual by topic (`true`) or automatic.
    pub manual_liveliness: bool,
    /// Liveliness lease duration, ns.
    pub lease_ns: Option<i64>,
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
}

/// Everything a domain bridge is to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// Base of the node names.
    pub name: String,
    /// The routes, in the order of the file, a two-way topic as two.
    pub routes: Vec<RouteRule>,
}

impl Rules {
    /// Reads and checks a rule file.
    ///
    /// # Errors
    /// [`ConfigError`] naming file, key and what is allowed.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let file = path.display().to_string();
        let failed = |why: String| ConfigError {
            file: file.clone(),
            key: "file".into(),
            why,
        };
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        Self::parse(&file, &text)
    }

    /// Checks the text of a rule file called `file`.
    ///
    /// # Errors
    /// [`ConfigError`] naming file, key and what is allowed.
    pub fn parse(file: &str, text: &str) -> Result<Self, ConfigError> {
        let failed = |key: &str, why: String| ConfigError {
            file: file.into(),
            key: key.into(),
            why,
        };
        let options = serde_saphyr::options! { duplicate_keys: DuplicateKeyPolicy::PassThrough };
        let raw: File = serde_saphyr::from_str_with_options(text, options)
            .map_err(|error| failed("file", error.to_string()))?;
        let name = raw.name.clone().unwrap_or_else(|| "domain_bridge".into());
        if !is_token(&name) {
            return Err(failed(
                "name",
                format!("{name:?} is not allowed; allowed: letters, digits and _"),
            ));
        }
        if raw.topics.0.is_empty() {
            return Err(failed(
                "topics",
                "there is none; allowed: at least one".into(),
            ));
        }
        let mut routes = Vec::new();
        for (topic, rule) in &raw.topics.0 {
            let resolved = resolve(&raw, topic, rule);
            routes.extend(
                resolved.map_err(|(key, why)| failed(&format!("topics.{topic}{key}"), why))?,
            );
        }
        refuse_repeats(&routes).map_err(|(key, why)| failed(&key, why))?;
        Ok(Self { name, routes })
    }

    /// The domains in use.
    #[must_use]
    pub fn domains(&self) -> BTreeSet<usize> {
        self.routes
            .iter()
            .flat_map(|route| [route.from_domain, route.to_domain])
            .collect()
    }
}

/// What went wrong below a topic: the key's tail and the reason.
type Wrong = (String, String);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Option<String>,
    from_domain: Option<Value>,
    to_domain: Option<Value>,
    mode: Option<String>,
    topics: Topics,
}

/// Topics in the order of the file; one may stand there several times, as in ros2/domain_bridge's own example.
#[derive(Debug)]
struct Topics(Vec<(String, Topic)>);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Topic {
    r#type: Option<String>,
    from_domain: Option<Value>,
    to_domain: Option<Value>,
    remap: Option<String>,
    #[serde(default)]
    bidirectional: bool,
    #[serde(default)]
    reversed: bool,
    qos: Option<RawQos>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawQos {
    reliability: Option<Value>,
    durability: Option<Value>,
    history: Option<Value>,
    depth: Option<Value>,
    deadline: Option<Value>,
    lifespan: Option<Value>,
    liveliness: Option<Value>,
    liveliness_lease_duration: Option<Value>,
}

impl<'de> Deserialize<'de> for Topics {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Topics;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of topics")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Topics, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Topics(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

fn is_token(name: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(legal) && name.starts_with(|c: char| !c.is_ascii_digit())
}

/// The topic's name against the root, checked as ROS checks it.
fn topic_name(name: &str) -> Result<String, Wrong> {
    let tokens = name.strip_prefix('/').unwrap_or(name);
    if tokens.split('/').all(is_token) && !tokens.is_empty() {
        return Ok(format!("/{tokens}"));
    }
    let why = format!(
        "{name:?} is no topic name; allowed: tokens of letters, digits and _ joined by /, none beginning with a digit"
    );
    Err((String::new(), why))
}

fn resolve(file: &File, topic: &str, rule: &Topic) -> Result<Vec<RouteRule>, Wrong> {
    if let Some(mode) = file.mode.as_deref().filter(|mode| *mode != "normal") {
        return Err((
            " (mode)".into(),
            format!("{mode:?} is not supported; allowed: normal"),
        ));
    }
    let type_name = rule
        .r#type
        .clone()
        .ok_or_else(|| (".type".into(), "is missing".to_owned()))?;
    if type_name.split('/').count() != 3 || !type_name.split('/').all(is_token) {
        return Err((
            ".type".into(),
            format!("{type_name:?} is not allowed; allowed: package/msg/Name"),
        ));
    }
    let from = domain_of(
        "from_domain",
        rule.from_domain.as_ref(),
        file.from_domain.as_ref(),
    )?;
    let to = domain_of(
        "to_domain",
        rule.to_domain.as_ref(),
        file.to_domain.as_ref(),
    )?;
    let from_topic = topic_name(topic)?;
    let to_topic = match &rule.remap {
        Some(name) => topic_name(name).map_err(|(_, why)| (".remap".to_owned(), why))?,
        None => from_topic.clone(),
    };
    if from == to && from_topic == to_topic {
        let why = format!(
            "from_domain and to_domain are both {from} and the topic keeps its name: it would feed itself; allowed: two domains, or a remap"
        );
        return Err((String::new(), why));
    }
    let qos = rule
        .qos
        .as_ref()
        .map(RawQos::resolve)
        .transpose()?
        .unwrap_or_default();
    let there = RouteRule {
        from_domain: from,
        to_domain: to,
        from_topic,
        to_topic,
        type_name,
        qos,
    };
    let back = there.reversed();
    Ok(match (rule.bidirectional, rule.reversed) {
        (true, _) => vec![there, back],
        (false, true) => vec![back],
        (false, false) => vec![there],
    })
}

impl RouteRule {
    /// The way back: domains and names swapped.
    fn reversed(&self) -> Self {
        Self {
            from_domain: self.to_domain,
            to_domain: self.from_domain,
            from_topic: self.to_topic.clone(),
            to_topic: self.from_topic.clone(),
            ..self.clone()
        }
    }
}

fn domain_of(key: &str, own: Option<&Value>, common: Option<&Value>) -> Result<usize, Wrong> {
    let value = own
        .or(common)
        .ok_or_else(|| (format!(".{key}"), "is missing".to_owned()))?;
    let id = value.as_i64().filter(|id| (0..=domain::MAX).contains(id));
    let refused = || {
        let why = format!(
            "{value} is not allowed; allowed: a whole number from 0 to {}",
            domain::MAX
        );
        (format!(".{key}"), why)
    };
    id.map(|id| id as usize).ok_or_else(refused)
}

impl RawQos {
    fn resolve(&self) -> Result<QosRule, Wrong> {
        let reliability = word(
            "reliability",
            self.reliability.as_ref(),
            &["reliable", "best_effort"],
        )?;
        let durability = word(
            "durability",
            self.durability.as_ref(),
            &["transient_local", "volatile"],
        )?;
        let history = word("history", self.history.as_ref(), &["keep_all", "keep_last"])?;
        let liveliness = word(
            "liveliness",
            self.liveliness.as_ref(),
            &["manual_by_topic", "automatic"],
        )?;
        Ok(QosRule {
            reliable: reliability.map(|first| first == 0),
            transient_local: durability.map(|first| first == 0),
            keep_all: history == Some(0),
            depth: self.depth.as_ref().map(depth).transpose()?,
            deadline_ns: duration("deadline", self.deadline.as_ref())?,
            lifespan_ns: duration("lifespan", self.lifespan.as_ref())?,
            manual_liveliness: liveliness == Some(0),
            lease_ns: duration(
                "liveliness_lease_duration",
                self.liveliness_lease_duration.as_ref(),
            )?,
        })
    }
}

/// The place of the value among the allowed words.
fn word(key: &str, value: Option<&Value>, allowed: &[&str]) -> Result<Option<usize>, Wrong> {
    let Some(value) = value else { return Ok(None) };
    let place = value
        .as_str()
        .and_then(|text| allowed.iter().position(|word| *word == text));
    let refused = || {
        (
            format!(".qos.{key}"),
            format!("{value} is not allowed; allowed: {}", allowed.join(", ")),
        )
    };
    place.map(Some).ok_or_else(refused)
}

fn depth(value: &Value) -> Result<u32, Wrong> {
    let depth = value
        .as_u64()
        .and_then(|n| u32::try_from(n).ok())
        .filter(|n| (1..=100_000).contains(n));
    let refused = || {
        let why = format!("{value} is not allowed; allowed: a whole number from 1 to 100000");
        (".qos.depth".to_owned(), why)
    };
    depth.ok_or_else(refused)
}

/// Nanoseconds, as ros2/domain_bridge writes durations. Absent, negative (its "infinite") and `auto` mean that
/// the middleware's default is offered, which is infinite.
fn duration(key: &str, value: Option<&Value>) -> Result<Option<i64>, Wrong> {
    let refused = |value: &Value| {
        let why = format!(
            "{value} is not allowed; allowed: nanoseconds above 0, a negative number for infinite, auto"
        );
        (format!(".qos.{key}"), why)
    };
    match value {
        None => Ok(None),
        Some(Value::String(text)) if text == "auto" => Ok(None),
        Some(value) => match value.as_i64() {
            Some(n) if n < 0 => Ok(Some(i64::MAX)),
            Some(n) if n > 0 => Ok(Some(n)),
            _ => Err(refused(value)),
        },
    }
}

/// Two rules that write the same topic from the same topic would double every message; rules that lead back to
/// where they began other than as a pair would circle for ever.
fn refuse_repeats(routes: &[RouteRule]) -> Result<(), Wrong> {
    let mut seen = BTreeMap::new();
    for route in routes {
        let source = (route.from_domain, &route.from_topic);
        let target = (route.to_domain, &route.to_topic);
        if seen.insert((source, target), ()).is_some() {
            let why = format!(
                "the route from domain {} to domain {} to {} is there twice; allowed: once",
                route.from_domain, route.to_domain, route.to_topic
            );
            return Err((format!("topics.{}", route.from_topic), why));
        }
    }
    refuse_cycles(routes)
}

fn refuse_cycles(routes: &[RouteRule]) -> Result<(), Wrong> {
    let mut next: BTreeMap<(usize, &str), Vec<(usize, &str)>> = BTreeMap::new();
    for route in routes {
        let target = (route.to_domain, route.to_topic.as_str());
        next.entry((route.from_domain, route.from_topic.as_str()))
            .or_default()
            .push(target);
    }
    for &start in next.keys() {
        if let Some(path) = cycle_from(start, &next) {
            let places: Vec<_> = path
                .iter()
                .map(|(domain, topic)| format!("{topic} in {domain}"))
                .collect();
            let why = format!(
                "messages would circle: {}; allowed: at most a two-way pair",
                places.join(" > ")
            );
            return Err(("topics".into(), why));
        }
    }
    Ok(())
}

/// A way of three or more hops from `start` back to itself.
fn cycle_from<'a>(
    start: (usize, &'a str),
    next: &BTreeMap<(usize, &'a str), Vec<(usize, &'a str)>>,
) -> Option<Vec<(usize, &'a str)>> {
    let mut open = vec![vec![start]];
    while let Some(path) = open.pop() {
        let &last = path.last()?;
        for &place in next.get(&last).map_or(&[][..], Vec::as_slice) {
            let longer = || path.iter().copied().chain([place]).collect::<Vec<_>>();
            if place == start && path.len() > 2 {
                return Some(longer());
            }
            if !path.contains(&place) {
                open.push(longer());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Rules, ConfigError> {
        Rules::parse("rules.yaml", text)
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
            ("mode: compress\nfrom_domain: 1\nto_domain: 2\ntopics: {a: {type: std_msgs/msg/String}}".into(), "topics.a (mode)", "normal"),
            ("topics: {}".into(), "topics", "at least one"),
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
}
