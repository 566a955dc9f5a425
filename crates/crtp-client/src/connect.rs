//! The connecting sequence: link source, protocol version, log reset, then both tables and the memories side by
//! side, one request on each port. It ends with tables or with a reason.

use std::collections::VecDeque;

use crtp::memory::{Details, InfoReply, InfoRequest};
use crtp::toc::Table as Which;
use crtp::{Packet, ProtocolVersion, link_service, log, platform};

use crate::core::{Core, Purpose};
use crate::event::DisconnectReason;
use crate::table::Table;
use crate::table::cache::TableCache;
use crate::table::fetch::{Fetch, FetchStep};

/// Steps of connecting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectStep {
    Source,
    Version,
    LogReset,
    Table(Which, FetchStep),
    MemoryCount,
    Memory(u8),
}

impl ConnectStep {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Source => "the link source request",
            Self::Version => "the protocol version",
            Self::LogReset => "the log reset",
            Self::Table(which, step) => step.name(which),
            Self::MemoryCount => "the number of memories",
            Self::Memory(_) => "a memory's description",
        }
    }

    pub(crate) fn accepts(self, packet: &Packet) -> bool {
        match self {
            Self::Table(_, step) => step.accepts(packet),
            _ => true,
        }
    }
}

/// What connecting found out.
pub(crate) struct Found {
    pub(crate) version: ProtocolVersion,
    pub(crate) log: Table,
    pub(crate) param: Table,
    pub(crate) memories: Vec<Details>,
    pub(crate) from_cache: bool,
}

/// One attempt to connect.
pub(crate) struct Connecting {
    version: ProtocolVersion,
    tables: [Fetch; 2],
    memories: Vec<Details>,
    memories_left: VecDeque<u8>,
    memories_known: bool,
}

impl Connecting {
    /// Starts an attempt.
    pub(crate) fn start(core: &mut Core<'_>) -> Self {
        let purpose = Purpose::Connect(ConnectStep::Source);
        core.ask(link_service::Request::Source.encode(), 0, purpose);
        let version = ProtocolVersion::OLDEST;
        Self {
            version,
            tables: [
                Fetch::new(Which::Log, version),
                Fetch::new(Which::Param, version),
            ],
            memories: Vec::new(),
            memories_left: VecDeque::new(),
            memories_known: false,
        }
    }

    /// Takes an answer and asks the next question; says what was found once there is none.
    pub(crate) fn on_answer(
        &mut self,
        core: &mut Core<'_>,
        cache: &mut dyn TableCache,
        step: ConnectStep,
        packet: &Packet,
    ) -> Result<Option<Found>, DisconnectReason> {
        let nonsense = |error: crtp::ParseError| DisconnectReason::Nonsense {
            what: step.name(),
            detail: error.to_string(),
        };
        match step {
            ConnectStep::Source => {
                if !link_service::is_crazyflie(packet).map_err(nonsense)? {
                    return Err(DisconnectReason::NotACrazyflie);
                }
                ask_version(core);
            }
            ConnectStep::Version => {
                let reply = platform::VersionReply::parse(packet).map_err(nonsense)?;
                self.on_version(core, &reply)?;
            }
            ConnectStep::LogReset => self.ask_tables(core),
            ConnectStep::Table(which, step) => {
                self.tables[which as usize].on_answer(core, cache, step, packet)?;
            }
            ConnectStep::MemoryCount | ConnectStep::Memory(_) => {
                self.on_memory(core, InfoReply::parse(packet).map_err(nonsense)?);
            }
        }
        Ok(self.found())
    }

    fn on_version(
        &mut self,
        core: &mut Core<'_>,
        reply: &platform::VersionReply,
    ) -> Result<(), DisconnectReason> {
        let platform::VersionReply::Protocol(version) = *reply else {
            return Ok(());
        };
        if version < ProtocolVersion::OLDEST {
            return Err(DisconnectReason::TooOld(version));
        }
        if version > ProtocolVersion::NEWEST {
            core.notice(format!(
                "protocol version {version} is newer than {}; going on as if it were the same",
                ProtocolVersion::NEWEST
            ));
        }
        self.version = version;
        self.tables = [
            Fetch::new(Which::Log, version),
            Fetch::new(Which::Param, version),
        ];
        let purpose = Purpose::Connect(ConnectStep::LogReset);
        core.ask(log::Control::Reset.encode(), 1, purpose);
        Ok(())
    }

    fn ask_tables(&self, core: &mut Core<'_>) {
        for table in &self.tables {
            table.start(core);
        }
        let purpose = Purpose::Connect(ConnectStep::MemoryCount);
        core.ask(InfoRequest::Count.encode(), 1, purpose);
    }

    fn on_memory(&mut self, core: &mut Core<'_>, reply: InfoReply) {
        match reply {
            InfoReply::Count(count) => self.memories_left = (0..count).collect(),
            InfoReply::Details(details) => self.memories.push(details),
        }
        match self.memories_left.pop_front() {
            Some(id) => {
                let purpose = Purpose::Connect(ConnectStep::Memory(id));
                core.ask(InfoRequest::Details(id).encode(), 2, purpose);
            }
            None => self.memories_known = true,
        }
    }

    fn found(&mut self) -> Option<Found> {
        let [log, param] = &mut self.tables;
        if !self.memories_known || log.done.is_none() || param.done.is_none() {
            return None;
        }
        Some(Found {
            version: self.version,
            log: log.done.take()?,
            param: param.done.take()?,
            memories: std::mem::take(&mut self.memories),
            from_cache: log.from_cache && param.from_cache,
        })
    }
}

fn ask_version(core: &mut Core<'_>) {
    let purpose = Purpose::Connect(ConnectStep::Version);
    core.ask(platform::VersionRequest::Protocol.encode(), 1, purpose);
}
