//! A scripted drone: tables, log blocks, parameters, one trajectory memory, commands. It answers as firmware of
//! its protocol version does, takes 5 ms a request where told so, and counts what a real one would not survive.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crtp::log::{Control, ControlReply, Data, Variable};
use crtp::memory::{Details, InfoReply, InfoRequest};
use crtp::param::{Meta, Misc, MiscReply, ReadReply, WriteReply};
use crtp::toc::{Item, Limits, Reply, Request, Table};
use crtp::{Gate, Kind, Packet, ProtocolVersion, Reject, Status, Value};
use crtp::{high_level, link_service, log, memory, param, platform, supervisor};

pub(crate) struct Param {
    pub(crate) name: &'static str,
    pub(crate) meta: Meta,
    pub(crate) value: Value,
}

pub(crate) struct Block {
    pub(crate) variables: Vec<Variable>,
    pub(crate) period: Option<Duration>,
    next: Instant,
}

pub(crate) struct Drone {
    pub(crate) version: ProtocolVersion,
    pub(crate) crc: u32,
    pub(crate) logs: Vec<(String, u8)>,
    pub(crate) params: Vec<Param>,
    pub(crate) blocks: BTreeMap<u8, Block>,
    pub(crate) memory: Vec<u8>,
    /// Requests taken, in order.
    pub(crate) taken: Vec<Packet>,
    /// It does not know "start with a period in ms".
    pub(crate) old_start: bool,
    /// Writes are answered by this instead, if set.
    pub(crate) write_answer: Option<Option<Packet>>,
    pub(crate) flyable: bool,
    /// Others send packets in its name.
    pub(crate) impersonated: bool,
    start: Instant,
    gate: Gate,
}

impl Drone {
    /// Log variables `f.0` to `f.59` (floats), `b.0` to `b.59` (bytes); some parameters.
    pub(crate) fn new(now: Instant) -> Self {
        let of = |kind, read_only, extended| Meta {
            kind,
            extended,
            core: false,
            read_only,
        };
        let param = |name, value: Value, read_only, extended| Param {
            name,
            meta: of(value.kind(), read_only, extended),
            value,
        };
        Self {
            version: ProtocolVersion(12),
            crc: 0xdead_beef,
            logs: (0..60)
                .map(|i| (format!("f.{i}"), 7))
                .chain((0..60).map(|i| (format!("b.{i}"), 1)))
                .collect(),
            params: vec![
                param("flight.mode", Value::U8(1), false, false),
                param("flight.rate", Value::F32(20.0), false, true),
                param("flight.limit", Value::I16(-3), false, false),
                param("deck.present", Value::U8(1), true, false),
            ],
            blocks: BTreeMap::new(),
            memory: vec![0; 4096],
            taken: Vec::new(),
            old_start: false,
            write_answer: None,
            flyable: true,
            impersonated: false,
            start: now,
            gate: Gate::new(),
        }
    }

    pub(crate) fn value(&self, name: &str) -> Value {
        self.params.iter().find(|p| p.name == name).unwrap().value
    }

    /// Takes a packet and answers it.
    pub(crate) fn handle(&mut self, now: Instant, packet: &Packet) -> Option<Packet> {
        match self.gate.admit(packet) {
            Ok(_) => {}
            // Told of memories that are not there, a client may ask for them; the gate is there for that.
            Err(Reject::MemoryUnknown) if self.impersonated => return None,
            Err(reject) => panic!("{packet:?} would crash a drone: {reject}"),
        }
        self.taken.push(*packet);
        let answer = self.answer(now, packet)?;
        self.gate.observe(&answer);
        Some(answer)
    }

    fn answer(&mut self, now: Instant, packet: &Packet) -> Option<Packet> {
        match packet.kind() {
            0xf0 => Some(*packet),
            0xf1 => Some(link_service::source_reply()),
            0xd1 => Some(
                platform::VersionReply::Protocol(self.version)
                    .encode()
                    .unwrap(),
            ),
            0x50 => Some(self.table(Table::Log, packet)),
            0x51 => Some(self.control(now, packet)),
            0x40 => Some(self.memories(packet)),
            0x41 | 0x42 => Some(self.access_memory(packet)),
            0x20 => Some(self.table(Table::Param, packet)),
            0x21 => Some(self.read(packet)),
            0x22 => self.write(packet),
            0x23 => Some(self.misc(packet)),
            0x80 => {
                let status = if self.flyable {
                    Status::OK
                } else {
                    Status::BUSY
                };
                Some(high_level::Reply::to(packet, status).encode())
            }
            0x90 => {
                let request = supervisor::InfoRequest::parse(packet).unwrap();
                Some(supervisor::InfoReply::to(request, supervisor::Info(0x020e)).encode())
            }
            0x91 | 0xd0 => self.arm(packet),
            _ => None,
        }
    }

