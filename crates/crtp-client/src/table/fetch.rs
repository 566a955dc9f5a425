//! Fetches one table of contents, entry by entry, or takes it from the cache after comparing one entry.
//! Answers to other entries than the one asked for are not taken.

use std::collections::{BTreeSet, VecDeque};

use crtp::param::{Misc, MiscReply};
use crtp::toc::{Item, Reply, Request, Table as Which};
use crtp::{Packet, ProtocolVersion};

use super::cache::TableCache;
use super::{Entry, Table, TableKey};
use crate::connect::ConnectStep;
use crate::core::{Core, Purpose};
use crate::event::DisconnectReason;

/// Flag of entries with an extended type.
const EXTENDED: u8 = 0x10;
/// The only extended type there is.
const PERSISTENT: u8 = 1;

/// Steps of fetching a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FetchStep {
    Info,
    /// One entry of a cached table.
    Verify(u16),
    Item(u16),
    Extended(u16),
}

impl FetchStep {
    pub(crate) const fn name(self, which: Which) -> &'static str {
        match (which, self) {
            (Which::Log, Self::Info) => "the log table's length",
            (Which::Log, _) => "a log table entry",
            (Which::Param, Self::Info) => "the parameter table's length",
            (Which::Param, Self::Extended(_)) => "a parameter's extended type",
            (Which::Param, _) => "a parameter table entry",
        }
    }

    /// "Out of range" answers have no id.
    pub(crate) fn accepts(self, packet: &Packet) -> bool {
        match (self, packet.data()) {
            (Self::Verify(id) | Self::Item(id), [_, low, high, ..]) => {
                id.to_le_bytes() == [*low, *high]
            }
            _ => true,
        }
    }
}

/// A table on its way.
pub(crate) struct Fetch {
    which: Which,
    version: ProtocolVersion,
    key: Option<TableKey>,
    cached: Option<Table>,
    entries: Vec<Entry>,
    extended: VecDeque<u16>,
    persistent: BTreeSet<u16>,
    pub(crate) done: Option<Table>,
    pub(crate) from_cache: bool,
}

impl Fetch {
    pub(crate) fn new(which: Which, version: ProtocolVersion) -> Self {
        Self {
            which,
            version,
            key: None,
            cached: None,
            entries: Vec::new(),
            extended: VecDeque::new(),
            persistent: BTreeSet::new(),
            done: None,
            from_cache: false,
        }
    }

    pub(crate) fn start(&self, core: &mut Core<'_>) {
        self.ask(core, Request::Info, FetchStep::Info);
    }

    fn ask(&self, core: &mut Core<'_>, request: Request, step: FetchStep) {
        let purpose = Purpose::Connect(ConnectStep::Table(self.which, step));
        core.ask(request.encode(self.which), 1, purpose);
    }

    pub(crate) fn on_answer(
        &mut self,
        core: &mut Core<'_>,
        cache: &mut dyn TableCache,
        step: FetchStep,
        packet: &Packet,
    ) -> Result<(), DisconnectReason> {
        if let FetchStep::Extended(id) = step {
            self.on_extended(core, cache, id, packet);
            return Ok(());
        }
        let reply = Reply::parse(self.which, packet);
        match (step, reply.map_err(|error| self.nonsense(step, &error))?) {
            (FetchStep::Info, Reply::Info { count, crc, .. }) => {
                self.on_info(core, cache, count, crc);
            }
            (FetchStep::Verify(id), reply) => self.on_verified(core, cache, id, &reply),
            (FetchStep::Item(_), Reply::Item(item)) => self.on_item(core, cache, &item),
            (_, reply) => {
                let detail = format!("{reply:?}");
                return Err(self.nonsense(step, &detail));
            }
        }
        Ok(())
    }

    fn nonsense(&self, step: FetchStep, detail: &impl ToString) -> DisconnectReason {
        DisconnectReason::Nonsense {
            what: step.name(self.which),
            detail: detail.to_string(),
        }
    }

