//! Requests of the owner that are neither logs nor parameters: flight commands, the supervisor, and memories
//! in chunks.

use std::collections::BTreeMap;

use crtp::{
    Packet, ProtocolVersion, Status, high_level, localization, memory, platform, supervisor,
};

use crate::core::{Core, Outcome, Purpose};
use crate::event::{Event, Reply, RequestError, RequestId};
use crate::lane::{Expect, Tries};

/// Bytes of one memory write, as cflib has it.
const WRITE_CHUNK: usize = 24;

/// A request to the drone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Request {
    /// A flight command, sent in the form the drone's protocol version has.
    HighLevel(high_level::Command),
    /// Arm, recover, emergency stop, watchdog; on the port the drone's protocol version has.
    Supervisor(supervisor::Command),
    /// The supervisor's state (protocol version 12 and later).
    SupervisorInfo,
}

/// What an answer is to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum UserStep {
    HighLevel,
    Supervisor,
    /// Arming or recovery on port 13.
    Platform,
    Info,
    Chunk,
    /// The trajectory's name, after its bytes.
    Define,
}

/// Bytes of a memory on their way.
struct Transfer {
    memory: u8,
    address: u32,
    job: Job,
}

enum Job {
    Read {
        length: usize,
        data: Vec<u8>,
    },
    Write {
        data: Vec<u8>,
        done: usize,
        define: Option<high_level::Command>,
    },
}

/// Requests of one client.
#[derive(Default)]
pub(crate) struct Requests {
    transfers: BTreeMap<RequestId, Transfer>,
    next: u64,
}

impl Requests {
    pub(crate) const fn new_id(&mut self) -> RequestId {
        self.next += 1;
        RequestId(self.next)
    }

    pub(crate) fn ask(
        &mut self,
        core: &mut Core<'_>,
        version: ProtocolVersion,
        request: Request,
    ) -> Result<RequestId, RequestError> {
        let id = self.new_id();
        match request {
            Request::HighLevel(command) => {
                let packet = command.for_version(version)?.encode()?;
                ask_command(core, packet, Purpose::User(id, UserStep::HighLevel));
            }
            Request::Supervisor(command) => ask_supervisor(core, version, command, id)?,
            Request::SupervisorInfo => {
                require_supervisor(version, "the supervisor's state")?;
                let packet = supervisor::InfoRequest::BitField.encode();
                let expect = Expect::new(0x90, &[0x8c]);
                core.ask_with(
                    packet,
                    expect,
                    Tries::Repeat,
                    Purpose::User(id, UserStep::Info),
                );
            }
        }
        Ok(id)
    }

    pub(crate) fn read_memory(
        &mut self,
        core: &mut Core<'_>,
        memory: u8,
        address: u32,
        length: usize,
    ) -> RequestId {
        let data = Vec::with_capacity(length);
        self.transfer(core, memory, address, Job::Read { length, data })
    }

    pub(crate) fn write_memory(
        &mut self,
        core: &mut Core<'_>,
        memory: u8,
        address: u32,
        data: Vec<u8>,
        define: Option<high_level::Command>,
    ) -> RequestId {
        let done = 0;
        self.transfer(core, memory, address, Job::Write { data, done, define })
    }

    fn transfer(&mut self, core: &mut Core<'_>, memory: u8, address: u32, job: Job) -> RequestId {
        let id = self.new_id();
        let transfer = Transfer {
            memory,
            address,
            job,
        };
        self.transfers.insert(id, transfer);
        self.go_on(core, id);
        id
    }

    /// Asks for the next chunk, or reports the end.
    fn go_on(&mut self, core: &mut Core<'_>, id: RequestId) {
        let Some(transfer) = self.transfers.get(&id) else {
            return;
        };
        match transfer.next_chunk() {
            Ok(Some(packet)) => core.ask(packet, 5, Purpose::User(id, UserStep::Chunk)),
            Ok(None) => self.finish_transfer(core, id),
            Err(error) => self.finish(core, id, Err(error)),
        }
    }

    fn finish_transfer(&mut self, core: &mut Core<'_>, id: RequestId) {
        let job = self.transfers.remove(&id).map(|transfer| transfer.job);
        let outcome = match job {
            Some(Job::Read { data, .. }) => Ok(Reply::Memory(data)),
            Some(Job::Write {
                define: Some(command),
                ..
            }) => match command.encode() {
                Ok(packet) => {
                    ask_command(core, packet, Purpose::User(id, UserStep::Define));
                    return;
                }
                Err(error) => Err(error.into()),
            },
            _ => Ok(Reply::Written),
        };
        self.finish(core, id, outcome);
    }

    /// Reports the outcome of a request.
    pub(crate) fn finish(
        &mut self,
        core: &mut Core<'_>,
        request: RequestId,
        outcome: Result<Reply, RequestError>,
    ) {
        self.transfers.remove(&request);
        core.event(Event::Reply { request, outcome });
    }

    pub(crate) fn on_outcome(
        &mut self,
        core: &mut Core<'_>,
        id: RequestId,
        step: UserStep,
        outcome: Outcome<'_>,
    ) {
        let Outcome::Answer(packet) = outcome else {
            self.finish(core, id, Err(RequestError::TimedOut));
            return;
        };
        let outcome = match step {
            UserStep::HighLevel => high_level_reply(packet),
            UserStep::Define => high_level_reply(packet).map(|_| Reply::Written),
            UserStep::Supervisor => supervisor_reply(packet),
            UserStep::Platform => platform_reply(packet),
            UserStep::Info => info_reply(packet),
            UserStep::Chunk => match self.on_chunk(id, packet) {
                Ok(()) => {
                    self.go_on(core, id);
                    return;
                }
                Err(error) => Err(error),
            },
        };
        self.finish(core, id, outcome);
    }

