//! A capture that Wireshark opens, with the header in front of each packet that Bitcraze's tools put there.
//!
//! Blocks as in the pcapng specification (draft-ietf-opsawg-pcapng): section header, one interface for each stage,
//! enhanced packets with nanosecond stamps of the wall clock.

use std::io::{self, Write};

use crate::record::{Direction, Hop, Stage};
use crate::trace::Trace;

/// Link types for private use, see the list of link-layer header types of tcpdump.org.
const USER0: u16 = 147;
const USER15: u16 = 162;
/// A radio with a five-byte address.
const LINK_RADIO: u8 = 1;
/// The address of a drone as it comes out of the box.
const ADDRESS: [u8; 5] = [0xe7; 5];

/// What stands in front of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// 9 bytes, as the dissector that comes with the Python library reads them: link type, received, address (5),
    /// channel, device.
    Dissector,
    /// 41 bytes, as the capture of the Rust link library sends them: link type, direction, address (12), channel,
    /// serial (16), microseconds since 1970, length.
    Capture,
}

impl Header {
    const fn link_type(self) -> u16 {
        match self {
            Self::Dissector => USER15,
            Self::Capture => USER0,
        }
    }

    fn bytes(self, hop: &Hop, host: usize, unix_ns: u64) -> Vec<u8> {
        let received = u8::from(hop.direction == Direction::Down);
        let device = u8::try_from(host).unwrap_or(u8::MAX);
        let mut bytes = vec![LINK_RADIO, received];
        bytes.extend(ADDRESS);
        match self {
            Self::Dissector => bytes.extend([hop.link, device]),
            Self::Capture => {
                bytes.extend([0; 7]);
                bytes.push(hop.link);
                let mut serial = format!("host{host} {}", hop.stage.name()).into_bytes();
                serial.resize(16, 0);
                bytes.extend(serial);
                bytes.extend((unix_ns / 1000).to_le_bytes());
                bytes.extend((hop.bytes().len() as u16).to_le_bytes());
            }
        }
        bytes
    }
}

/// Writes the records of `stage`, or of all stages; each stage is an interface of its own.
///
/// # Errors
/// What `to` says.
pub fn pcapng(
    trace: &Trace,
    header: Header,
    stage: Option<Stage>,
    mut to: impl Write,
) -> io::Result<()> {
    let stages: Vec<Stage> = match stage {
        Some(stage) => vec![stage],
        None => Stage::ALL
            .iter()
            .copied()
            .filter(|stage| trace.has(*stage))
            .collect(),
    };
    block(&mut to, 0x0a0d_0d0a, &section())?;
    for stage in &stages {
        block(&mut to, 1, &interface(header, stage.name()))?;
    }
    let mut records: Vec<(u64, u32, usize, &Hop)> = trace
        .hops
        .iter()
        .filter_map(|(host, hop)| {
            let number = (0..)
                .zip(&stages)
                .find(|(_, stage)| **stage == hop.stage)?
                .0;
            Some((trace.hosts[*host].unix_ns_at(hop.at), number, *host, hop))
        })
        .collect();
    records.sort_by_key(|(time, number, ..)| (*time, *number));
    for (time, number, host, hop) in records {
        let mut data = header.bytes(hop, host, time);
        data.extend(hop.bytes());
        block(&mut to, 6, &packet(number, time, &data))?;
    }
    to.flush()
}

/// Byte order, version 1.0, length of the section not given.
fn section() -> Vec<u8> {
    let mut body = 0x1a2b_3c4d_u32.to_le_bytes().to_vec();
    body.extend([1, 0, 0, 0]);
    body.extend([0xff; 8]);
    body
}

/// Link type, no limit of the length, its name, nanoseconds.
fn interface(header: Header, name: &str) -> Vec<u8> {
    let mut body = header.link_type().to_le_bytes().to_vec();
    body.extend([0; 6]);
    option(&mut body, 2, name.as_bytes());
    option(&mut body, 9, &[9]);
    option(&mut body, 0, &[]);
    body
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    pad(body);
}

fn packet(interface: u32, time: u64, data: &[u8]) -> Vec<u8> {
    let mut body = interface.to_le_bytes().to_vec();
    body.extend(((time >> 32) as u32).to_le_bytes());
    body.extend((time as u32).to_le_bytes());
    body.extend((data.len() as u32).to_le_bytes());
    body.extend((data.len() as u32).to_le_bytes());
    body.extend(data);
    pad(&mut body);
    body
}

fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}

fn block(to: &mut impl Write, kind: u32, body: &[u8]) -> io::Result<()> {
    let length = (body.len() as u32 + 12).to_le_bytes();
    to.write_all(&kind.to_le_bytes())?;
    to.write_all(&length)?;
    to.write_all(body)?;
    to.write_all(&length)
}
