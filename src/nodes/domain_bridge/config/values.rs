//! Single values of a rule file, each checked and refused with what is allowed.

use std::time::Duration;

use bridge_core::DomainId;
use serde_json::Value;

use super::{Mode, QosRule, raw};

/// What went wrong below a rule: the key's tail and the reason.
pub(super) type Wrong = (String, String);

/// Longest time-out of a service call, s.
const MAX_TIMEOUT: f64 = 1e6;

pub(super) fn is_token(name: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(legal) && name.starts_with(|c: char| !c.is_ascii_digit())
}

/// The name against the root, checked as ROS checks it.
pub(super) fn full_name(name: &str) -> Result<String, Wrong> {
    let tokens = name.strip_prefix('/').unwrap_or(name);
    if tokens.split('/').all(is_token) && !tokens.is_empty() {
        return Ok(format!("/{tokens}"));
    }
    let why = format!(
        "{name:?} is no name; allowed: tokens of letters, digits and _ joined by /, none beginning with a digit"
    );
    Err((String::new(), why))
}

/// `package/<kind>/Name`.
pub(super) fn type_name(value: Option<&String>, kind: &str) -> Result<String, Wrong> {
    let name = value.ok_or_else(|| (".type".into(), "is missing".to_owned()))?;
    let parts: Vec<_> = name.split('/').collect();
    if parts.len() == 3 && parts[1] == kind && parts.iter().all(|part| is_token(part)) {
        return Ok(name.clone());
    }
    let why = format!("{name:?} is not allowed; allowed: package/{kind}/Name");
    Err((".type".into(), why))
}

pub(super) fn domain_of(
    key: &str,
    own: Option<&Value>,
    common: Option<&Value>,
) -> Result<usize, Wrong> {
    let value = own
        .or(common)
        .ok_or_else(|| (format!(".{key}"), "is missing".to_owned()))?;
    let id = value.as_i64().and_then(|id| DomainId::new(key, id).ok());
    let refused = || {
        let why = format!("{value} is not allowed; allowed: a whole number from 0 to 232");
        (format!(".{key}"), why)
    };
    id.map(|id| usize::from(id.get())).ok_or_else(refused)
}

pub(super) fn mode(own: Option<&Value>, common: Option<&Value>) -> Result<Mode, Wrong> {
    Ok(
        match word(
            ".mode",
            own.or(common),
            &["normal", "compress", "decompress"],
        )? {
            Some(1) => Mode::Compress,
            Some(2) => Mode::Decompress,
            _ => Mode::Normal,
        },
    )
}

/// Seconds above 0.
pub(super) fn timeout(value: Option<&Value>) -> Result<Option<Duration>, Wrong> {
    let Some(value) = value else { return Ok(None) };
    let seconds = value.as_f64().filter(|s| *s > 0.0 && *s <= MAX_TIMEOUT);
    let refused = || {
        let why =
            format!("{value} is not allowed; allowed: seconds above 0, at most {MAX_TIMEOUT}");
        (".timeout".to_owned(), why)
    };
    seconds
        .map(|s| Some(Duration::from_secs_f64(s)))
        .ok_or_else(refused)
}

/// Messages per second above 0, as the time between two.
pub(super) fn rate_limit(value: Option<&Value>) -> Result<Option<Duration>, Wrong> {
    let Some(value) = value else { return Ok(None) };
    let rate = value.as_f64().filter(|hz| (1e-3..=1e6).contains(hz));
    let refused = || {
        let why =
            format!("{value} is not allowed; allowed: messages a second from 0.001 to 1000000");
        (".rate_limit".to_owned(), why)
    };
    rate.map(|hz| Some(Duration::from_secs_f64(1.0 / hz)))
        .ok_or_else(refused)
}

pub(super) fn qos(raw: Option<&raw::Qos>) -> Result<QosRule, Wrong> {
    let Some(raw) = raw else {
        return Ok(QosRule::default());
    };
    let choice = |key: &str, value: &Option<Value>, words: &[&str]| {
        word(&format!(".qos.{key}"), value.as_ref(), words)
    };
    let reliability = choice(
        "reliability",
        &raw.reliability,
        &["reliable", "best_effort"],
    )?;
    let durability = choice(
        "durability",
        &raw.durability,
        &["transient_local", "volatile"],
    )?;
    let history = choice("history", &raw.history, &["keep_all", "keep_last"])?;
    let liveliness = choice(
        "liveliness",
        &raw.liveliness,
        &["manual_by_topic", "automatic"],
    )?;
    Ok(QosRule {
        reliable: reliability.map(|first| first == 0),
        transient_local: durability.map(|first| first == 0),
        keep_all: history == Some(0),
        depth: raw.depth.as_ref().map(depth).transpose()?,
        deadline_ns: duration("deadline", raw.deadline.as_ref())?,
        lifespan_ns: duration("lifespan", raw.lifespan.as_ref())?,
        manual_liveliness: liveliness.map(|first| first == 0),
        lease_ns: duration(
            "liveliness_lease_duration",
            raw.liveliness_lease_duration.as_ref(),
        )?,
    })
}

/// The place of the value among the allowed words.
fn word(key: &str, value: Option<&Value>, allowed: &[&str]) -> Result<Option<usize>, Wrong> {
    let Some(value) = value else { return Ok(None) };
    let place = value
        .as_str()
        .and_then(|text| allowed.iter().position(|word| *word == text));
    let refused = || {
        let why = format!("{value} is not allowed; allowed: {}", allowed.join(", "));
        (key.to_owned(), why)
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

/// Nanoseconds, as ros2/domain_bridge writes durations: negative means infinite; absent and `auto` follow the
/// publishers at the source.
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
