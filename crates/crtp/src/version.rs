//! The drone's CRTP protocol version, and in one table what changed with which version. Nothing else in this
//! crate compares version numbers.

use std::fmt;

/// CRTP protocol version, as the drone answers it on port 13, channel 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProtocolVersion(pub u32);

impl ProtocolVersion {
    /// Oldest version this project flies (June 2023).
    pub const OLDEST: Self = Self(6);
    /// Newest version whose every packet is known here (February 2026).
    pub const NEWEST: Self = Self(12);

    /// `GO_TO_2` and `SPIRAL` of the high-level commander: 8, September 2024.
    #[must_use]
    pub const fn has_go_to_2(self) -> bool {
        self.0 >= 8
    }

    /// Setpoint types 8, 9 and 10, whose yaw rate is counter-clockwise on the wire: 9, February 2025. Earlier
    /// versions have types 1, 2 and 5 instead, whose yaw rate the firmware negates.
    #[must_use]
    pub const fn has_counter_clockwise_yaw(self) -> bool {
        self.0 >= 9
    }

    /// `START_TRAJECTORY_2` of the high-level commander: 10, June 2025.
    #[must_use]
    pub const fn has_start_trajectory_2(self) -> bool {
        self.0 >= 10
    }

    /// Parameter replies with a status byte of their own (`GET_EXTENDED_TYPE_V2`, `GET_DEFAULT_VALUE_V2`): 11,
    /// November 2025.
    #[must_use]
    pub const fn has_param_status(self) -> bool {
        self.0 >= 11
    }

    /// The supervisor on port 9: 12, February 2026. Earlier versions arm on port 13.
    #[must_use]
    pub const fn has_supervisor(self) -> bool {
        self.0 >= 12
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
