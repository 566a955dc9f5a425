//! The result byte of the drone's replies: an errno of the firmware's C library, and what it means in words.

use std::fmt;

/// Result of a request, 0 for success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Status(pub u8);

impl Status {
    /// Success.
    pub const OK: Self = Self(0);
    /// No such block, variable, parameter or memory.
    pub const NOT_FOUND: Self = Self(2);
    /// The memory could not be read or written there.
    pub const IO: Self = Self(5);
    /// The log block would be larger than 26 bytes.
    pub const TOO_BIG: Self = Self(7);
    /// Unknown command, or a bad trajectory id.
    pub const UNKNOWN_COMMAND: Self = Self(8);
    /// All 16 log blocks or all 128 log variables are in use.
    pub const NO_MEMORY: Self = Self(12);
    /// The parameter is read-only.
    pub const READ_ONLY: Self = Self(13);
    /// The supervisor does not let the drone fly.
    pub const BUSY: Self = Self(16);
    /// The log block exists already.
    pub const EXISTS: Self = Self(17);
    /// The value's type is not the parameter's.
    pub const INVALID: Self = Self(22);

    /// Whether the request succeeded.
    #[must_use]
    pub const fn is_ok(self) -> bool {
        self.0 == 0
    }

    /// The status in words.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::OK => "done",
            Self::NOT_FOUND => "no such entry",
            Self::IO => "no such memory range",
            Self::TOO_BIG => "too many bytes for one block",
            Self::UNKNOWN_COMMAND => "unknown command or bad id",
            Self::NO_MEMORY => "no room for more",
            Self::READ_ONLY => "read-only",
            Self::BUSY => "the supervisor does not allow flight now",
            Self::EXISTS => "exists already",
            Self::INVALID => "wrong type",
            Self(_) => "failed",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (status {})", self.reason(), self.0)
    }
}