    fn on_chunk(&mut self, id: RequestId, packet: &Packet) -> Result<(), RequestError> {
        let Some(transfer) = self.transfers.get_mut(&id) else {
            return Ok(());
        };
        match &mut transfer.job {
            Job::Read { data, .. } => {
                let reply = memory::ReadReply::parse(packet).map_err(|_| too_short(packet, 6))?;
                let bytes = reply.data.map_err(RequestError::Refused)?;
                if bytes.is_empty() {
                    return Err(too_short(packet, 7));
                }
                data.extend_from_slice(&bytes);
            }
            Job::Write { done, data, .. } => {
                let reply = memory::WriteReply::parse(packet).map_err(|_| too_short(packet, 6))?;
                if !reply.status.is_ok() {
                    return Err(RequestError::Refused(reply.status));
                }
                *done = data.len().min(*done + WRITE_CHUNK);
            }
        }
        Ok(())
    }
}

impl Transfer {
    fn next_chunk(&self) -> Result<Option<Packet>, RequestError> {
        let id = self.memory;
        match &self.job {
            Job::Read { length, data } => {
                let left = length.saturating_sub(data.len());
                let read = memory::Read {
                    id,
                    address: self.address.wrapping_add(data.len() as u32),
                    length: left.min(memory::MAX_READ) as u8,
                };
                Ok((left > 0).then(|| read.encode()).transpose()?)
            }
            Job::Write { data, done, .. } => {
                let chunk = data[*done..].iter().take(WRITE_CHUNK);
                let write = memory::Write {
                    id,
                    address: self.address.wrapping_add(*done as u32),
                    data: chunk.copied().collect(),
                };
                Ok((!write.data.is_empty()).then(|| write.encode()))
            }
        }
    }
}

/// Commands are sent once: a repeated relative flight would go twice as far.
fn ask_command(core: &mut Core<'_>, packet: Packet, purpose: Purpose) {
    let expect = Expect::echo_of(&packet, 3);
    core.ask_with(packet, expect, Tries::OncePatiently, purpose);
}

fn require_supervisor(version: ProtocolVersion, what: &'static str) -> Result<(), RequestError> {
    if version.has_supervisor() {
        return Ok(());
    }
    Err(RequestError::Value(crtp::ValueError::Version {
        what,
        since: 12,
        version,
    }))
}

fn ask_supervisor(
    core: &mut Core<'_>,
    version: ProtocolVersion,
    command: supervisor::Command,
    id: RequestId,
) -> Result<(), RequestError> {
    use supervisor::Command;
    match command {
        Command::Arm(_) | Command::Recover if version.has_supervisor() => {
            let expect = Expect::new(0x91, &[0x80 | command.number()]);
            let purpose = Purpose::User(id, UserStep::Supervisor);
            core.ask_with(command.encode(), expect, Tries::Repeat, purpose);
        }
        Command::Arm(arm) => ask_platform(core, platform::Command::Arm(arm), id),
        Command::Recover => ask_platform(core, platform::Command::Recover, id),
        Command::EmergencyStop | Command::FeedWatchdog => {
            // Ahead of everything that waits: these are about people's fingers.
            core.out.push_front(unanswered_packet(version, command)?);
            let outcome = Ok(Reply::Sent);
            core.event(Event::Reply {
                request: id,
                outcome,
            });
        }
    }
    Ok(())
}

fn ask_platform(core: &mut Core<'_>, command: platform::Command, id: RequestId) {
    let purpose = Purpose::User(id, UserStep::Platform);
    core.ask(command.encode(), 1, purpose);
}

fn unanswered_packet(
    version: ProtocolVersion,
    command: supervisor::Command,
) -> Result<Packet, RequestError> {
    if version.has_supervisor() {
        return Ok(command.encode());
    }
    let request = match command {
        supervisor::Command::FeedWatchdog => localization::Request::FeedWatchdog,
        _ => localization::Request::EmergencyStop,
    };
    Ok(request.encode()?)
}

fn too_short(packet: &Packet, expected: usize) -> RequestError {
    RequestError::Truncated {
        got: packet.data().len(),
        expected,
    }
}

fn high_level_reply(packet: &Packet) -> Result<Reply, RequestError> {
    match high_level::Reply::parse(packet) {
        Ok(reply) if reply.status.is_ok() => Ok(Reply::HighLevel(reply)),
        Ok(reply) => Err(RequestError::Refused(reply.status)),
        Err(_) => Err(too_short(packet, 4)),
    }
}

fn supervisor_reply(packet: &Packet) -> Result<Reply, RequestError> {
    supervisor::CommandReply::parse(packet)
        .map(Reply::Supervisor)
        .map_err(|_| too_short(packet, 3))
}

fn info_reply(packet: &Packet) -> Result<Reply, RequestError> {
    match supervisor::InfoReply::parse(packet) {
        Ok(supervisor::InfoReply::BitField(info)) => Ok(Reply::SupervisorInfo(info)),
        Ok(supervisor::InfoReply::Bit { .. }) | Err(_) => Err(too_short(packet, 3)),
    }
}

/// As the supervisor of later versions would have answered.
fn platform_reply(packet: &Packet) -> Result<Reply, RequestError> {
    let reply = platform::CommandReply::parse(packet).map_err(|_| too_short(packet, 3))?;
    let success = reply.success;
    Ok(Reply::Supervisor(match reply.command {
        1 => supervisor::CommandReply::Arm {
            success,
            armed: reply.state,
        },
        _ => supervisor::CommandReply::Recover {
            success,
            recovered: reply.state,
        },
    }))
}

/// A memory the drone has not announced; asking for it would stop real firmware.
pub(crate) const fn no_such_memory() -> RequestError {
    RequestError::Refused(Status::NOT_FOUND)
}
