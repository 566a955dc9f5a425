//! All logs of one client: which are wanted, which blocks of the drone serve them, and where data goes. Logs
//! stay wanted over reconnections; blocks do not.

use std::collections::BTreeMap;
use std::time::Instant;

use crtp::log::{ControlReply, Data};
use crtp::{Packet, Status, Value};

use super::block::{Block, Next};
use super::plan::{Plan, plan};
use super::samples::{DroneClock, Samples};
use super::{LogConfig, LogError, LogHandle, MAX_BLOCKS, MAX_VARIABLES};
use crate::core::{BlockStep, Core, Outcome, Purpose};
use crate::event::Event;
use crate::lane::{Expect, Tries};
use crate::table::Table;

/// First block number taken; clients that share the drone start at 1.
const FIRST_ID: u8 = 0x80;

struct Log {
    config: LogConfig,
    period_ms: u16,
    blocks: Vec<Block>,
    values: Vec<Option<Value>>,
    missing: Vec<String>,
    announced: bool,
}

/// All logs of one client.
#[derive(Default)]
pub(crate) struct Logs {
    logs: BTreeMap<LogHandle, Log>,
    /// Which log and which of its blocks a block number belongs to.
    owners: BTreeMap<u8, (LogHandle, usize)>,
    next_handle: u32,
    next_id: u8,
    clock: DroneClock,
}

impl Logs {
    /// Wants a log; it is started at once if there is a table.
    pub(crate) fn add(
        &mut self,
        core: &mut Core<'_>,
        config: LogConfig,
        table: Option<&Table>,
    ) -> Result<LogHandle, LogError> {
        let log = Log {
            period_ms: config.period_ms()?,
            config,
            blocks: Vec::new(),
            values: Vec::new(),
            missing: Vec::new(),
            announced: false,
        };
        let handle = LogHandle(self.next_handle);
        self.logs.insert(handle, log);
        self.next_handle += 1;
        if let Some(table) = table
            && let Err(error) = self.start(core, handle, table)
        {
            self.logs.remove(&handle);
            return Err(error);
        }
        Ok(handle)
    }

    /// No longer wants a log; `false` if there is none of that handle.
    pub(crate) fn remove(&mut self, core: &mut Core<'_>, handle: LogHandle) -> bool {
        let Some(log) = self.logs.remove(&handle) else {
            return false;
        };
        for block in log.blocks {
            self.owners.remove(&block.id);
            let request = block.request(BlockStep::Delete, 0).encode();
            core.ask(request, 2, Purpose::DeleteBlock);
        }
        true
    }

    /// The connection is gone, and with it all blocks.
    pub(crate) fn on_disconnected(&mut self) {
        self.owners.clear();
        self.clock = DroneClock::default();
        for log in self.logs.values_mut() {
            log.blocks.clear();
            log.announced = false;
        }
    }

    /// Starts every wanted log; one that cannot be started disturbs no other.
    pub(crate) fn on_connected(&mut self, core: &mut Core<'_>, table: &Table) {
        let handles: Vec<LogHandle> = self.logs.keys().copied().collect();
        for handle in handles {
            if let Err(error) = self.start(core, handle, table) {
                core.event(Event::LogFailed { handle, error });
            }
        }
    }

    fn start(
        &mut self,
        core: &mut Core<'_>,
        handle: LogHandle,
        table: &Table,
    ) -> Result<(), LogError> {
        let Some(log) = self.logs.get(&handle) else {
            return Ok(());
        };
        let plan = plan(&log.config, table, core.config.split_blocks)?;
        self.check_room(&log.config.name, &plan)?;
        let blocks: Vec<Block> = plan
            .blocks
            .into_iter()
            .enumerate()
            .map(|(index, variables)| Block::new(self.new_id(handle, index), variables))
            .collect();
        let count = blocks.len();
        if let Some(log) = self.logs.get_mut(&handle) {
            log.values = vec![None; plan.kinds.len()];
            log.missing = plan.missing;
            log.blocks = blocks;
        }
        for index in 0..count {
            self.ask(core, handle, index, BlockStep::Create);
        }
        Ok(())
    }

    fn check_room(&self, name: &str, plan: &Plan) -> Result<(), LogError> {
        let blocks = || self.logs.values().flat_map(|log| &log.blocks);
        let (needed, free) = (
            plan.blocks.len(),
            MAX_BLOCKS.saturating_sub(blocks().count()),
        );
        if needed > free {
            return Err(LogError::TooManyBlocks {
                name: name.to_owned(),
                needed,
                free,
            });
        }
        let used: usize = blocks().map(|block| block.variables.len()).sum();
        let (needed, free) = (
            plan.blocks.iter().map(Vec::len).sum(),
            MAX_VARIABLES.saturating_sub(used),
        );
        if needed > free {
            return Err(LogError::TooManyVariables {
                name: name.to_owned(),
                needed,
                free,
            });
        }
        Ok(())
    }

    /// A block number that was not used lately, so that late data of a deleted block is not taken for new.
    fn new_id(&mut self, handle: LogHandle, index: usize) -> u8 {
        loop {
            let id = FIRST_ID | self.next_id;
            self.next_id = (self.next_id + 1) % FIRST_ID;
            // The drone takes 255 for a free block.
            if id != u8::MAX && !self.owners.contains_key(&id) {
                self.owners.insert(id, (handle, index));
                return id;
            }
        }
    }

