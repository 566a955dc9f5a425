//! QoS profiles as parameters: a named profile per topic group, overridden field by field.
//!
//! For one policy the order is: `qos_overrides.<topic>.<side>.<policy>`, then `qos.<group>.<policy>`, then
//! `qos.<group>.profile`, then the group's default. Group `rtt` reads `qos.rtt.profile`, `qos.rtt.reliability`, `qos.rtt.depth` and so on. Every refusal names
//! the key, the value and what is allowed.

use std::time::Duration;

use rclrs::{
    QoSDurabilityPolicy, QoSDuration, QoSHistoryPolicy, QoSLivelinessPolicy, QoSProfile,
    QoSReliabilityPolicy,
};
use serde_json::Value;

use super::args::{ArgsError, NodeArgs};

/// The names of the profiles that `qos.<group>.profile` takes.
pub const PROFILES: [&str; 7] = [
    "default",
    "listener",
    "sensor_data",
    "low_latency",
    "reliable",
    "latched",
    "system_default",
];

/// Most samples a history may keep.
pub(super) const MAX_DEPTH: i64 = 100_000;
/// Longest duration of a policy, s; longer is the same as infinite.
const MAX_SECONDS: f64 = 1e9;

/// The profile with this name.
///
/// * `default`: reliable, volatile, last 10 (the ROS 2 default)
/// * `listener`: best effort, volatile, last 10: hears publishers of either kind
/// * `sensor_data`: best effort, volatile, last 5
/// * `low_latency`: best effort, volatile, last 1
/// * `reliable`: reliable, volatile, last 100
/// * `latched`: reliable, transient local, last 1
/// * `system_default`: what the middleware is configured to
#[must_use]
pub fn named(name: &str) -> Option<QoSProfile> {
    let base = QoSProfile::topics_default();
    Some(match name {
        "default" => base,
        "listener" => base.best_effort(),
        "sensor_data" => QoSProfile::sensor_data_default(),
        "low_latency" => base.best_effort().keep_last(1),
        "reliable" => base.reliable().keep_last(100),
        "latched" => base.reliable().transient_local().keep_last(1),
        "system_default" => QoSProfile::system_default(),
        _ => return None,
    })
}

/// The profile of a topic group as the parameters `qos.<group>.*` set it.
///
/// # Errors
/// [`ArgsError::Value`] naming the key, the value and what is allowed.
pub fn profile(args: &NodeArgs, group: &str, default: &str) -> Result<QoSProfile, ArgsError> {
    let prefix = format!("qos.{group}");
    if let Some(value) = args.raw(&prefix) {
        return Err(ArgsError::value(
            &prefix,
            value,
            "a map of policies, such as {profile: default, depth: 10}",
        ));
    }
    let key = |field: &str| format!("{prefix}.{field}");
    let name = args.word(&key("profile"), default, &PROFILES)?;
    let mut profile = named(&name)
        .ok_or_else(|| ArgsError::value(&key("profile"), &name, PROFILES.join(", ")))?;
    if let Some(word) = set_word(
        args,
        &key("reliability"),
        &["reliable", "best_effort", "system_default"],
    )? {
        profile.reliability = reliability(&word);
    }
    if let Some(word) = set_word(
        args,
        &key("durability"),
        &["volatile", "transient_local", "system_default"],
    )? {
        profile.durability = durability(&word);
    }
    if let Some(word) = set_word(
        args,
        &key("liveliness"),
        &["automatic", "manual_by_topic", "system_default"],
    )? {
        profile.liveliness = liveliness(&word);
    }
    profile.history = history(args, &key("history"), &key("depth"), profile.history)?;
    profile.deadline = duration(args, &key("deadline"), profile.deadline)?;
    profile.lifespan = duration(args, &key("lifespan"), profile.lifespan)?;
    profile.liveliness_lease = duration(
        args,
        &key("liveliness_lease_duration"),
        profile.liveliness_lease,
    )?;
    Ok(profile)
}

