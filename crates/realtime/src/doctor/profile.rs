//! What the machine shall be good for, and how strict that makes the checks.

use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::finding::Verdict;

/// A job for a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// The bridge beside the drone: UART on one side, Wi-Fi on the other.
    #[default]
    BridgeOnPi,
    /// The ROS side on the ground.
    GroundStation,
    /// A controller that answers every millisecond.
    #[serde(rename = "1khz-controller")]
    Controller1Khz,
    /// A build machine: logic must run, nothing must be fast.
    Ci,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 4] = [
        Self::BridgeOnPi,
        Self::GroundStation,
        Self::Controller1Khz,
        Self::Ci,
    ];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BridgeOnPi => "bridge-on-pi",
            Self::GroundStation => "ground-station",
            Self::Controller1Khz => "1khz-controller",
            Self::Ci => "ci",
        }
    }

    /// Whether isolated cores belong to the job.
    #[must_use]
    pub const fn wants_isolation(self) -> bool {
        matches!(self, Self::Controller1Khz)
    }

    /// Whether a UART belongs to the job.
    #[must_use]
    pub const fn wants_uart(self) -> bool {
        matches!(self, Self::BridgeOnPi)
    }

    /// Whether real-time scheduling belongs to the job.
    #[must_use]
    pub const fn wants_real_time(self) -> bool {
        matches!(self, Self::BridgeOnPi | Self::Controller1Khz)
    }

    /// How bad it is when something that only costs latency is wrong.
    #[must_use]
    pub const fn latency_matters(self) -> Verdict {
        match self {
            Self::BridgeOnPi | Self::GroundStation | Self::Controller1Khz => Verdict::Warn,
            Self::Ci => Verdict::Pass,
        }
    }

    /// How bad it is when something that real-time work needs is missing.
    #[must_use]
    pub const fn real_time_needed(self) -> Verdict {
        match self {
            Self::Controller1Khz => Verdict::Fail,
            Self::BridgeOnPi => Verdict::Warn,
            Self::GroundStation | Self::Ci => Verdict::Pass,
        }
    }

    /// Largest message that a socket has to take in one piece, bytes.
    #[must_use]
    pub const fn largest_payload(self) -> i64 {
        match self {
            Self::GroundStation => 4 * 1024 * 1024,
            Self::BridgeOnPi => 64 * 1024,
            Self::Controller1Khz | Self::Ci => 2373,
        }
    }

    /// Period of the self-test's loop.
    #[must_use]
    pub const fn period(self) -> Duration {
        match self {
            Self::Controller1Khz => Duration::from_millis(1),
            Self::BridgeOnPi | Self::GroundStation | Self::Ci => Duration::from_millis(4),
        }
    }
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|profile| profile.name() == text);
        found.ok_or_else(|| {
            format!(
                "profile: {text:?} is none of bridge-on-pi, ground-station, 1khz-controller, ci"
            )
        })
    }
}
