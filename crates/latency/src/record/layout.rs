//! A hop as bytes: the CDR encoding (XCDR1, little endian) of the message that [`SCHEMA`] defines, so that every
//! reader of ROS messages can decode it.

use super::{DATA_LEN, Direction, Hop, Reason, Stage, Verdict};
use crate::time::MonoNs;

/// Name of the message.
pub const SCHEMA_NAME: &str = "crazyflie_openlink/msg/Hop";
/// Its definition. Codes are those of the enums, in the order of their variants.
pub const SCHEMA: &str = "\
int64 at_ns
uint64 packet
uint16 size
uint8 stage
uint8 direction
uint8 link
uint8 attempt
uint8 reason
uint8 verdict
uint8[32] data
";
/// CDR, little endian, no options.
const ENCAPSULATION: [u8; 4] = [0, 1, 0, 0];
/// Bytes of an encoded hop.
pub const HOP_LEN: usize = 4 + 8 + 8 + 2 + 6 + DATA_LEN;

/// Encodes a hop. Each field falls on its alignment, so there is no padding.
pub(super) fn encode(hop: &Hop) -> [u8; HOP_LEN] {
    let mut bytes = [0; HOP_LEN];
    let codes = [
        hop.stage as u8,
        hop.direction as u8,
        hop.link,
        hop.attempt,
        hop.reason as u8,
        hop.verdict as u8,
    ];
    bytes[..4].copy_from_slice(&ENCAPSULATION);
    bytes[4..12].copy_from_slice(&hop.at.0.to_le_bytes());
    bytes[12..20].copy_from_slice(&hop.packet.to_le_bytes());
    bytes[20..22].copy_from_slice(&hop.size.to_le_bytes());
    bytes[22..28].copy_from_slice(&codes);
    bytes[28..].copy_from_slice(&hop.data);
    bytes
}

/// Decodes a hop; `None` when the bytes are no hop of this version.
pub(super) fn decode(bytes: &[u8]) -> Option<Hop> {
    let bytes: &[u8; HOP_LEN] = bytes.try_into().ok()?;
    let rest = bytes.strip_prefix(&ENCAPSULATION)?;
    let (at, rest) = rest.split_first_chunk()?;
    let (packet, rest) = rest.split_first_chunk()?;
    let (size, rest) = rest.split_first_chunk()?;
    let (&[stage, direction, link, attempt, reason, verdict], data) = rest.split_first_chunk()?;
    Some(Hop {
        at: MonoNs(u64::from_le_bytes(*at)),
        packet: u64::from_le_bytes(*packet),
        size: u16::from_le_bytes(*size),
        stage: Stage::from_code(stage)?,
        direction: Direction::from_code(direction)?,
        link,
        attempt,
        reason: Reason::from_code(reason)?,
        verdict: Verdict::from_code(verdict)?,
        data: data.try_into().ok()?,
    })
}
