//! Probes as bytes, for links that carry bytes: the full header of our own transport, and the short tag that fits
//! into a Crazyflie's link echo. Also the relay's side.
//!
//! ROS topics carry the same values as message fields instead.

use crate::probe::{Echo, HELLO, Probe};
use crate::time::MonoNs;

/// First bytes of a full header.
const MAGIC: [u8; 4] = *b"RTT1";
/// Bytes of a full header; payloads of this and more can carry one.
pub const HEADER_LEN: usize = 52;
/// Bytes of a short tag.
pub const TAG_LEN: usize = 8;
/// A short tag's sequence number has this bit where a full one has [`HELLO`].
const TAG_HELLO: u32 = 1 << 31;

// Layout of a full header, little endian: magic, run, sequence, intended, sent, relay received, relay sent.
const RUN: usize = 4;
const SEQUENCE: usize = 12;
const INTENDED: usize = 20;
const SENT: usize = 28;
const RELAY_RECEIVED: usize = 36;
const RELAY_SENT: usize = 44;

/// Writes the header of `probe` to the front of `payload`; false (and nothing written) when it does not fit.
#[must_use]
pub fn write_header(payload: &mut [u8], probe: &Probe) -> bool {
    let Some(header) = payload.first_chunk_mut::<HEADER_LEN>() else {
        return false;
    };
    header[..RUN].copy_from_slice(&MAGIC);
    put(header, RUN, probe.run_id);
    put(header, SEQUENCE, probe.sequence);
    put(header, INTENDED, probe.intended.0);
    put(header, SENT, probe.sent.0);
    put(header, RELAY_RECEIVED, 0);
    put(header, RELAY_SENT, 0);
    true
}

/// Reads an echo that carries a full header; `None` when it is no such payload.
#[must_use]
pub fn read_header(payload: &[u8]) -> Option<Echo> {
    let header = payload.first_chunk::<HEADER_LEN>()?;
    if header[..RUN] != MAGIC {
        return None;
    }
    let (received, sent) = (get(header, RELAY_RECEIVED), get(header, RELAY_SENT));
    Some(Echo {
        run_id: get(header, RUN),
        sequence: get(header, SEQUENCE),
        relay: (sent != 0).then_some((MonoNs(received), MonoNs(sent))),
        bytes: payload.len(),
    })
}

/// The relay's part: writes when the probe was received and when its echo leaves. False when `payload` is no
/// probe, or is already an echo (so that two relays never bounce one probe for ever).
#[must_use]
pub fn stamp_echo(payload: &mut [u8], received: MonoNs, sent: MonoNs) -> bool {
    let fresh = read_header(payload).is_some_and(|echo| echo.relay.is_none());
    if let (true, Some(header)) = (fresh, payload.first_chunk_mut::<HEADER_LEN>()) {
        put(header, RELAY_RECEIVED, received.0);
        put(header, RELAY_SENT, sent.0.max(1));
    }
    fresh
}

/// The short tag of a probe: the low halves of run and sequence, little endian.
#[must_use]
pub fn tag(probe: &Probe) -> [u8; TAG_LEN] {
    let hello = if probe.sequence >= HELLO {
        TAG_HELLO
    } else {
        0
    };
    let sequence = (probe.sequence as u32 & !TAG_HELLO) | hello;
    let mut tag = [0; TAG_LEN];
    tag[..4].copy_from_slice(&(probe.run_id as u32).to_le_bytes());
    tag[4..].copy_from_slice(&sequence.to_le_bytes());
    tag
}

/// Reads an echo that carries a short tag. Only the low half of `run_id` was sent; an equal half stands for the
/// whole, another one for a foreign run. `None` when it is too short.
#[must_use]
pub fn read_tag(payload: &[u8], run_id: u64) -> Option<Echo> {
    let (run, rest) = payload.split_first_chunk::<4>()?;
    let sequence = u32::from_le_bytes(*rest.first_chunk::<4>()?);
    let same = u32::from_le_bytes(*run) == run_id as u32;
    let hello = if sequence & TAG_HELLO == 0 { 0 } else { HELLO };
    Some(Echo {
        run_id: if same { run_id } else { !run_id },
        sequence: u64::from(sequence & !TAG_HELLO) | hello,
        relay: None,
        bytes: payload.len(),
    })
}

fn put(header: &mut [u8; HEADER_LEN], at: usize, value: u64) {
    if let Some(field) = header.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *field = value.to_le_bytes();
    }
}

fn get(header: &[u8; HEADER_LEN], at: usize) -> u64 {
    let field = header.get(at..).and_then(<[u8]>::first_chunk);
    field.map_or(0, |field| u64::from_le_bytes(*field))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn probe(sequence: u64) -> Probe {
        Probe {
            run_id: 0x1122_3344_5566_7788,
            sequence,
            intended: MonoNs(10),
            sent: MonoNs(20),
            bytes: 64,
        }
    }

    #[test]
    fn a_header_goes_out_and_comes_back_with_the_relays_times() {
        let mut payload = [7; 64];
        assert!(write_header(&mut payload, &probe(9)));
        assert_eq!(read_header(&payload).map(|echo| echo.relay), Some(None));
        assert!(stamp_echo(&mut payload, MonoNs(100), MonoNs(150)));
        let echo = read_header(&payload).unwrap();
        assert_eq!(
            (echo.run_id, echo.sequence, echo.bytes),
            (probe(9).run_id, 9, 64)
        );
        assert_eq!(echo.relay, Some((MonoNs(100), MonoNs(150))));
        assert!(payload[HEADER_LEN..].iter().all(|&byte| byte == 7));
    }

    #[test]
    fn the_layout_stays_as_it_is() {
        let mut payload = [0; HEADER_LEN];
        assert!(write_header(&mut payload, &probe(0x0102)));
        assert_eq!(
            &payload[..14],
            b"RTT1\x88\x77\x66\x55\x44\x33\x22\x11\x02\x01"
        );
        assert_eq!((payload[20], payload[28]), (10, 20));
    }

    #[test]
    fn an_echo_is_not_echoed_again() {
        let mut payload = [0; 52];
        assert!(write_header(&mut payload, &probe(1)));
        assert!(stamp_echo(&mut payload, MonoNs(0), MonoNs(0)));
        assert!(!stamp_echo(&mut payload, MonoNs(5), MonoNs(6)));
    }

    #[test]
    fn a_tag_keeps_run_sequence_and_hello_apart() {
        for sequence in [0, 77, HELLO, HELLO + 3] {
            let mut payload = tag(&probe(sequence)).to_vec();
            payload.extend([0; 8]);
            let echo = read_tag(&payload, probe(0).run_id).unwrap();
            assert_eq!(
                (echo.run_id, echo.sequence, echo.bytes),
                (probe(0).run_id, sequence, 16)
            );
            assert_ne!(read_tag(&payload, 5).unwrap().run_id, 5);
        }
        assert_eq!(read_tag(&[0; 7], 5), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut copy = bytes.clone();
            let _ = (read_header(&bytes), read_tag(&bytes, 1), stamp_echo(&mut copy, MonoNs(1), MonoNs(2)));
            prop_assert_eq!(copy.len(), bytes.len());
        }
    }
}
