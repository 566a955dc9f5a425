//! DDS domain ids.
//!
//! Above 232 the UDP ports that DDS derives from the id (7400 + 250 x id + offsets) pass 65535.

use std::fmt;

use serde::de::{Deserializer, Error, Unexpected, Visitor};
use serde::{Deserialize, Serialize};

/// The highest domain id.
pub const MAX: u8 = 232;
/// What an id may be, for messages.
const ALLOWED: &str = "a domain id: a whole number from 0 to 232";

/// A domain id from 0 to 232.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct DomainId(u8);

/// A value that is no domain id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} is {value}, allowed: {ALLOWED}")]
pub struct DomainError {
    /// The setting.
    pub key: String,
    /// Its value.
    pub value: String,
}

impl DomainId {
    /// The id in setting `key`.
    ///
    /// # Errors
    /// [`DomainError`] outside 0 to 232, naming key, value and range.
    pub fn new(key: &str, value: i64) -> Result<Self, DomainError> {
        Self::in_range(value).ok_or_else(|| refuse(key, value))
    }

    /// The id written in setting `key`, as in an environment variable.
    ///
    /// # Errors
    /// [`DomainError`] for anything but a whole number from 0 to 232.
    pub fn parse(key: &str, text: &str) -> Result<Self, DomainError> {
        let value = text.trim().parse().ok().and_then(Self::in_range);
        value.ok_or_else(|| refuse(key, format!("{text:?}")))
    }

    /// The id.
    #[must_use]
    pub fn get(self) -> u8 {
        self.0
    }

    fn in_range(value: i64) -> Option<Self> {
        u8::try_from(value).ok().filter(|id| *id <= MAX).map(Self)
    }
}

fn refuse(key: &str, value: impl fmt::Display) -> DomainError {
    DomainError {
        key: key.to_owned(),
        value: value.to_string(),
    }
}

impl fmt::Display for DomainId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> Deserialize<'de> for DomainId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WholeNumber)
    }
}

/// Takes whole numbers only: 5.0, "5" and true are mistakes worth a message.
struct WholeNumber;

impl Visitor<'_> for WholeNumber {
    type Value = DomainId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ALLOWED)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<DomainId, E> {
        DomainId::in_range(value).ok_or_else(|| E::invalid_value(Unexpected::Signed(value), &self))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<DomainId, E> {
        let id = i64::try_from(value).ok().and_then(DomainId::in_range);
        id.ok_or_else(|| E::invalid_value(Unexpected::Unsigned(value), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Settings {
        domain_id: DomainId,
    }

    fn read(value: &str) -> Result<u8, String> {
        let settings: Settings = serde_saphyr::from_str(&format!("domain_id: {value}\n"))
            .map_err(|error| error.to_string())?;
        Ok(settings.domain_id.get())
    }

    #[test]
    fn the_ends_of_the_range_are_accepted() {
        for id in [0, 101, 232] {
            assert_eq!(read(&id.to_string()), Ok(id));
            assert_eq!(
                DomainId::new("domain_id", id.into()).map(DomainId::get),
                Ok(id)
            );
        }
    }

    #[test]
    fn domain_9999_233_minus_1_5_0_five_true_are_refused_naming_key_and_range() {
        for value in [
            "9999",
            "233",
            "-1",
            "5.0",
            "\"five\"",
            "five",
            "true",
            "99999999999999999999",
        ] {
            let message = read(value).unwrap_err();
            assert!(
                message.contains("0 to 232") && message.contains("domain_id"),
                "{message}"
            );
        }
        let error = DomainId::new("drone.domain_id", 233)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("drone.domain_id is 233") && error.contains("0 to 232"),
            "{error}"
        );
        for text in ["abc", "5.0", "", "-1"] {
            let error = DomainId::parse("ROS_DOMAIN_ID", text)
                .unwrap_err()
                .to_string();
            assert!(
                error.contains("ROS_DOMAIN_ID") && error.contains("0 to 232"),
                "{error}"
            );
        }
    }
}
