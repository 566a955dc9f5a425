//! One block on the drone: its set-up step by step, and the values in its packets.

use std::time::{Duration, Instant};

use crtp::log::{Control, MAX_VARIABLES};
use crtp::{Status, Value};

use super::plan::Placed;
use crate::core::BlockStep;

/// Set-ups of one block before the log counts as failed.
const ATTEMPTS: u32 = 5;

/// A block and its set-up.
pub(super) struct Block {
    /// Its number on the drone.
    pub(super) id: u8,
    pub(super) variables: Vec<Placed>,
    pub(super) started: bool,
    /// Has sent values since the last sample.
    pub(super) fresh: bool,
    /// When values came last, or it was started.
    pub(super) heard: Option<Instant>,
    attempts: u32,
}

/// What to do after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Step(BlockStep),
    /// The drone has a block of that number already.
    OtherId,
    Started,
    Refused(Status),
    GivenUp,
}

impl Block {
    pub(super) const fn new(id: u8, variables: Vec<Placed>) -> Self {
        Self {
            id,
            variables,
            started: false,
            fresh: false,
            heard: None,
            attempts: 0,
        }
    }

    /// The request of a step.
    pub(super) fn request(&self, step: BlockStep, period_ms: u16) -> Control {
        let block = self.id;
        let some = |from: usize| {
            let rest = self.variables.iter().skip(from).take(MAX_VARIABLES);
            rest.map(|placed| placed.variable).collect()
        };
        match step {
            BlockStep::Delete => Control::Delete { block },
            BlockStep::Create => Control::Create {
                block,
                variables: some(0),
            },
            BlockStep::Append(from) => Control::Append {
                block,
                variables: some(from),
            },
            BlockStep::Start => Control::Start { block, period_ms },
            BlockStep::StartTens => Control::StartTens {
                block,
                tens_of_ms: u8::try_from(period_ms.div_ceil(10)).unwrap_or(u8::MAX),
            },
        }
    }

    /// What follows the answer to a step.
    pub(super) fn after(&self, step: BlockStep, status: Status) -> Next {
        match (step, status) {
            (BlockStep::Delete, _) => Next::Step(BlockStep::Create),
            (BlockStep::Create, Status::OK) => self.more(MAX_VARIABLES),
            (BlockStep::Append(from), Status::OK) => self.more(from + MAX_VARIABLES),
            (BlockStep::Start | BlockStep::StartTens, Status::OK) => Next::Started,
            (BlockStep::Create, Status::EXISTS) => Next::OtherId,
            (BlockStep::Start, Status::UNKNOWN_COMMAND) => Next::Step(BlockStep::StartTens),
            (_, status) => Next::Refused(status),
        }
    }

    const fn more(&self, from: usize) -> Next {
        if from < self.variables.len() {
            Next::Step(BlockStep::Append(from))
        } else {
            Next::Step(BlockStep::Start)
        }
    }

    /// What follows if a step stays unanswered: from the beginning, since an append may or may not have been
    /// done.
    pub(super) const fn after_silence(&mut self) -> Next {
        self.attempts += 1;
        if self.attempts < ATTEMPTS {
            Next::Step(BlockStep::Delete)
        } else {
            Next::GivenUp
        }
    }

    /// It runs from now on.
    pub(super) const fn set_started(&mut self, now: Instant) {
        self.started = true;
        self.heard = Some(now);
        self.attempts = 0;
    }

    /// When it has been silent for so long that the drone must have forgotten it.
    pub(super) fn silent_at(&self, period: Duration) -> Option<Instant> {
        let patience = Duration::from_secs(2) + period * 10;
        self.heard.filter(|_| self.started).map(|at| at + patience)
    }

    /// Writes the values of a packet to their places; `false` (and no value is written) if the packet has
    /// another length.
    pub(super) fn take(&self, bytes: &[u8], values: &mut [Option<Value>]) -> bool {
        let size: usize = self.variables.iter().map(|p| p.kind().size()).sum();
        if bytes.len() != size {
            return false;
        }
        let mut rest = bytes;
        for placed in &self.variables {
            let Some((value, behind)) = Value::take(placed.kind(), rest) else {
                return false;
            };
            if let Some(place) = values.get_mut(placed.slot) {
                *place = Some(value);
            }
            rest = behind;
        }
        true
    }
}