    fn table(&self, table: Table, packet: &Packet) -> Packet {
        let item = |id: u16| -> Option<(String, u8)> {
            match table {
                Table::Log => self.logs.get(usize::from(id)).cloned(),
                Table::Param => {
                    let param = self.params.get(usize::from(id))?;
                    Some((param.name.to_owned(), param.meta.to_byte()))
                }
            }
        };
        let reply = match Request::parse(table, packet).unwrap() {
            Request::Info => Reply::Info {
                count: match table {
                    Table::Log => self.logs.len() as u16,
                    Table::Param => self.params.len() as u16,
                },
                crc: self.crc,
                limits: (table == Table::Log).then_some(Limits {
                    blocks: 16,
                    variables: 128,
                }),
            },
            Request::Item(id) => match item(id) {
                Some((full, kind)) => {
                    let (group, name) = full.split_once('.').unwrap();
                    Reply::Item(Item {
                        id,
                        kind,
                        group: group.to_owned(),
                        name: name.to_owned(),
                    })
                }
                None => Reply::OutOfRange,
            },
        };
        reply.encode(table).unwrap()
    }

    fn control(&mut self, now: Instant, packet: &Packet) -> Packet {
        let control = Control::parse(packet).unwrap();
        let (block, status) = match &control {
            Control::Reset => {
                self.blocks.clear();
                (0, Status::OK)
            }
            Control::Create { block, variables } if !self.blocks.contains_key(block) => {
                let new = Block {
                    variables: variables.to_vec(),
                    period: None,
                    next: now,
                };
                self.blocks.insert(*block, new);
                (*block, self.fits(*block))
            }
            Control::Create { block, .. } => (*block, Status::EXISTS),
            Control::Append { block, variables } => match self.blocks.get_mut(block) {
                Some(known) => {
                    known.variables.extend(variables.iter().copied());
                    (*block, self.fits(*block))
                }
                None => (*block, Status::NOT_FOUND),
            },
            Control::Delete { block } => match self.blocks.remove(block) {
                Some(_) => (*block, Status::OK),
                None => (*block, Status::NOT_FOUND),
            },
            Control::Start { block, .. } if self.old_start => (*block, Status::UNKNOWN_COMMAND),
            Control::Start { block, period_ms } => {
                let period = Duration::from_millis((*period_ms).into());
                (*block, self.start(now, *block, Some(period)))
            }
            Control::StartTens { block, tens_of_ms } => {
                let period = Duration::from_millis(10 * u64::from(*tens_of_ms));
                (*block, self.start(now, *block, Some(period)))
            }
            Control::Stop { block } => (*block, self.start(now, *block, None)),
        };
        let command = control.number();
        let reply = ControlReply {
            command,
            block,
            status,
        };
        reply.encode()
    }

    fn fits(&self, block: u8) -> Status {
        let variables = &self.blocks[&block].variables;
        let size: usize = variables.iter().map(|v| v.send_as.kind().size()).sum();
        if size > log::MAX_BLOCK {
            Status::TOO_BIG
        } else if self.blocks.len() > 16 {
            Status::NO_MEMORY
        } else {
            Status::OK
        }
    }

    fn start(&mut self, now: Instant, block: u8, period: Option<Duration>) -> Status {
        let Some(block) = self.blocks.get_mut(&block) else {
            return Status::NOT_FOUND;
        };
        block.period = period;
        block.next = now + period.unwrap_or_default();
        Status::OK
    }

