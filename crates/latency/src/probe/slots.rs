//! One slot for each probe that left, by sequence number.

use std::time::Duration;

use crate::time::MonoNs;

/// What became of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// No answer yet.
    Open,
    /// Given up; an answer is late.
    TimedOut,
    /// Answered, in time or not.
    Answered,
    /// It never left.
    Unsent,
}

/// A probe.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) intended: MonoNs,
    pub(super) sent: MonoNs,
    pub(super) state: State,
}

/// All probes of a run.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    /// Neither answered nor unsent.
    unresolved: u64,
}

impl Slots {
    /// Room for `total`, so that nothing is allocated while measuring.
    pub(super) fn with_capacity(total: u64) -> Self {
        Self {
            slots: Vec::with_capacity(usize::try_from(total).unwrap_or(0)),
            unresolved: 0,
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.slots.len() as u64
    }

    /// Adds a probe and returns its sequence number.
    pub(super) fn push(&mut self, intended: MonoNs, sent: MonoNs) -> u64 {
        self.slots.push(Slot {
            intended,
            sent,
            state: State::Open,
        });
        self.unresolved += 1;
        self.len() - 1
    }

    pub(super) fn get(&self, sequence: u64) -> Option<Slot> {
        self.slots.get(usize::try_from(sequence).ok()?).copied()
    }

    /// Marks a probe as answered; `None` when it was never sent.
    pub(super) fn answered(&mut self, sequence: u64) -> Option<Slot> {
        self.resolve(sequence, State::Answered)
    }

    /// Marks a probe as not sent; false when it is unknown or already resolved.
    pub(super) fn forget(&mut self, sequence: u64) -> bool {
        self.resolve(sequence, State::Unsent).is_some()
    }

    fn resolve(&mut self, sequence: u64, state: State) -> Option<Slot> {
        let slot = self.slots.get_mut(usize::try_from(sequence).ok()?)?;
        if matches!(slot.state, State::Answered | State::Unsent) {
            return None;
        }
        slot.state = state;
        self.unresolved -= 1;
        Some(*slot)
    }

    pub(super) fn last_sent(&self) -> Option<MonoNs> {
        self.slots.last().map(|slot| slot.sent)
    }

    pub(super) fn last_is_open(&self) -> bool {
        self.slots
            .last()
            .is_some_and(|slot| slot.state == State::Open)
    }

    pub(super) const fn all_resolved(&self) -> bool {
        self.unresolved == 0
    }

    /// Gives up the last probe when its time-out has passed. Only ping-pong waits for a single probe; at a rate,
    /// [`Slot::sent`] alone tells whether an answer is late.
    pub(super) fn time_out(&mut self, now: MonoNs, timeout: Duration) {
        if let Some(last) = self.slots.last_mut()
            && last.state == State::Open
            && now >= last.sent + timeout
        {
            last.state = State::TimedOut;
        }
    }

    /// Sequence numbers of the probes that can still be answered in time at `now`.
    pub(super) fn open_after(&self, now: MonoNs, timeout: Duration) -> Vec<u64> {
        let in_time = self
            .slots
            .partition_point(|slot| slot.sent + timeout <= now);
        (in_time as u64..)
            .zip(self.slots.iter().skip(in_time))
            .filter(|(_, slot)| slot.state == State::Open)
            .map(|(sequence, _)| sequence)
            .collect()
    }
}
