//! Why the gate refuses a packet, and counters by reason. One variant per rule, so that a log line or a
//! statistic says which rule it was.

/// The rule that refused a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
#[error("{}", self.reason())]
pub enum Reject {
    /// No firmware module listens on this port.
    UnknownPort,
    /// The port has no such uplink channel.
    UnknownChannel,
    /// The channel has no such uplink command.
    UnknownCommand,
    /// A port 2 packet of another length than its command has.
    ParamLength,
    /// A set-by-name packet whose strings, type or value do not fit together.
    ParamByName,
    /// A roll-pitch-yaw-thrust setpoint that is not 14 bytes: the firmware would use stale bytes as values.
    RpytLength,
    /// A memory packet of another length than its command has.
    MemoryLength,
    /// A memory read of more than 24 bytes: the reply has no room for more.
    MemoryReadTooLong,
    /// A memory that the drone has not announced; the firmware asserts on it.
    MemoryUnknown,
    /// A log packet of another length than its command has.
    LogLength,
    /// A log variable of a type the firmware does not have: it would read past its table of sizes.
    LogType,
    /// A log block over a raw memory address (variable 0xffff): a bad address stops the firmware.
    LogRawMemory,
    /// A localization packet of another length than its type has.
    LocalizationLength,
    /// A generic setpoint without its type byte; the firmware asserts on it.
    SetpointEmpty,
    /// A generic setpoint type the firmware does not know; it would apply a null setpoint.
    SetpointType,
    /// A generic setpoint of another length than its type has; the firmware asserts on it.
    SetpointLength,
    /// A meta command of another length than 5 bytes; the firmware asserts on it.
    MetaLength,
    /// A high-level command of another length than it has: the firmware would use stale bytes as values.
    HighLevelLength,
    /// A supervisor packet of another length than its command has.
    SupervisorLength,
    /// A platform packet of another length than its command has.
    PlatformLength,
    /// A setpoint, command or external position with a NaN or an infinity in it.
    NotFinite,
}

impl Reject {
    /// Every rule, in order of [`Reject::index`].
    pub const ALL: [Self; 21] = [
        Self::UnknownPort,
        Self::UnknownChannel,
        Self::UnknownCommand,
        Self::ParamLength,
        Self::ParamByName,
        Self::RpytLength,
        Self::MemoryLength,
        Self::MemoryReadTooLong,
        Self::MemoryUnknown,
        Self::LogLength,
        Self::LogType,
        Self::LogRawMemory,
        Self::LocalizationLength,
        Self::SetpointEmpty,
        Self::SetpointType,
        Self::SetpointLength,
        Self::MetaLength,
        Self::HighLevelLength,
        Self::SupervisorLength,
        Self::PlatformLength,
        Self::NotFinite,
    ];

    /// The rule in words, for logs and statistics.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::UnknownPort => "no firmware module listens on this port",
            Self::UnknownChannel => "the port has no such uplink channel",
            Self::UnknownCommand => "the channel has no such uplink command",
            Self::ParamLength => "parameter packet of wrong length",
            Self::ParamByName => "set-by-name packet with strings, type or value that do not fit",
            Self::RpytLength => "roll-pitch-yaw-thrust setpoint is not 14 bytes",
            Self::MemoryLength => "memory packet of wrong length",
            Self::MemoryReadTooLong => "memory read of more than 24 bytes",
            Self::MemoryUnknown => "memory that the drone has not announced",
            Self::LogLength => "log packet of wrong length",
            Self::LogType => "log variable of unknown type",
            Self::LogRawMemory => "log block over a raw memory address",
            Self::LocalizationLength => "localization packet of wrong length",
            Self::SetpointEmpty => "generic setpoint without a type",
            Self::SetpointType => "generic setpoint of unknown type",
            Self::SetpointLength => "generic setpoint of wrong length for its type",
            Self::MetaLength => "setpoint meta command is not 5 bytes",
            Self::HighLevelLength => "high-level command of wrong length",
            Self::SupervisorLength => "supervisor packet of wrong length",
            Self::PlatformLength => "platform packet of wrong length",
            Self::NotFinite => "value is not a finite number",
        }
    }

    /// Position in [`Reject::ALL`], for arrays of counters.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Refused packets since the start, by rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RejectCounts([u64; Reject::ALL.len()]);

impl RejectCounts {
    /// Counts one refused packet.
    pub fn add(&mut self, reject: Reject) {
        if let Some(count) = self.0.get_mut(reject.index()) {
            *count += 1;
        }
    }

    /// Packets that this rule refused.
    #[must_use]
    pub fn get(&self, reject: Reject) -> u64 {
        self.0.get(reject.index()).copied().unwrap_or(0)
    }

    /// Packets refused by any rule.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The rules that refused something, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Reject, u64)> + '_ {
        Reject::ALL
            .into_iter()
            .zip(self.0)
            .filter(|&(_, count)| count > 0)
    }
}
