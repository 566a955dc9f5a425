//! Logs: a named list of variables with one period. A log is planned into blocks of the drone, its blocks are
//! set up one request at a time, and what they send is joined again to samples.

mod block;
mod manager;
mod plan;
mod samples;

use std::time::Duration;

use crtp::{Kind, Status};

pub(crate) use manager::Logs;
pub use samples::LogSample;
pub(crate) use samples::Samples;

/// Most value bytes of one block.
pub const MAX_BLOCK: usize = crtp::log::MAX_BLOCK;
/// Most blocks a drone holds.
pub const MAX_BLOCKS: usize = 16;
/// Most variables a drone logs, over all blocks.
pub const MAX_VARIABLES: usize = 128;

/// Names one log, from [`crate::Client::add_log`] to [`crate::Client::remove_log`], over reconnections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogHandle(pub(crate) u32);

/// One variable of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogVariable {
    /// `group.name`.
    pub name: String,
    /// The type to be sent; `None` for the drone's own. A smaller one saves bytes.
    pub send_as: Option<Kind>,
}

impl LogVariable {
    /// A variable, sent as the type the drone has it in.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            send_as: None,
        }
    }
}

/// A log that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// For errors.
    pub name: String,
    /// 1 ms to 65.535 s, whole milliseconds.
    pub period: Duration,
    /// In this order they come in the samples.
    pub variables: Vec<LogVariable>,
}

impl LogConfig {
    /// A log of these variables in the drone's own types.
    pub fn new<N: Into<String>>(
        name: impl Into<String>,
        period: Duration,
        variables: impl IntoIterator<Item = N>,
    ) -> Self {
        Self {
            name: name.into(),
            period,
            variables: variables.into_iter().map(LogVariable::new).collect(),
        }
    }

    pub(crate) fn period_ms(&self) -> Result<u16, LogError> {
        match u16::try_from(self.period.as_millis()) {
            Ok(ms @ 1..) if self.period.subsec_nanos().is_multiple_of(1_000_000) => Ok(ms),
            _ => Err(LogError::Period {
                name: self.name.clone(),
                period: self.period,
            }),
        }
    }
}

/// Why a log cannot be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// The period cannot be told to a drone.
    #[error("log {name}: the period must be 1 to 65535 whole milliseconds, got {} ms", period.as_secs_f64() * 1e3)]
    Period {
        /// The log.
        name: String,
        /// The period.
        period: Duration,
    },
    /// There is nothing to log.
    #[error("log {name}: none of its variables is known to the drone: {}", missing.join(", "))]
    NoVariables {
        /// The log.
        name: String,
        /// Variables the drone does not have.
        missing: Vec<String>,
    },
    /// Too many bytes for one block, and splitting is off.
    #[error("log {name}: its variables have {bytes} bytes, a block holds at most {limit}")]
    TooBig {
        /// The log.
        name: String,
        /// Bytes of its variables.
        bytes: usize,
        /// Bytes a block holds.
        limit: usize,
    },
    /// All blocks of the drone are in use.
    #[error("log {name}: needs {needed} blocks, {free} of {MAX_BLOCKS} are free")]
    TooManyBlocks {
        /// The log.
        name: String,
        /// Blocks it needs.
        needed: usize,
        /// Blocks that are free.
        free: usize,
    },
    /// All variables of the drone are in use.
    #[error("log {name}: has {needed} variables, {free} of {MAX_VARIABLES} are free")]
    TooManyVariables {
        /// The log.
        name: String,
        /// Variables it has.
        needed: usize,
        /// Variables that are free.
        free: usize,
    },
    /// A variable cannot be sent as that type.
    #[error("log {name}: {variable} cannot be sent as {}", kind.name())]
    Type {
        /// The log.
        name: String,
        /// The variable.
        variable: String,
        /// The type.
        kind: Kind,
    },
    /// The drone refused a block.
    #[error("log {name}: the drone refused the block of {}: {status}", variables.join(", "))]
    Refused {
        /// The log.
        name: String,
        /// Variables of the block.
        variables: Vec<String>,
        /// What the drone said.
        status: Status,
    },
    /// The drone does not answer.
    #[error("log {name}: no answer to the set-up of its blocks")]
    Unanswered {
        /// The log.
        name: String,
    },
}
