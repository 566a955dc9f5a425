//! The log file: MCAP without chunks, so that every record that was written whole can be read, however the file
//! ends and while it is still being written.
//!
//! Its channel says which host wrote it, which links it has, and what both clocks said at the start.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

use mcap::read::{LinearReader, Options};
use mcap::records::{MessageHeader, Record};
use mcap::{McapError, WriteOptions, Writer};

use super::Hop;
use super::layout::{SCHEMA, SCHEMA_NAME, decode, encode};
use crate::time::MonoNs;

const HOPS: &str = "/hops";
const DROPPED: &str = "/hops_dropped";
const DROPPED_SCHEMA: &str = "uint64 data\n";

/// Why a log cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file system refused.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// It is no packet log, not even the beginning of one.
    #[error("{path}: no packet log: {reason}")]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

/// Who wrote a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostInfo {
    /// Name.
    pub name: String,
    /// Names of the links, by [`Hop::link`].
    pub links: Vec<String>,
    /// The monotonic clock when the log began.
    pub mono: MonoNs,
    /// The wall clock at that moment, ns since 1970.
    pub unix_ns: u64,
    /// Identifies the machine's present uptime: logs with the same one share the monotonic clock. Empty: unknown.
    pub boot: String,
}

impl HostInfo {
    /// This host, now.
    pub(super) fn here(name: &str, links: &[&str]) -> Self {
        let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Self {
            name: name.to_owned(),
            links: links.iter().map(|&link| link.to_owned()).collect(),
            mono: MonoNs::now(),
            unix_ns: since_1970.map_or(0, crate::time::duration_ns),
            boot: boot_id(),
        }
    }

    /// The wall clock at `at`, ns since 1970, taken as running like the monotonic one since the log began.
    #[must_use]
    pub fn unix_ns_at(&self, at: MonoNs) -> u64 {
        let (later, earlier) = (at.since(self.mono), self.mono.since(at));
        self.unix_ns.saturating_add(later).saturating_sub(earlier)
    }

    fn to_metadata(&self) -> BTreeMap<String, String> {
        let fixed = [
            ("host".to_owned(), self.name.clone()),
            ("mono_ns".to_owned(), self.mono.0.to_string()),
            ("unix_ns".to_owned(), self.unix_ns.to_string()),
            ("boot".to_owned(), self.boot.clone()),
        ];
        let links = self.links.iter().enumerate();
        links
            .map(|(number, name)| (format!("link.{number}"), name.clone()))
            .chain(fixed)
            .collect()
    }

    fn from_metadata(metadata: &BTreeMap<String, String>) -> Option<Self> {
        let number = |key| metadata.get(key)?.parse().ok();
        Some(Self {
            name: metadata.get("host")?.clone(),
            mono: MonoNs(number("mono_ns")?),
            unix_ns: number("unix_ns")?,
            boot: metadata.get("boot").cloned().unwrap_or_default(),
            links: (0..)
                .map_while(|number| metadata.get(&format!("link.{number}")).cloned())
                .collect(),
        })
    }
}

/// The kernel's name of this uptime; empty where it does not tell.
fn boot_id() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

/// An open log.
pub(super) struct LogFile<W: Write + Seek> {
    writer: Writer<BufWriter<W>>,
    host: HostInfo,
    hops: u16,
    dropped: u16,
    sequence: u32,
}

/// Creates the file at `path` and begins a log in it.
pub(super) fn create(path: &Path, host: HostInfo) -> Result<LogFile<File>, LogError> {
    let file = File::create(path).and_then(|file| LogFile::begin(file, host));
    file.map_err(|source| LogError::Io {
        path: path.to_owned(),
        source,
    })
}

impl<W: Write + Seek> LogFile<W> {
    /// Writes what the reader must know first.
    pub(super) fn begin(file: W, host: HostInfo) -> io::Result<Self> {
        Self::open(BufWriter::new(file), host).map_err(io_error)
    }

