//! A table of contents: names in order, padded to a wished size, with the checksum clients key their caches by.

use crtp::Packet;
use crtp::toc::{Item, Limits, Reply, Table as Which};

/// One name in a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) group: String,
    pub(crate) name: String,
    /// Type and flags as on the wire.
    pub(crate) kind: u8,
}

impl Name {
    pub(crate) fn is(&self, group: &str, name: &str) -> bool {
        self.group == group && self.name == name
    }
}

/// The answers about one table, ready to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    info: Packet,
    items: Vec<Packet>,
    out_of_range: Packet,
}

impl Table {
    /// The table of these names.
    pub(crate) fn new(which: Which, limits: Option<Limits>, names: &[Name]) -> Self {
        let info = Reply::Info {
            count: names.len() as u16,
            crc: crc(names),
            limits,
        };
        let items = names.iter().enumerate();
        Self {
            info: encoded(which, &info),
            items: items
                .map(|(id, name)| encoded(which, &item(id, name)))
                .collect(),
            out_of_range: encoded(which, &Reply::OutOfRange),
        }
    }

    /// The answer to a request, if it is one. The firmware answers only version 2 requests.
    pub(crate) fn answer(&self, data: &[u8]) -> Option<Packet> {
        match *data {
            [3, ..] => Some(self.info),
            [2, low, high, ..] => {
                let id = usize::from(u16::from_le_bytes([low, high]));
                Some(self.items.get(id).copied().unwrap_or(self.out_of_range))
            }
            _ => None,
        }
    }
}

fn item(id: usize, name: &Name) -> Reply {
    Reply::Item(Item {
        id: id as u16,
        kind: name.kind,
        group: name.group.clone(),
        name: name.name.clone(),
    })
}

/// The names are ours and short enough, as a test proves; one that is not would read as a null packet.
fn encoded(which: Which, reply: &Reply) -> Packet {
    reply.encode(which).unwrap_or(Packet::NULL)
}

/// Over everything a client caches: type, group and name of every entry in order.
fn crc(names: &[Name]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for name in names {
        hasher.update(&[name.kind]);
        hasher.update(name.group.as_bytes());
        hasher.update(&[0]);
        hasher.update(name.name.as_bytes());
        hasher.update(&[0]);
    }
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(kind: u8, name: &str) -> Name {
        Name {
            group: "g".into(),
            name: name.into(),
            kind,
        }
    }

    #[test]
    fn the_checksum_covers_names_types_and_order() {
        let base = crc(&[name(7, "a"), name(7, "b")]);
        assert_ne!(base, crc(&[name(7, "b"), name(7, "a")]));
        assert_ne!(base, crc(&[name(6, "a"), name(7, "b")]));
        assert_ne!(base, crc(&[name(7, "a"), name(7, "c")]));
        assert_ne!(base, crc(&[name(7, "a")]));
    }

    #[test]
    fn ids_beyond_the_end_are_out_of_range() {
        let table = Table::new(Which::Log, None, &[name(7, "a")]);
        assert_eq!(table.answer(&[2, 1, 0]).unwrap().as_bytes(), [0x50, 2]);
        assert_eq!(
            table.answer(&[2, 0, 0]).unwrap().as_bytes(),
            [0x50, 2, 0, 0, 7, b'g', 0, b'a', 0]
        );
        assert_eq!(table.answer(&[]), None);
    }
}