/// One line for logs and results files.
#[must_use]
pub fn describe(profile: &QoSProfile) -> String {
    let reliability = match profile.reliability {
        QoSReliabilityPolicy::Reliable => "reliable",
        QoSReliabilityPolicy::BestEffort => "best_effort",
        _ => "system_default",
    };
    let durability = match profile.durability {
        QoSDurabilityPolicy::Volatile => "volatile",
        QoSDurabilityPolicy::TransientLocal => "transient_local",
        _ => "system_default",
    };
    let history = match profile.history {
        QoSHistoryPolicy::KeepLast { depth } => format!("keep_last {depth}"),
        QoSHistoryPolicy::KeepAll => "keep_all".into(),
        QoSHistoryPolicy::SystemDefault { .. } => "system_default".into(),
    };
    let mut text = format!("{reliability}, {durability}, {history}");
    for (name, value) in [
        ("deadline", profile.deadline),
        ("lifespan", profile.lifespan),
        ("liveliness_lease_duration", profile.liveliness_lease),
    ] {
        if let QoSDuration::Custom(value) = value {
            text.push_str(&format!(", {name} {} s", value.as_secs_f64()));
        }
    }
    text
}

fn set_word(args: &NodeArgs, key: &str, words: &[&str]) -> Result<Option<String>, ArgsError> {
    match args.raw(key) {
        None => Ok(None),
        Some(_) => args.word(key, "", words).map(Some),
    }
}

pub(super) fn reliability(word: &str) -> QoSReliabilityPolicy {
    match word {
        "reliable" => QoSReliabilityPolicy::Reliable,
        "best_effort" => QoSReliabilityPolicy::BestEffort,
        _ => QoSReliabilityPolicy::SystemDefault,
    }
}

pub(super) fn durability(word: &str) -> QoSDurabilityPolicy {
    match word {
        "volatile" => QoSDurabilityPolicy::Volatile,
        "transient_local" => QoSDurabilityPolicy::TransientLocal,
        _ => QoSDurabilityPolicy::SystemDefault,
    }
}

pub(super) fn liveliness(word: &str) -> QoSLivelinessPolicy {
    match word {
        "automatic" => QoSLivelinessPolicy::Automatic,
        "manual_by_topic" => QoSLivelinessPolicy::ManualByTopic,
        _ => QoSLivelinessPolicy::SystemDefault,
    }
}

fn history(
    args: &NodeArgs,
    history_key: &str,
    depth_key: &str,
    now: QoSHistoryPolicy,
) -> Result<QoSHistoryPolicy, ArgsError> {
    let word = set_word(
        args,
        history_key,
        &["keep_last", "keep_all", "system_default"],
    )?;
    let depth_now = match now {
        QoSHistoryPolicy::KeepLast { depth } | QoSHistoryPolicy::SystemDefault { depth } => {
            depth.max(1)
        }
        QoSHistoryPolicy::KeepAll => 1,
    };
    let depth = match args.raw(depth_key) {
        None => None,
        Some(_) => Some(args.int(depth_key, 1, 1..=MAX_DEPTH)? as u32),
    };
    Ok(match (word.as_deref(), depth) {
        (Some("keep_all"), _) => QoSHistoryPolicy::KeepAll,
        (Some("system_default"), _) => QoSHistoryPolicy::SystemDefault {
            depth: depth.unwrap_or(depth_now),
        },
        (Some(_), _) | (None, Some(_)) => QoSHistoryPolicy::KeepLast {
            depth: depth.unwrap_or(depth_now),
        },
        (None, None) => now,
    })
}

