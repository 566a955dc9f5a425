//! Domain ids: where they may come from and what they may be.
//!
//! A parameter wins over `ROS_DOMAIN_ID`, which wins over 0. What took effect is declared and printed.

use super::args::{ArgsError, NodeArgs};

/// Highest domain id: above it, a UDP port of the domain would exceed 65535 (7400 + 250 x id + offsets).
pub const MAX: i64 = 232;

/// The environment variable that sets the domain of a process.
const VARIABLE: &str = "ROS_DOMAIN_ID";

/// The domain that parameter `key` and the environment ask for.
///
/// # Errors
/// [`ArgsError::Value`] for anything but a whole number from 0 to 232, naming parameter or variable.
pub fn of(args: &NodeArgs, key: &str) -> Result<usize, ArgsError> {
    of_with(args, key, std::env::var(VARIABLE).ok().as_deref())
}

fn of_with(args: &NodeArgs, key: &str, variable: Option<&str>) -> Result<usize, ArgsError> {
    let default = if args.is_set(key) {
        0
    } else {
        from_environment(variable)?
    };
    let id = args.int(key, default, 0..=MAX)?;
    Ok(id as usize)
}

fn from_environment(variable: Option<&str>) -> Result<i64, ArgsError> {
    let Some(text) = variable.filter(|text| !text.is_empty()) else {
        return Ok(0);
    };
    let id = text.parse().ok().filter(|id| (0..=MAX).contains(id));
    id.ok_or_else(|| {
        ArgsError::value(
            VARIABLE,
            format!("{text:?}"),
            format!("a whole number from 0 to {MAX}"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> NodeArgs {
        let line = format!("rtt --ros-args {line}");
        NodeArgs::parse(line.split_whitespace().map(str::to_owned), "rtt").unwrap()
    }

    #[test]
    fn parameter_wins_over_environment_over_zero() {
        assert_eq!(
            of_with(&args("-p domain_id:=5"), "domain_id", Some("3")).unwrap(),
            5
        );
        assert_eq!(of_with(&args(""), "domain_id", Some("3")).unwrap(), 3);
        assert_eq!(of_with(&args(""), "domain_id", None).unwrap(), 0);
        assert_eq!(
            of_with(&args("-p domain_id:=5"), "domain_id", Some("abc")).unwrap(),
            5
        );
    }

    #[test]
    fn illegal_domains_are_refused_naming_key_and_range() {
        for bad in ["9999", "233", "-1", "5.0", "five", "true"] {
            let text = of_with(&args(&format!("-p domain_id:={bad}")), "domain_id", None)
                .unwrap_err()
                .to_string();
            assert!(
                text.contains("domain_id") && text.contains("0 to 232"),
                "{text}"
            );
        }
        let text = of_with(&args(""), "domain_id", Some("abc"))
            .unwrap_err()
            .to_string();
        assert!(
            text.contains("ROS_DOMAIN_ID") && text.contains("\"abc\""),
            "{text}"
        );
    }

    #[test]
    fn the_ends_of_the_range_are_accepted() {
        for good in ["0", "101", "232"] {
            assert!(of_with(&args(&format!("-p domain_id:={good}")), "domain_id", None).is_ok());
        }
    }
}
