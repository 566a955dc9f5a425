//! Robot names, which become topic prefixes and frame names.
//!
//! A [`RobotName`] is a legal ROS 2 name token: letters, digits and single underscores, no digit in front.

use std::fmt;

/// The prefix of topics that address every robot; no robot may be called so.
const RESERVED: &str = "all";
/// Longest name: a topic name may have 247 bytes, and the longest of ours needs 40 behind it.
const LONGEST: usize = 200;

/// A name that can be a topic prefix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RobotName(String);

/// Why a name cannot be a topic prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "robots: {name:?} is no robot name, allowed: letters, digits and single underscores, no digit first, not \
     \"all\", at most 200 characters; for example {alternative:?}"
)]
pub struct NameError {
    /// The name.
    pub name: String,
    /// A legal one that is close to it.
    pub alternative: String,
}

impl RobotName {
    /// Checks a name.
    ///
    /// # Errors
    /// [`NameError`], with a legal alternative.
    pub fn new(name: &str) -> Result<Self, NameError> {
        if is_legal(name) {
            Ok(Self(name.to_owned()))
        } else {
            Err(NameError {
                name: name.to_owned(),
                alternative: alternative(name),
            })
        }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RobotName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_legal(name: &str) -> bool {
    let characters = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let first = name.chars().next().is_some_and(|c| !c.is_ascii_digit());
    characters && first && !name.contains("__") && name != RESERVED && name.len() <= LONGEST
}

/// The legal characters of `name` with single underscores for the rest, behind `cf` where needed.
fn alternative(name: &str) -> String {
    let mut words = name
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    let joined = words.by_ref().collect::<Vec<_>>().join("_");
    let joined: String = joined.chars().take(LONGEST - 3).collect();
    match joined.chars().next() {
        None => "cf1".to_owned(),
        Some(first) if first.is_ascii_digit() && !joined.contains('_') => format!("cf{joined}"),
        Some(first) if first.is_ascii_digit() || joined == RESERVED => format!("cf_{joined}"),
        Some(_) => joined,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legal_names_pass() {
        for name in ["cf231", "cf_2", "_x", "A", "all_of_them"] {
            assert_eq!(RobotName::new(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn names_that_are_no_topic_prefix_are_refused_with_a_legal_alternative() {
        for (name, alternative) in [
            ("1", "cf1"),
            ("cf-2", "cf_2"),
            ("ä", "cf1"),
            ("", "cf1"),
            ("192_168_0_5", "cf_192_168_0_5"),
            ("a__b", "a_b"),
            ("all", "cf_all"),
            ("cf 2", "cf_2"),
            ("/cf2", "cf2"),
        ] {
            let error = RobotName::new(name).unwrap_err();
            assert_eq!(error.alternative, alternative, "{name}");
            assert!(RobotName::new(&error.alternative).is_ok());
            assert!(
                error.to_string().contains(&format!("robots: {name:?}")),
                "{error}"
            );
        }
        let long = RobotName::new(&"x".repeat(300)).unwrap_err();
        assert!(RobotName::new(&long.alternative).is_ok());
    }
}