/// Absent: as the profile has it; `default`: the middleware's; `infinite`; or seconds above 0.
fn duration(args: &NodeArgs, key: &str, now: QoSDuration) -> Result<QoSDuration, ArgsError> {
    match args.raw(key) {
        None => Ok(now),
        Some(Value::String(word)) if word == "infinite" => Ok(QoSDuration::Infinite),
        Some(Value::String(word)) if word == "default" => Ok(QoSDuration::SystemDefault),
        Some(value) => match value.as_f64().filter(|s| *s > 0.0 && *s <= MAX_SECONDS) {
            Some(seconds) => {
                args.took_effect(key, seconds);
                Ok(QoSDuration::Custom(Duration::from_secs_f64(seconds)))
            }
            None => Err(ArgsError::value(
                key,
                value,
                "seconds above 0, infinite, default",
            )),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(parameters: &str) -> NodeArgs {
        let flags = parameters
            .split_whitespace()
            .flat_map(|p| ["-p".to_owned(), p.to_owned()]);
        NodeArgs::parse(
            ["rtt".to_owned(), "--ros-args".to_owned()]
                .into_iter()
                .chain(flags),
            "rtt",
        )
        .unwrap()
    }

    #[test]
    fn a_named_profile_is_overridden_field_by_field() {
        let args = args(
            "qos.rtt.profile:=sensor_data qos.rtt.reliability:=reliable qos.rtt.depth:=3 qos.rtt.lifespan:=0.5",
        );
        let profile = profile(&args, "rtt", "default").unwrap();
        assert_eq!(
            describe(&profile),
            "reliable, volatile, keep_last 3, lifespan 0.5 s"
        );
        args.refuse_unknown().unwrap();
    }

    #[test]
    fn slips_name_key_value_and_what_is_allowed() {
        for (slip, part) in [
            ("qos.rtt.profile:=fast", "qos.rtt.profile"),
            (
                "qos.rtt.reliability:=relaible",
                "reliable, best_effort, system_default",
            ),
            ("qos.rtt.depth:=0", "from 1 to"),
            ("qos.rtt.depth:=ten", "\"ten\""),
            ("qos.rtt.deadline:=-1", "seconds above 0"),
            ("qos.rtt.lifespan:=0", "qos.rtt.lifespan"),
            ("qos.rtt:=[reliable]", "a map of policies"),
        ] {
            let text = profile(&args(slip), "rtt", "default")
                .unwrap_err()
                .to_string();
            assert!(text.contains(part), "{slip}: {text}");
        }
    }

    #[test]
    fn infinite_and_default_durations_survive() {
        let args = args("qos.rtt.deadline:=infinite qos.rtt.lifespan:=default");
        let profile = profile(&args, "rtt", "default").unwrap();
        assert_eq!(profile.deadline, QoSDuration::Infinite);
        assert_eq!(profile.lifespan, QoSDuration::SystemDefault);
    }

    #[test]
    fn deadline_lifespan_and_lease_mean_what_is_documented() {
        for key in ["deadline", "lifespan", "liveliness_lease_duration"] {
            let of = |value: &str| {
                profile(&args(&format!("qos.rtt.{key}:={value}")), "rtt", "default").map(
                    |profile| match key {
                        "deadline" => profile.deadline,
                        "lifespan" => profile.lifespan,
                        _ => profile.liveliness_lease,
                    },
                )
            };
            assert_eq!(
                of("0.25").unwrap(),
                QoSDuration::Custom(Duration::from_millis(250))
            );
            assert_eq!(of("infinite").unwrap(), QoSDuration::Infinite);
            for refused in ["0", "-1", "auto", "true", "2e9"] {
                let text = of(refused).unwrap_err().to_string();
                assert!(
                    text.contains(key) && text.contains("seconds above 0, infinite, default"),
                    "{text}"
                );
            }
        }
        let absent = profile(&args(""), "rtt", "default").unwrap();
        assert_eq!(absent.deadline, QoSProfile::topics_default().deadline);
    }

    #[test]
    fn every_listed_profile_exists() {
        assert!(PROFILES.iter().all(|name| named(name).is_some()));
    }
}