    fn on_info(&mut self, core: &mut Core<'_>, cache: &mut dyn TableCache, count: u16, crc: u32) {
        let key = TableKey {
            table: self.which,
            crc,
            count,
            protocol: self.version,
        };
        self.key = Some(key);
        self.cached = match cache.load(&key) {
            Ok(table) => table.filter(|table| table.len() == usize::from(count)),
            Err(error) => {
                core.notice(error.to_string());
                None
            }
        };
        match self
            .cached
            .take_if(|_| count == 0 || !core.config.verify_cache)
        {
            Some(table) => self.finish_cached(table),
            // Any entry does; the checksum picks one that differs from table to table.
            None if self.cached.is_some() => self.ask_item(core, crc as u16 % count, true),
            None => self.next(core, cache),
        }
    }

    fn ask_item(&self, core: &mut Core<'_>, id: u16, verify: bool) {
        let step = if verify {
            FetchStep::Verify(id)
        } else {
            FetchStep::Item(id)
        };
        self.ask(core, Request::Item(id), step);
    }

    fn on_verified(
        &mut self,
        core: &mut Core<'_>,
        cache: &mut dyn TableCache,
        id: u16,
        reply: &Reply,
    ) {
        let cached = self.cached.take();
        match (cached, reply) {
            (Some(table), Reply::Item(item)) if table.get(id) == Some(&entry(item)) => {
                self.finish_cached(table);
            }
            _ => {
                core.notice("a cached table is not the drone's; fetching it".into());
                self.next(core, cache);
            }
        }
    }

    fn finish_cached(&mut self, table: Table) {
        self.from_cache = true;
        self.done = Some(table);
    }

    fn on_item(&mut self, core: &mut Core<'_>, cache: &mut dyn TableCache, item: &Item) {
        if self.which == Which::Param && item.kind & EXTENDED != 0 {
            self.extended.push_back(item.id);
        }
        self.entries.push(entry(item));
        self.next(core, cache);
    }

    fn on_extended(
        &mut self,
        core: &mut Core<'_>,
        cache: &mut dyn TableCache,
        id: u16,
        packet: &Packet,
    ) {
        let kind = match MiscReply::parse(packet) {
            Ok(MiscReply::ExtendedType { extended, .. }) => Some(extended),
            Ok(MiscReply::ExtendedTypeV2 { extended, .. }) => extended.ok(),
            Ok(_) | Err(_) => None,
        };
        if kind == Some(PERSISTENT) {
            self.persistent.insert(id);
        }
        self.next(core, cache);
    }

    /// Asks for what is still missing, or keeps the table.
    fn next(&mut self, core: &mut Core<'_>, cache: &mut dyn TableCache) {
        let count = self.key.map_or(0, |key| key.count);
        let got = self.entries.len() as u16;
        if got < count {
            self.ask_item(core, got, false);
            return;
        }
        match self.extended.pop_front() {
            Some(id) if core.config.extended_types => self.ask_extended(core, id),
            _ => self.finish(core, cache),
        }
    }

    fn ask_extended(&self, core: &mut Core<'_>, id: u16) {
        let request = if self.version.has_param_status() {
            Misc::ExtendedTypeV2(id)
        } else {
            Misc::ExtendedType(id)
        };
        let purpose = Purpose::Connect(ConnectStep::Table(self.which, FetchStep::Extended(id)));
        match request.encode() {
            Ok(packet) => core.ask(packet, 3, purpose),
            Err(error) => core.notice(error.to_string()),
        }
    }

    fn finish(&mut self, core: &mut Core<'_>, cache: &mut dyn TableCache) {
        let entries = std::mem::take(&mut self.entries);
        let table = Table::new(entries, std::mem::take(&mut self.persistent));
        if let Some(key) = self.key.filter(|key| key.count > 0)
            && let Err(error) = cache.store(&key, &table)
        {
            core.notice(error.to_string());
        }
        self.done = Some(table);
    }
}

fn entry(item: &Item) -> Entry {
    Entry {
        name: format!("{}.{}", item.group, item.name),
        kind: item.kind,
    }
}