    fn ask(&self, core: &mut Core<'_>, handle: LogHandle, index: usize, step: BlockStep) {
        let Some(log) = self.logs.get(&handle) else {
            return;
        };
        if let Some(block) = log.blocks.get(index) {
            let request = block.request(step, log.period_ms).encode();
            let purpose = Purpose::Block {
                handle,
                index,
                step,
            };
            // A repeated create or append would find its own work: those start over instead.
            let tries = match step {
                BlockStep::Create | BlockStep::Append(_) => Tries::Once,
                BlockStep::Delete | BlockStep::Start | BlockStep::StartTens => Tries::Repeat,
            };
            core.ask_with(request, Expect::echo_of(&request, 2), tries, purpose);
        }
    }

    /// An answer to a step of a block's set-up, or none.
    pub(crate) fn on_outcome(
        &mut self,
        core: &mut Core<'_>,
        handle: LogHandle,
        index: usize,
        step: BlockStep,
        outcome: Outcome<'_>,
    ) {
        let log = self.logs.get_mut(&handle);
        let Some(block) = log.and_then(|log| log.blocks.get_mut(index)) else {
            return;
        };
        let reply = match outcome {
            Outcome::Answer(packet) => ControlReply::parse(packet).ok(),
            Outcome::Unanswered => None,
        };
        let next = match reply {
            Some(reply) => block.after(step, reply.status),
            None => block.after_silence(),
        };
        self.go_on(core, handle, index, next);
    }

    fn go_on(&mut self, core: &mut Core<'_>, handle: LogHandle, index: usize, next: Next) {
        match next {
            Next::Step(step) => self.ask(core, handle, index, step),
            Next::OtherId => self.take_other_id(core, handle, index),
            Next::Started => self.on_started(core, handle, index),
            Next::Refused(status) => self.fail(core, handle, Some((index, status))),
            Next::GivenUp => self.fail(core, handle, None),
        }
    }

    fn take_other_id(&mut self, core: &mut Core<'_>, handle: LogHandle, index: usize) {
        let id = self.new_id(handle, index);
        let log = self.logs.get_mut(&handle);
        if let Some(block) = log.and_then(|log| log.blocks.get_mut(index)) {
            self.owners.remove(&block.id);
            block.id = id;
        }
        self.ask(core, handle, index, BlockStep::Create);
    }

    fn on_started(&mut self, core: &mut Core<'_>, handle: LogHandle, index: usize) {
        let Some(log) = self.logs.get_mut(&handle) else {
            return;
        };
        if let Some(block) = log.blocks.get_mut(index) {
            block.set_started(core.now);
        }
        if !log.announced && log.blocks.iter().all(|block| block.started) {
            log.announced = true;
            core.event(Event::LogStarted {
                handle,
                name: log.config.name.clone(),
                blocks: log.blocks.len(),
                missing: log.missing.clone(),
            });
        }
    }

    /// Gives up a log until the next connection.
    fn fail(&mut self, core: &mut Core<'_>, handle: LogHandle, refused: Option<(usize, Status)>) {
        let Some(log) = self.logs.get_mut(&handle) else {
            return;
        };
        let name = log.config.name.clone();
        let error = match refused {
            Some((index, status)) => LogError::Refused {
                name,
                variables: log.names_of_block(index),
                status,
            },
            None => LogError::Unanswered { name },
        };
        for block in std::mem::take(&mut log.blocks) {
            self.owners.remove(&block.id);
            let request = block.request(BlockStep::Delete, 0).encode();
            core.ask(request, 2, Purpose::DeleteBlock);
        }
        core.event(Event::LogFailed { handle, error });
    }

    /// Takes a packet of values.
    pub(crate) fn on_data(&mut self, core: &mut Core<'_>, samples: &mut Samples, packet: &Packet) {
        let Ok(data) = Data::parse(packet) else {
            core.stats.malformed += 1;
            return;
        };
        let owner = self.owners.get(&data.block).copied();
        let Some((log, (handle, index))) =
            owner.and_then(|owner| Some((self.logs.get_mut(&owner.0)?, owner)))
        else {
            core.stats.unknown_blocks += 1;
            return;
        };
        let Some(block) = log.blocks.get_mut(index) else {
            return;
        };
        if !block.take(&data.values, &mut log.values) {
            core.stats.malformed += 1;
            return;
        }
        core.stats.incomplete += u64::from(block.fresh);
        block.fresh = true;
        block.heard = Some(core.now);
        let drone_ms = self.clock.wide(data.time_ms);
        if log.blocks.iter().all(|block| block.fresh) {
            samples.push(handle, drone_ms, &log.values);
            log.blocks.iter_mut().for_each(|block| block.fresh = false);
        }
    }

    /// When a block has been silent for so long that the drone must have forgotten it.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let logs = self.logs.values();
        logs.flat_map(|log| {
            log.blocks
                .iter()
                .filter_map(|b| b.silent_at(log.config.period))
        })
        .min()
    }

    /// Sets up again what the drone has forgotten.
    pub(crate) fn on_timeout(&mut self, core: &mut Core<'_>) {
        let mut silent = Vec::new();
        for (handle, log) in &mut self.logs {
            for (index, block) in log.blocks.iter_mut().enumerate() {
                let due = block.silent_at(log.config.period);
                if due.is_some_and(|due| due <= core.now) {
                    block.started = false;
                    silent.push((*handle, index));
                }
            }
        }
        for (handle, index) in silent {
            let name = self.logs.get(&handle).map_or("", |log| &log.config.name);
            core.notice(format!("log {name}: no data, setting its block up again"));
            self.ask(core, handle, index, BlockStep::Delete);
        }
    }
}

impl Log {
    fn names_of_block(&self, index: usize) -> Vec<String> {
        let placed = self.blocks.get(index).map_or(&[][..], |b| &b.variables);
        let wanted = placed
            .iter()
            .filter_map(|p| self.config.variables.get(p.slot));
        wanted.map(|variable| variable.name.clone()).collect()
    }
}
