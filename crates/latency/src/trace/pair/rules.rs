//! What the bytes of a CRTP packet say about answers: firmware answers on the request's port and channel and repeats
//! the beginning of its data (`crtp_parameter` and its kin in the firmware's `modules/src`).

use crate::record::{Hop, Reason};

/// Port and channel, reserved bits clear.
pub(super) const fn kind(hop: &Hop) -> u8 {
    hop.data[0] & 0xf3
}

fn data(hop: &Hop) -> &[u8] {
    hop.bytes().get(1..).unwrap_or_default()
}

/// How many data bytes the answer repeats; `None` for a packet without an answer.
fn repeats(hop: &Hop) -> Option<usize> {
    let length = data(hop).len();
    match kind(hop) {
        // Link echo: all of it. Source: nothing.
        0xf0 => Some(length),
        0xf1 => Some(0),
        // Tables of contents: command and index. Parameters: number, or command and number.
        0x20 | 0x23 | 0x50 => Some(length.min(3)),
        0x21 | 0x22 => Some(length.min(2)),
        // Log control: command and block.
        0x51 => Some(length.min(2)),
        // Memories: command; memory and address.
        0x40 => Some(length.min(1)),
        0x41 | 0x42 => Some(length.min(5)),
        // High-level commander, platform, supervisor: command.
        0x80 | 0xd0 | 0xd1 | 0x90 | 0x91 => Some(length.min(1)),
        _ => None,
    }
}

/// Whether the drone answers a packet to it.
pub(in crate::trace) fn wants_answer(hop: &Hop) -> bool {
    repeats(hop).is_some()
}

/// Why a packet without an answer is sent.
pub(super) fn reason(hop: &Hop) -> Reason {
    match (kind(hop), data(hop).first()) {
        (0xf3, _) => Reason::Null,
        (0x30 | 0x70 | 0x60 | 0x62, _) | (0x61, Some(8 | 9)) => Reason::Setpoint,
        _ => Reason::Command,
    }
}

/// Whether `answer` begins as an answer to `request` does. The supervisor sets the command's top bit.
pub(super) fn answers(request: &Hop, answer: &Hop) -> bool {
    let Some(length) = repeats(request) else {
        return false;
    };
    let mask = if request.port() == 9 { 0x7f } else { 0xff };
    let (asked, given) = (data(request), data(answer));
    let pairs = asked.iter().zip(given).take(length);
    kind(request) == kind(answer)
        && given.len() >= length
        && pairs.enumerate().all(|(at, (a, b))| {
            if at == 0 {
                a & mask == b & mask
            } else {
                a == b
            }
        })
}
