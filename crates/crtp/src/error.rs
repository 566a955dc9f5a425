//! The two ways a layout can fail: bytes that are no such packet, and values that no packet can carry.

use crate::version::ProtocolVersion;

/// Why a packet is not what it was taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Another port or channel.
    #[error("{what}: header {header:#04x} is of another port or channel")]
    Kind {
        /// What it was taken for.
        what: &'static str,
        /// The header byte as received.
        header: u8,
    },
    /// Too few bytes, or (for requests) too many.
    #[error("{what}: no such packet has {got} data bytes")]
    Length {
        /// What it was taken for.
        what: &'static str,
        /// Data bytes behind the header.
        got: usize,
    },
    /// The first data byte names no command or type known here.
    #[error("{what}: unknown command or type {command}")]
    Command {
        /// What it was taken for.
        what: &'static str,
        /// The byte.
        command: u8,
    },
    /// A float that has to be a number is NaN or infinite.
    #[error("{what}: {field} is not a finite number")]
    NotFinite {
        /// What it was taken for.
        what: &'static str,
        /// The field's name.
        field: &'static str,
    },
    /// A text without its closing zero byte.
    #[error("{what}: text is not closed by a zero byte")]
    Text {
        /// What it was taken for.
        what: &'static str,
    },
}

/// Why a value cannot be put into a packet.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ValueError {
    /// NaN or infinite.
    #[error("{field} must be a finite number, got {value}")]
    NotFinite {
        /// The field's name.
        field: &'static str,
        /// The value.
        value: f64,
    },
    /// More bytes or entries than the packet holds.
    #[error("{field} has {got}, at most {max} fit")]
    TooLong {
        /// The field's name.
        field: &'static str,
        /// Bytes or entries given.
        got: usize,
        /// Bytes or entries that fit.
        max: usize,
    },
    /// Outside of the allowed range.
    #[error("{field} must be between {min} and {max}, got {value}")]
    Range {
        /// The field's name.
        field: &'static str,
        /// The value.
        value: f64,
        /// Smallest allowed value.
        min: f64,
        /// Largest allowed value.
        max: f64,
    },
    /// A text that is empty or has a zero byte or a character outside of Latin-1 in it.
    #[error("{field} must be a text of 1 or more Latin-1 characters without a zero")]
    Text {
        /// The field's name.
        field: &'static str,
    },
    /// A curve has 0, 1, 3 or 7 control points.
    #[error("{field} must have 0, 1, 3 or 7 control points, got {got}")]
    ControlPoints {
        /// The axis.
        field: &'static str,
        /// Points given.
        got: usize,
    },
    /// The drone's protocol version has no packet for this.
    #[error("{what} needs protocol version {since} or later, the drone has {version}")]
    Version {
        /// The wish.
        what: &'static str,
        /// First version that has it.
        since: u32,
        /// The drone's.
        version: ProtocolVersion,
    },
}
