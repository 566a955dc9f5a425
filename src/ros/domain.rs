//! Domain ids: where they may come from and what they may be.
//!
//! A parameter wins over `ROS_DOMAIN_ID`, which wins over 0; of a parameter, the command line wins over a file. What
//! took effect is declared and printed, with a warning where the id is in the way of other sockets.

use bridge_core::DomainId;

use super::args::{ArgsError, NodeArgs};

/// Highest domain id: above it, a UDP port of the domain would exceed 65535 (7400 + 250 x id + offsets).
pub const MAX: i64 = bridge_core::MAX_DOMAIN as i64;

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
    let id = args.int(key, default, 0..=MAX)? as usize;
    warn_if_risky(id);
    Ok(id)
}

/// Warns of a domain whose ports Linux also hands out to other sockets.
pub fn warn_if_risky(domain: usize) {
    if let Some(why) = risk(domain) {
        tracing::warn!(domain, "{why}");
    }
}

/// Why a domain may fail on Linux: its ports lie in the range that the kernel gives to any socket that asks for none
/// in particular, 32768 to 60999 unless changed. Domains 0 to 101 are below, 215 to 232 above.
#[must_use]
pub fn risk(domain: usize) -> Option<String> {
    let first = 7400 + 250 * domain;
    (102..=214).contains(&domain).then(|| {
        format!(
            "domain {domain} uses UDP ports from {first} on, which Linux also gives to other sockets (32768 to 60999), so that a participant may find its port taken; domains 0 to 101 and 215 to 232 are safe"
        )
    })
}

fn from_environment(variable: Option<&str>) -> Result<i64, ArgsError> {
    let Some(text) = variable.filter(|text| !text.is_empty()) else {
        return Ok(0);
    };
    let id = DomainId::parse(VARIABLE, text).map(|id| i64::from(id.get()));
    id.map_err(|_| {
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
    fn ids_in_the_kernel_s_own_port_range_are_explained() {
        assert_eq!(
            (risk(0), risk(101), risk(215), risk(232)),
            (None, None, None, None)
        );
        let text = risk(102).unwrap();
        assert!(
            text.contains("32900") && text.contains("0 to 101 and 215 to 232"),
            "{text}"
        );
        assert!(risk(214).is_some());
    }

    #[test]
    fn the_ends_of_the_range_are_accepted() {
        for good in ["0", "101", "232"] {
            assert!(of_with(&args(&format!("-p domain_id:={good}")), "domain_id", None).is_ok());
        }
    }
}
