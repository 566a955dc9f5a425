//! The exact lengths of every uplink packet a drone may be sent, port by port. Pure functions of the packet
//! and of the number of memories the drone has announced; nothing here changes or builds a packet.
//!
//! The lengths follow the structures of the firmware's port handlers. Where a handler reads fields without
//! looking at the length, a short packet makes it use bytes of an earlier one, and some handlers assert.

use super::Reject;
use crate::packet::Packet;

/// Longest memory read: the reply carries id, address and status before the data.
const MAX_MEMORY_READ: u8 = 24;
/// Longest memory write: id and address precede the data.
const MAX_MEMORY_WRITE: usize = 25;

/// The rule that refuses this packet, if any. `memories` is the number of memories the drone has announced.
pub(super) fn check(packet: &Packet, memories: Option<u8>) -> Result<(), Reject> {
    let data = packet.data();
    let channel = packet.channel().number();
    match packet.port().number() {
        2 => param(channel, data),
        3 => rpyt(channel, data),
        4 => memory(channel, data, memories),
        5 => log(channel, data),
        6 => localization(channel, data),
        7 => generic(channel, data),
        8 => high_level(channel, data),
        9 => supervisor(channel, data),
        13 => platform(channel, data),
        15 => Ok(()),
        _ => Err(Reject::UnknownPort),
    }
}

fn ensure(holds: bool, otherwise: Reject) -> Result<(), Reject> {
    if holds { Ok(()) } else { Err(otherwise) }
}

/// `count` little-endian floats from byte `from` on are numbers.
fn finite(data: &[u8], from: usize, count: usize) -> Result<(), Reject> {
    let floats = data.get(from..from + 4 * count).unwrap_or(&[]);
    let all = floats
        .chunks_exact(4)
        .all(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]).is_finite());
    ensure(all, Reject::NotFinite)
}

/// A table of contents request: `short` for a missing or wrong length.
fn toc(data: &[u8], short: Reject) -> Result<(), Reject> {
    let length = match data.first() {
        None => return Err(short),
        Some(0) => 2,
        Some(1 | 3) => 1,
        Some(2) => 3,
        Some(_) => return Err(Reject::UnknownCommand),
    };
    ensure(data.len() == length, short)
}

fn param(channel: u8, data: &[u8]) -> Result<(), Reject> {
    match channel {
        0 => toc(data, Reject::ParamLength),
        1 => ensure(data.len() == 2, Reject::ParamLength),
        2 => ensure(matches!(data.len(), 3 | 4 | 6 | 10), Reject::ParamLength),
        _ => match data.first() {
            None => Err(Reject::ParamLength),
            Some(0) => ensure(is_set_by_name(&data[1..]), Reject::ParamByName),
            Some(2..=8) => ensure(data.len() == 3, Reject::ParamLength),
            Some(_) => Err(Reject::UnknownCommand),
        },
    }
}

