//! A rule file as it is written: every key of ros2/domain_bridge, and ours. Unknown keys are refused here.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) name: Option<String>,
    pub(super) from_domain: Option<Value>,
    pub(super) to_domain: Option<Value>,
    pub(super) mode: Option<Value>,
    #[serde(default)]
    pub(super) topics: Pairs<Topic>,
    #[serde(default)]
    pub(super) services: Pairs<Service>,
    #[serde(default)]
    pub(super) actions: Pairs<Service>,
    #[serde(default)]
    pub(super) wildcards: Vec<Wildcard>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Topic {
    pub(super) r#type: Option<String>,
    pub(super) from_domain: Option<Value>,
    pub(super) to_domain: Option<Value>,
    pub(super) remap: Option<String>,
    #[serde(default)]
    pub(super) bidirectional: bool,
    #[serde(default)]
    pub(super) reversed: bool,
    pub(super) qos: Option<Qos>,
    pub(super) mode: Option<Value>,
    pub(super) lazy: Option<bool>,
    pub(super) mandatory: Option<bool>,
    pub(super) rate_limit: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Service {
    pub(super) r#type: Option<String>,
    pub(super) from_domain: Option<Value>,
    pub(super) to_domain: Option<Value>,
    pub(super) remap: Option<String>,
    pub(super) timeout: Option<Value>,
    pub(super) mandatory: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wildcard {
    pub(super) allow: OneOrMany,
    #[serde(default)]
    pub(super) deny: OneOrMany,
    pub(super) from_domain: Option<Value>,
    pub(super) to_domain: Option<Value>,
    #[serde(default)]
    pub(super) bidirectional: bool,
    pub(super) qos: Option<Qos>,
    pub(super) lazy: Option<bool>,
    pub(super) rate_limit: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Qos {
    pub(super) reliability: Option<Value>,
    pub(super) durability: Option<Value>,
    pub(super) history: Option<Value>,
    pub(super) depth: Option<Value>,
    pub(super) deadline: Option<Value>,
    pub(super) lifespan: Option<Value>,
    pub(super) liveliness: Option<Value>,
    pub(super) liveliness_lease_duration: Option<Value>,
}

/// One text or a list of them.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl Default for OneOrMany {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl OneOrMany {
    pub(super) fn as_slice(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Many(texts) => texts,
        }
    }
}

/// A map in the order of the file; a key may stand there several times, as in ros2/domain_bridge's own example.
#[derive(Debug)]
pub(super) struct Pairs<T>(pub(super) Vec<(String, T)>);

impl<T> Default for Pairs<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for InOrder<T> {
            type Value = Pairs<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of names")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<T>, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(InOrder(std::marker::PhantomData))
    }
}