    fn open(file: BufWriter<W>, host: HostInfo) -> Result<Self, McapError> {
        let options = WriteOptions::new()
            .use_chunks(false)
            .compression(None)
            .profile("ros2")
            .library(concat!("crazyflie_openlink ", env!("CARGO_PKG_VERSION")));
        let mut writer = options.create(file)?;
        let schema = writer.add_schema(SCHEMA_NAME, "ros2msg", SCHEMA.as_bytes())?;
        let hops = writer.add_channel(schema, HOPS, "cdr", &host.to_metadata())?;
        let schema =
            writer.add_schema("std_msgs/msg/UInt64", "ros2msg", DROPPED_SCHEMA.as_bytes())?;
        let dropped = writer.add_channel(schema, DROPPED, "cdr", &BTreeMap::new())?;
        writer.flush()?;
        Ok(Self {
            writer,
            host,
            hops,
            dropped,
            sequence: 0,
        })
    }

    pub(super) fn write(&mut self, hop: &Hop) -> io::Result<()> {
        self.put(self.hops, hop.at, &encode(hop))
    }

    /// Notes how many records were dropped since the start.
    pub(super) fn write_dropped(&mut self, dropped: u64, now: MonoNs) -> io::Result<()> {
        let mut data = [0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        data[4..].copy_from_slice(&dropped.to_le_bytes());
        self.put(self.dropped, now, &data)
    }

    fn put(&mut self, channel_id: u16, at: MonoNs, data: &[u8]) -> io::Result<()> {
        let time = self.host.unix_ns_at(at);
        self.sequence = self.sequence.wrapping_add(1);
        let header = MessageHeader {
            channel_id,
            sequence: self.sequence,
            log_time: time,
            publish_time: time,
        };
        self.writer
            .write_to_known_channel(&header, data)
            .map_err(io_error)
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.writer.flush().map_err(io_error)
    }

    /// Writes the summary that lets other tools seek.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.writer.finish().map_err(io_error)?;
        self.writer.into_inner().flush()
    }
}

fn io_error(error: McapError) -> io::Error {
    match error {
        McapError::Io(error) => error,
        other => io::Error::other(other.to_string()),
    }
}

/// What a log holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Who wrote it.
    pub host: HostInfo,
    /// In the order of their times.
    pub hops: Vec<Hop>,
    /// Records that were dropped while writing.
    pub dropped: u64,
    /// The file ends before its end mark: the writer still runs, or it was cut off.
    pub cut: bool,
    /// Records of other versions or other programs.
    pub foreign: u64,
}

/// Reads a log.
///
/// # Errors
/// Unreadable, or no packet log.
pub fn read(path: &Path) -> Result<Contents, LogError> {
    let bytes = std::fs::read(path).map_err(|source| LogError::Io {
        path: path.to_owned(),
        source,
    })?;
    read_bytes(&bytes).map_err(|reason| LogError::Format {
        path: path.to_owned(),
        reason,
    })
}

/// Reads a log from memory: all records up to the first that is damaged or cut.
///
/// # Errors
/// The bytes do not even begin like a packet log.
pub fn read_bytes(bytes: &[u8]) -> Result<Contents, String> {
    let mut found = Contents {
        cut: true,
        ..Contents::default()
    };
    let mut channels = (None, None);
    let reader = LinearReader::new_with_options(bytes, Options::IgnoreEndMagic.into());
    for record in reader.map_err(|error| error.to_string())? {
        match record {
            Ok(Record::Channel(channel)) if channel.topic == HOPS => {
                let host = HostInfo::from_metadata(&channel.metadata);
                found.host = host.ok_or("its channel names no host")?;
                channels.0 = Some(channel.id);
            }
            Ok(Record::Channel(channel)) if channel.topic == DROPPED => {
                channels.1 = Some(channel.id)
            }
            Ok(Record::Message { header, data }) => found.take(channels, header.channel_id, &data),
            Ok(Record::DataEnd(_)) => found.cut = false,
            Ok(_) => {}
            Err(_) => break,
        }
    }
    if channels.0.is_none() {
        return Err("it ends before its first record".to_owned());
    }
    found.hops.sort_by_key(|hop| hop.at);
    Ok(found)
}

impl Contents {
    fn take(&mut self, channels: (Option<u16>, Option<u16>), channel: u16, data: &[u8]) {
        if channels.0 == Some(channel) {
            match decode(data) {
                Some(hop) => self.hops.push(hop),
                None => self.foreign += 1,
            }
        } else if let (true, Some(count)) = (channels.1 == Some(channel), data.last_chunk()) {
            self.dropped = u64::from_le_bytes(*count);
        } else {
            self.foreign += 1;
        }
    }
}
