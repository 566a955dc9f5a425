//! Scheduling policies and their spelling (`fifo:80`, `other:0.1ms`, `deadline:1ms/4ms/4ms`).
//!
//! A policy here is a wish; whether the kernel grants it is found out by applying it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::mono::ns;
use crate::sys;

/// How the kernel shall choose when the thread runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Policy {
    /// `SCHED_OTHER`, the time-sharing class.
    #[default]
    Other,
    /// `SCHED_OTHER` with a custom time slice, 0.1 to 100 ms (honoured by the scheduler of kernel 6.12 and later).
    ShortSlice(Duration),
    /// `SCHED_FIFO` with a priority of 1 to 99.
    Fifo(u8),
    /// `SCHED_RR` with a priority of 1 to 99.
    RoundRobin(u8),
    /// `SCHED_DEADLINE`; at least 1024 ns of runtime, `runtime <= deadline <= period`.
    Deadline {
        /// CPU time granted each period.
        runtime: Duration,
        /// By when it is granted, counted from the start of the period.
        deadline: Duration,
        /// How often it is granted.
        period: Duration,
    },
}

/// A text that is no policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("policy: {text:?}: {why}")]
pub struct PolicyError {
    text: String,
    why: &'static str,
}

/// The priority of our real-time threads where none is given: above threaded interrupt handlers (50), below the
/// kernel's own migration and watchdog threads (99).
pub const DEFAULT_PRIORITY: u8 = 80;
const SLICE: (Duration, Duration) = (Duration::from_micros(100), Duration::from_millis(100));
const SHORT_SLICE: Duration = SLICE.0;
/// The kernel refuses shorter runtimes (`DL_SCALE` in `kernel/sched/sched.h`).
const MIN_RUNTIME: Duration = Duration::from_nanos(1024);
const DAY_NS: f64 = 86_400e9;
const FORMS: &str = "expected other, other:SLICE (0.1ms to 100ms), fifo[:1-99], rr[:1-99] or deadline:RUNTIME/DEADLINE/PERIOD";

impl Policy {
    /// The short name without parameters, as the kernel's documentation spells it in lower case.
    #[must_use]
    pub const fn class(&self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::ShortSlice(_) => "other+slice",
            Self::Fifo(_) => "fifo",
            Self::RoundRobin(_) => "rr",
            Self::Deadline { .. } => "deadline",
        }
    }

    /// Whether the thread may keep every other thread of a core from running.
    #[must_use]
    pub const fn is_real_time(&self) -> bool {
        !matches!(self, Self::Other | Self::ShortSlice(_))
    }

    /// The static priority, where the class has one.
    #[must_use]
    pub const fn priority(&self) -> Option<u8> {
        match self {
            Self::Fifo(priority) | Self::RoundRobin(priority) => Some(*priority),
            Self::Other | Self::ShortSlice(_) | Self::Deadline { .. } => None,
        }
    }

    /// The five rows of the comparison for a loop of the given period: DEADLINE gets a quarter of it.
    #[must_use]
    pub fn comparison(period: Duration) -> Vec<Self> {
        vec![
            Self::Other,
            Self::ShortSlice(SHORT_SLICE),
            Self::Fifo(DEFAULT_PRIORITY),
            Self::RoundRobin(DEFAULT_PRIORITY),
            Self::deadline_for(period),
        ]
    }

    /// DEADLINE with a quarter of `period` as runtime.
    #[must_use]
    pub fn deadline_for(period: Duration) -> Self {
        Self::Deadline {
            runtime: (period / 4).max(MIN_RUNTIME),
            deadline: period,
            period,
        }
    }

    pub(crate) fn attributes(&self) -> sys::SchedAttr {
        let class = match self {
            Self::Other | Self::ShortSlice(_) => sys::SCHED_OTHER,
            Self::Fifo(_) => sys::SCHED_FIFO,
            Self::RoundRobin(_) => sys::SCHED_RR,
            Self::Deadline { .. } => sys::SCHED_DEADLINE,
        };
        let mut attr = sys::SchedAttr {
            policy: class,
            priority: u32::from(self.priority().unwrap_or(0)),
            ..sys::SchedAttr::default()
        };
        match self {
            Self::ShortSlice(slice) => attr.runtime_ns = ns(*slice),
            Self::Deadline {
                runtime,
                deadline,
                period,
            } => {
                // A DEADLINE thread may not spawn others unless they leave the class.
                attr.flags = sys::FLAG_RESET_ON_FORK;
                attr.runtime_ns = ns(*runtime);
                attr.deadline_ns = ns(*deadline);
                attr.period_ns = ns(*period);
            }
            Self::Other | Self::Fifo(_) | Self::RoundRobin(_) => {}
        }
        attr
    }

    /// The kernel's answer as a policy; `None` for a class that none of our policies asks for (batch, idle, ext).
    pub(crate) fn from_attributes(attr: &sys::SchedAttr) -> Option<Self> {
        let priority = u8::try_from(attr.priority).ok()?;
        match attr.policy {
            sys::SCHED_OTHER => Some(Self::Other),
            sys::SCHED_FIFO => Some(Self::Fifo(priority)),
            sys::SCHED_RR => Some(Self::RoundRobin(priority)),
            sys::SCHED_DEADLINE => Some(Self::Deadline {
                runtime: Duration::from_nanos(attr.runtime_ns),
                deadline: Duration::from_nanos(attr.deadline_ns),
                period: Duration::from_nanos(attr.period_ns),
            }),
            _ => None,
        }
    }
}

impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let (class, rest) = match text.trim().split_once(':') {
            Some((class, rest)) => (class, Some(rest)),
            None => (text.trim(), None),
        };
        let fail = |why| PolicyError {
            text: text.to_owned(),
            why,
        };
        match (class.to_ascii_lowercase().as_str(), rest) {
            ("other", None) => Ok(Self::Other),
            ("other", Some(slice)) => {
                short_slice(slice).ok_or_else(|| fail("the slice must be 0.1ms to 100ms"))
            }
            ("fifo", priority) => parse_priority(priority)
                .map(Self::Fifo)
                .ok_or_else(|| fail("the priority must be 1 to 99")),
            ("rr", priority) => parse_priority(priority)
                .map(Self::RoundRobin)
                .ok_or_else(|| fail("the priority must be 1 to 99")),
            ("deadline", Some(rest)) => deadline(rest).map_err(fail),
            _ => Err(fail(FORMS)),
        }
    }
}

fn short_slice(text: &str) -> Option<Policy> {
    let slice = parse_duration(text)?;
    (SLICE.0..=SLICE.1)
        .contains(&slice)
        .then_some(Policy::ShortSlice(slice))
}

fn parse_priority(text: Option<&str>) -> Option<u8> {
    let Some(text) = text else {
        return Some(DEFAULT_PRIORITY);
    };
    text.parse()
        .ok()
        .filter(|priority| (1..=99).contains(priority))
}

fn deadline(text: &str) -> Result<Policy, &'static str> {
    let parts: Vec<_> = text.split('/').map(parse_duration).collect();
    let [Some(runtime), Some(deadline), Some(period)] = parts[..] else {
        return Err("expected deadline:RUNTIME/DEADLINE/PERIOD with units ns, us, ms or s");
    };
    if runtime < MIN_RUNTIME || runtime > deadline || deadline > period {
        return Err("expected 1024ns <= runtime <= deadline <= period");
    }
    Ok(Policy::Deadline {
        runtime,
        deadline,
        period,
    })
}

/// A decimal number with a unit of `ns`, `us`, `ms`, `s`, `min` or `h`; `None` for anything else or above a day.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let number: f64 = text[..digits].parse().ok()?;
    let scale = match &text[digits..] {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    let nanoseconds = (number * scale * 1e9).round();
    (nanoseconds <= DAY_NS).then(|| Duration::from_nanos(nanoseconds as u64))
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other => f.write_str("other"),
            Self::ShortSlice(slice) => write!(f, "other:{slice:?}"),
            Self::Fifo(priority) => write!(f, "fifo:{priority}"),
            Self::RoundRobin(priority) => write!(f, "rr:{priority}"),
            Self::Deadline {
                runtime,
                deadline,
                period,
            } => {
                write!(f, "deadline:{runtime:?}/{deadline:?}/{period:?}")
            }
        }
    }
}

impl TryFrom<String> for Policy {
    type Error = PolicyError;

    fn try_from(text: String) -> Result<Self, PolicyError> {
        text.parse()
    }
}

impl From<Policy> for String {
    fn from(policy: Policy) -> Self {
        policy.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_reads_back() {
        for text in [
            "other",
            "other:100µs",
            "fifo:80",
            "rr:1",
            "deadline:1ms/4ms/4ms",
            "deadline:500µs/1ms/1ms",
        ] {
            assert_eq!(text.parse::<Policy>().unwrap().to_string(), text);
        }
        assert_eq!("FIFO".parse(), Ok(Policy::Fifo(80)));
        assert_eq!("other:0.1ms".parse(), Ok(Policy::ShortSlice(SHORT_SLICE)));
    }

    #[test]
    fn values_out_of_range_are_refused_with_the_range() {
        for (text, part) in [
            ("fifo:0", "1 to 99"),
            ("rr:100", "1 to 99"),
            ("other:1us", "0.1ms to 100ms"),
            ("deadline:500ns/4ms/4ms", "1024ns"),
            ("deadline:5ms/4ms/4ms", "runtime <= deadline"),
            ("deadline:1/4/4", "units"),
            ("idle", "expected other"),
        ] {
            let error = text.parse::<Policy>().unwrap_err().to_string();
            assert!(error.contains(part) && error.contains(text), "{error}");
        }
    }

    #[test]
    fn times_have_units_and_a_bound() {
        assert_eq!(parse_duration("1.5ms"), Some(Duration::from_micros(1500)));
        assert_eq!(parse_duration("24h"), Some(Duration::from_secs(86_400)));
        for text in ["", "5", "s", "-1s", "1d", "24.1h", "1.2.3s"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn attributes_read_back_as_the_policy() {
        for policy in Policy::comparison(Duration::from_millis(4)) {
            let expected = if matches!(policy, Policy::ShortSlice(_)) {
                Policy::Other
            } else {
                policy
            };
            assert_eq!(
                Policy::from_attributes(&policy.attributes()),
                Some(expected)
            );
        }
    }
}
