//! A drone's table of contents, log or param, looked up by name or id. Fetching it is in [`fetch`], keeping it
//! between connections in [`cache`].

pub(crate) mod cache;
pub(crate) mod fetch;

use std::collections::{BTreeMap, BTreeSet};

use crtp::ProtocolVersion;
use serde::{Deserialize, Serialize};

/// Which table of which firmware: the checksum alone is too weak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableKey {
    /// Log or param.
    pub table: crtp::toc::Table,
    /// The drone's checksum over the table.
    pub crc: u32,
    /// Entries.
    pub count: u16,
    /// Protocol version of the drone.
    pub protocol: ProtocolVersion,
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// `group.name`.
    pub name: String,
    /// Type and flags as the drone sends them.
    pub kind: u8,
}

/// A table of contents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    entries: Vec<Entry>,
    ids: BTreeMap<String, u16>,
    persistent: BTreeSet<u16>,
}

impl Table {
    /// A table of these entries, in the order of their ids, and the ids of persistent parameters.
    #[must_use]
    pub fn new(entries: Vec<Entry>, persistent: BTreeSet<u16>) -> Self {
        let ids = entries
            .iter()
            .zip(0..)
            .map(|(entry, id)| (entry.name.clone(), id))
            .collect();
        Self {
            entries,
            ids,
            persistent,
        }
    }

    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries, in the order of their ids.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry with this id.
    #[must_use]
    pub fn get(&self, id: u16) -> Option<&Entry> {
        self.entries.get(usize::from(id))
    }

    /// Id and entry of this `group.name`.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<(u16, &Entry)> {
        let id = *self.ids.get(name)?;
        Some((id, self.get(id)?))
    }

    /// Ids of parameters the drone can store; empty unless extended types are fetched.
    #[must_use]
    pub const fn persistent(&self) -> &BTreeSet<u16> {
        &self.persistent
    }
}