/// `group\0 name\0 type value`, the value as long as its type says.
fn is_set_by_name(data: &[u8]) -> bool {
    let mut parts = data.splitn(3, |&byte| byte == 0);
    let (Some(group), Some(name), Some([kind, value @ ..])) =
        (parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let length = match kind & 0x0f {
        0x0 | 0x8 => 1,
        0x1 | 0x9 | 0x5 => 2,
        0x2 | 0xa | 0x6 => 4,
        0x3 | 0xb | 0x7 => 8,
        _ => return false,
    };
    !group.is_empty() && !name.is_empty() && value.len() == length
}

fn rpyt(channel: u8, data: &[u8]) -> Result<(), Reject> {
    ensure(channel == 0, Reject::UnknownChannel)?;
    ensure(data.len() == 14, Reject::RpytLength)?;
    finite(data, 0, 3)
}

fn memory(channel: u8, data: &[u8], memories: Option<u8>) -> Result<(), Reject> {
    let known = |id: u8| ensure(memories.is_some_and(|n| id < n), Reject::MemoryUnknown);
    match (channel, data) {
        (0, [1]) => Ok(()),
        (0, [2, id]) => known(*id),
        (0, [] | [1 | 2, ..]) => Err(Reject::MemoryLength),
        (0, _) => Err(Reject::UnknownCommand),
        (1, [id, _, _, _, _, length]) => {
            ensure(*length <= MAX_MEMORY_READ, Reject::MemoryReadTooLong)?;
            known(*id)
        }
        (2, [id, _, _, _, _, data @ ..]) if (1..=MAX_MEMORY_WRITE).contains(&data.len()) => {
            known(*id)
        }
        (1 | 2, _) => Err(Reject::MemoryLength),
        _ => Err(Reject::UnknownChannel),
    }
}

fn log(channel: u8, data: &[u8]) -> Result<(), Reject> {
    match channel {
        0 => toc(data, Reject::LogLength),
        1 => log_control(data),
        _ => Err(Reject::UnknownChannel),
    }
}

fn log_control(data: &[u8]) -> Result<(), Reject> {
    let length = data.len();
    let fits = match data.first() {
        None => false,
        // Commands 0 and 1 are of protocols before 4; the firmware answers "unknown command".
        Some(0 | 1) => length >= 2 && length.is_multiple_of(2),
        Some(2 | 4) => length == 2,
        Some(3) => length == 3,
        Some(5) => length == 1,
        Some(6 | 7) => return log_variables(data),
        Some(8) => length == 4,
        Some(_) => return Err(Reject::UnknownCommand),
    };
    ensure(fits, Reject::LogLength)
}

/// Entries of a type byte and an id. cflib writes the type byte of a tenth variable before it sees that there
/// is no room for it, and the firmware ignores that byte: 28 bytes of entries pass, too.
fn log_variables(data: &[u8]) -> Result<(), Reject> {
    let entries = data.get(2..).ok_or(Reject::LogLength)?;
    let fits = entries.len().is_multiple_of(3) || entries.len() == 28;
    ensure(fits, Reject::LogLength)?;
    for entry in entries.chunks_exact(3) {
        ensure(matches!(entry[0] & 0x0f, 1..=8), Reject::LogType)?;
        ensure(entry[1..] != [0xff, 0xff], Reject::LogRawMemory)?;
    }
    Ok(())
}

fn localization(channel: u8, data: &[u8]) -> Result<(), Reject> {
    let length = data.len();
    match channel {
        0 => {
            ensure(length == 12, Reject::LocalizationLength)?;
            finite(data, 0, 3)
        }
        1 => localization_generic(data),
        2 => ensure(
            length.is_multiple_of(7) && (1..=4).contains(&(length / 7)),
            Reject::LocalizationLength,
        ),
        _ => Err(Reject::UnknownChannel),
    }
}

fn localization_generic(data: &[u8]) -> Result<(), Reject> {
    let length = data.len();
    let fits = match data.first() {
        None => false,
        Some(2) => length >= 2,
        Some(3 | 4) => length == 1,
        Some(8) => length == 29,
        Some(9) => matches!(length, 12 | 23),
        Some(11) => length == 5,
        Some(_) => return Err(Reject::UnknownCommand),
    };
    ensure(fits, Reject::LocalizationLength)?;
    match data {
        [8, ..] => finite(data, 1, 7),
        _ => Ok(()),
    }
}

fn generic(channel: u8, data: &[u8]) -> Result<(), Reject> {
    match (channel, data) {
        (0, []) => Err(Reject::SetpointEmpty),
        (0, [kind, ..]) => generic_setpoint(*kind, data),
        (1, [] | [0, ..]) => ensure(data.len() == 5, Reject::MetaLength),
        (1, _) => Err(Reject::UnknownCommand),
        _ => Err(Reject::UnknownChannel),
    }
}

fn generic_setpoint(kind: u8, data: &[u8]) -> Result<(), Reject> {
    let (length, floats) = match kind {
        0 => (1, 0),
        1 | 2 | 4 | 5 | 7..=10 => (17, 4),
        3 => (cppm_length(data)?, 0),
        6 => (29, 0),
        11 => (16, 3),
        _ => return Err(Reject::SetpointType),
    };
    ensure(data.len() == length, Reject::SetpointLength)?;
    finite(data, 1, floats)
}

/// Type 3: type, a byte with the number of auxiliary channels (at most 10) in its low nibble, four `u16`, and
/// the auxiliary `u16`s.
fn cppm_length(data: &[u8]) -> Result<usize, Reject> {
    match data.get(1).map(|byte| usize::from(byte & 0x0f)) {
        Some(count @ 0..=10) => Ok(10 + 2 * count),
        _ => Err(Reject::SetpointLength),
    }
}

fn high_level(channel: u8, data: &[u8]) -> Result<(), Reject> {
    ensure(channel == 0, Reject::UnknownChannel)?;
    // Length and the places of the floats: (first byte, number).
    let (length, floats): (usize, &[(usize, usize)]) = match data.first() {
        None => return Err(Reject::HighLevelLength),
        Some(0 | 3) => (2, &[]),
        Some(1 | 2) => (10, &[(2, 2)]),
        Some(4) => (23, &[(3, 5)]),
        Some(5) => (9, &[(5, 1)]),
        Some(6) => (9, &[]),
        Some(7 | 8) => (15, &[(2, 2), (11, 1)]),
        Some(9 | 10) => (16, &[(2, 1), (7, 1), (12, 1)]),
        Some(11 | 12) => (24, &[(4, 5)]),
        Some(13) => (10, &[(6, 1)]),
        Some(_) => return Err(Reject::UnknownCommand),
    };
    ensure(data.len() == length, Reject::HighLevelLength)?;
    floats
        .iter()
        .try_for_each(|&(from, count)| finite(data, from, count))
}

fn supervisor(channel: u8, data: &[u8]) -> Result<(), Reject> {
    let length = match (channel, data.first()) {
        (0 | 1, None) => return Err(Reject::SupervisorLength),
        (0, Some(1..=12)) => 1,
        (1, Some(1)) => 2,
        (1, Some(2..=4)) => 1,
        (0 | 1, Some(_)) => return Err(Reject::UnknownCommand),
        _ => return Err(Reject::UnknownChannel),
    };
    ensure(data.len() == length, Reject::SupervisorLength)
}

fn platform(channel: u8, data: &[u8]) -> Result<(), Reject> {
    let length = match (channel, data.first()) {
        (0 | 1, None) => return Err(Reject::PlatformLength),
        (0, Some(0 | 1 | 3)) => 2,
        (0, Some(2)) | (1, Some(0..=2)) => 1,
        (0 | 1, Some(_)) => return Err(Reject::UnknownCommand),
        (2, _) => return Ok(()),
        _ => return Err(Reject::UnknownChannel),
    };
    ensure(data.len() == length, Reject::PlatformLength)
}
