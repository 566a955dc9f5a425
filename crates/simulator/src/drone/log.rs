//! Log blocks: created, appended, started, sampled on time, deleted, within the firmware's limits and with its
//! error codes. It reads the flight and writes packets; when to look is told by [`Logger::next_ms`].

use crtp::log::Type;
use crtp::{Channel, Packet, Port, Status, Value};

use super::variables::{Read, Variable};
use crate::flight::Flight;

/// Value bytes of a block.
pub(crate) const MAX_BYTES: usize = 26;
/// Blocks at a time.
pub(crate) const MAX_BLOCKS: usize = 16;
/// Variables over all blocks.
pub(crate) const MAX_VARIABLES: usize = 128;

/// The id that stands for a raw memory address.
pub(crate) const RAW: u16 = 0xffff;

#[derive(Clone, Copy, Debug)]
struct Entry {
    kind: Type,
    read: Read,
}

#[derive(Clone, Debug)]
struct Block {
    id: u8,
    entries: Vec<Entry>,
    period_ms: u64,
    due_ms: Option<u64>,
}

impl Block {
    fn bytes(&self) -> usize {
        self.entries
            .iter()
            .map(|entry| entry.kind.kind().size())
            .sum()
    }

    fn sample(&self, now_ms: u64, flight: &Flight) -> Option<Packet> {
        let stamp = (now_ms as u32).to_le_bytes();
        let mut data = [0; crtp::MAX_DATA];
        data[..4].copy_from_slice(&[self.id, stamp[0], stamp[1], stamp[2]]);
        let mut end = 4;
        for entry in &self.entries {
            let bytes = converted(entry.kind, (entry.read)(flight)).to_bytes();
            data.get_mut(end..end + bytes.len())?
                .copy_from_slice(&bytes);
            end += bytes.len();
        }
        Packet::reply(Port::LOG, Channel::C2, &data[..end]).ok()
    }
}

/// As the firmware casts: whole types are cut off, and saturate here where C would be undefined.
fn converted(kind: Type, value: f64) -> Value {
    use crtp::Kind;
    match kind.kind() {
        Kind::U8 => Value::U8(value as u8),
        Kind::U16 => Value::U16(value as u16),
        Kind::U32 | Kind::U64 => Value::U32(value as u32),
        Kind::I8 => Value::I8(value as i8),
        Kind::I16 => Value::I16(value as i16),
        Kind::I32 | Kind::I64 => Value::I32(value as i32),
        Kind::F16 => Value::F16(crtp::f16::from_f64(value)),
        Kind::F32 | Kind::F64 => Value::F32(value as f32),
    }
}

/// All blocks.
#[derive(Clone, Debug)]
pub(crate) struct Logger {
    variables: Vec<Variable>,
    blocks: Vec<Block>,
    pub(crate) missed: u64,
}

impl Logger {
    pub(crate) fn new(variables: Vec<Variable>) -> Self {
        Self {
            variables,
            blocks: Vec::with_capacity(MAX_BLOCKS),
            missed: 0,
        }
    }

    /// Obeys a control packet's data.
    pub(crate) fn control(&mut self, now_ms: u64, data: &[u8]) -> Status {
        match *data {
            [6, id, ref entries @ ..] => self.create(id, entries),
            [7, id, ref entries @ ..] => self.append(id, entries),
            [2, id, ..] => self.delete(id),
            [3, id, tens, ..] => self.start(now_ms, id, u64::from(tens) * 10),
            [4, id, ..] => self.with(id, |block| block.due_ms = None),
            [5, ..] => {
                self.reset();
                Status::OK
            }
            [8, id, low, high, ..] => {
                self.start(now_ms, id, u16::from_le_bytes([low, high]).into())
            }
            _ => Status::UNKNOWN_COMMAND,
        }
    }

    /// Deletes all blocks.
    pub(crate) fn reset(&mut self) {
        self.blocks.clear();
    }

    fn with(&mut self, id: u8, change: impl FnOnce(&mut Block)) -> Status {
        self.blocks
            .iter_mut()
            .find(|block| block.id == id)
            .map_or(Status::NOT_FOUND, |block| {
                change(block);
                Status::OK
            })
    }

    fn create(&mut self, id: u8, entries: &[u8]) -> Status {
        if self.blocks.iter().any(|block| block.id == id) {
            return Status::EXISTS;
        }
        if self.blocks.len() == MAX_BLOCKS {
            return Status::NO_MEMORY;
        }
        self.blocks.push(Block {
            id,
            entries: Vec::new(),
            period_ms: 0,
            due_ms: None,
        });
        self.append(id, entries)
    }

    /// What fits before the first error stays, as on board.
    fn append(&mut self, id: u8, entries: &[u8]) -> Status {
        for &[kind, low, high] in entries.as_chunks::<3>().0 {
            let status = self.append_one(id, kind, u16::from_le_bytes([low, high]));
            if !status.is_ok() {
                return status;
            }
        }
        self.with(id, |_| ())
    }

    fn append_one(&mut self, id: u8, kind: u8, variable: u16) -> Status {
        let used: usize = self.blocks.iter().map(|block| block.entries.len()).sum();
        let read = self
            .variables
            .get(usize::from(variable))
            .map(|variable| variable.read);
        let Some(block) = self.blocks.iter_mut().find(|block| block.id == id) else {
            return Status::NOT_FOUND;
        };
        let Some(kind) = Type::from_number(kind) else {
            return Status::NOT_FOUND;
        };
        if block.bytes() + kind.kind().size() > MAX_BYTES {
            return Status::TOO_BIG;
        }
        if used == MAX_VARIABLES {
            return Status::NO_MEMORY;
        }
        let Some(read) = read else {
            return Status::NOT_FOUND;
        };
        block.entries.push(Entry { kind, read });
        Status::OK
    }

    fn delete(&mut self, id: u8) -> Status {
        let before = self.blocks.len();
        self.blocks.retain(|block| block.id != id);
        if self.blocks.len() < before {
            Status::OK
        } else {
            Status::NOT_FOUND
        }
    }

    /// A period of 0 samples once, at once.
    fn start(&mut self, now_ms: u64, id: u8, period_ms: u64) -> Status {
        self.with(id, |block| {
            block.period_ms = period_ms;
            block.due_ms = Some(now_ms + period_ms);
        })
    }

    /// When the next sample is due.
    pub(crate) fn next_ms(&self) -> Option<u64> {
        self.blocks.iter().filter_map(|block| block.due_ms).min()
    }

    /// The next sample that is due, if one is. Samples whose time has passed by a whole period are missed.
    pub(crate) fn poll(&mut self, now: u64, flight: &Flight) -> Option<Packet> {
        let block = self
            .blocks
            .iter_mut()
            .find(|block| block.due_ms.is_some_and(|due| due <= now))?;
        let due = block.due_ms?;
        block.due_ms = None;
        if let Some(late) = (now - due).checked_div(block.period_ms) {
            self.missed += late;
            block.due_ms = Some(due + (late + 1) * block.period_ms);
        }
        block.sample(now, flight)
    }
}