    /// When a block is due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        let running = self.blocks.values().filter(|block| block.period.is_some());
        running.map(|block| block.next).min()
    }

    /// Values of the blocks that are due; a float's value is its id, a byte's its id modulo 256.
    pub(crate) fn data(&mut self, now: Instant) -> Vec<Packet> {
        let time_ms = (now - self.start).as_millis() as u32 & 0xff_ffff;
        let mut packets = Vec::new();
        for (&id, block) in &mut self.blocks {
            let Some(period) = block.period.filter(|_| block.next <= now) else {
                continue;
            };
            block.next = now + period;
            let value = |v: &Variable| Value::from_integer(v.send_as.kind(), i64::from(v.id) % 256);
            let values = block.variables.iter().filter_map(value);
            let data = Data {
                block: id,
                time_ms,
                values: values.flat_map(|value| value.to_bytes()).collect(),
            };
            packets.push(data.encode());
        }
        packets
    }

    fn memories(&self, packet: &Packet) -> Packet {
        let reply = match InfoRequest::parse(packet).unwrap() {
            InfoRequest::Count => InfoReply::Count(1),
            InfoRequest::Details(id) => InfoReply::Details(Details {
                id,
                kind: memory::Kind::TRAJECTORY,
                size: self.memory.len() as u32,
                serial: [0; 8],
            }),
        };
        reply.encode()
    }

    fn access_memory(&mut self, packet: &Packet) -> Packet {
        if let Ok(read) = memory::Read::parse(packet) {
            let from = read.address as usize;
            let data = self.memory.get(from..from + usize::from(read.length));
            let data = data.ok_or(Status::IO).map(|d| d.iter().copied().collect());
            let (id, address) = (read.id, read.address);
            return memory::ReadReply { id, address, data }.encode();
        }
        let write = memory::Write::parse(packet).unwrap();
        let from = write.address as usize;
        let room = self.memory.get_mut(from..from + write.data.len());
        let status = match room {
            Some(room) => {
                room.copy_from_slice(&write.data);
                Status::OK
            }
            None => Status::IO,
        };
        let (id, address) = (write.id, write.address);
        let reply = memory::WriteReply {
            id,
            address,
            status,
        };
        reply.encode()
    }

    fn read(&self, packet: &Packet) -> Packet {
        let param::Read { id } = param::Read::parse(packet).unwrap();
        let known = self.params.get(usize::from(id));
        let value = known.map(|p| p.value.to_bytes().into_iter().collect());
        let value = value.ok_or(Status::NOT_FOUND);
        ReadReply { id, value }.encode()
    }

    fn write(&mut self, packet: &Packet) -> Option<Packet> {
        if let Some(answer) = self.write_answer {
            return answer;
        }
        let (id, value) = param::Write::parse(packet).unwrap();
        let param = self.params.get_mut(usize::from(id)).unwrap();
        if param.meta.read_only {
            return None;
        }
        param.value = Value::take(param.meta.kind, &value).unwrap().0;
        Some(WriteReply { id, value }.encode())
    }

    fn misc(&self, packet: &Packet) -> Packet {
        let reply = match Misc::parse(packet).unwrap() {
            Misc::ExtendedTypeV2(id) => MiscReply::ExtendedTypeV2 {
                id,
                extended: Ok(1),
            },
            Misc::ExtendedType(id) => MiscReply::ExtendedType { id, extended: 1 },
            other => panic!("not scripted: {other:?}"),
        };
        reply.encode().unwrap()
    }

    fn arm(&self, packet: &Packet) -> Option<Packet> {
        let success = self.flyable;
        if packet.kind() == 0xd0 {
            let command = platform::Command::parse(packet).unwrap().number();
            let reply = platform::CommandReply {
                command,
                success,
                state: success,
            };
            return Some(reply.encode());
        }
        match supervisor::Command::parse(packet).unwrap() {
            supervisor::Command::Arm(arm) => {
                let armed = arm && success;
                Some(supervisor::CommandReply::Arm { success, armed }.encode())
            }
            supervisor::Command::Recover => {
                let recovered = success;
                Some(supervisor::CommandReply::Recover { success, recovered }.encode())
            }
            supervisor::Command::EmergencyStop | supervisor::Command::FeedWatchdog => None,
        }
    }

    /// A change of its own.
    pub(crate) fn change(&mut self, name: &str, value: Value) -> Packet {
        let id = self.params.iter().position(|p| p.name == name).unwrap();
        self.params[id].value = value;
        let value = value.to_bytes().into_iter().collect();
        let id = id as u16;
        MiscReply::Updated { id, value }.encode().unwrap()
    }

    /// The kind of a log variable's values on the wire.
    pub(crate) fn kinds(&self, block: u8) -> Vec<Kind> {
        let variables = &self.blocks[&block].variables;
        variables.iter().map(|v| v.send_as.kind()).collect()
    }
}
