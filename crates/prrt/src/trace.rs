//! What a log wants to know of single messages: each sending, and those that died before they left. Collected only when
//! asked for, and bounded: what is not taken in time is forgotten.

use std::collections::VecDeque;
use std::time::Instant;

use crate::message::Stream;
use crate::payload::Payload;
use crate::seq::Seq;

/// Entries that wait to be taken; a driver that takes them after every call never comes near.
const WAITING: usize = 1024;

/// What happened to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was put into a datagram.
    Sent,
    /// A newer one of its stream replaced it before it left.
    Superseded,
    /// It expired before it left.
    Expired,
}

/// One thing that happened to one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// When.
    pub at: Instant,
    /// Its stream.
    pub stream: Stream,
    /// Its number within the stream.
    pub seq: Seq,
    /// 0 for the first sending, then counting: repairs and copies that ride along.
    pub attempt: u8,
    /// What.
    pub fate: Fate,
    /// Its bytes.
    pub data: Payload,
}

/// The entries of one connection.
#[derive(Debug, Default)]
pub(crate) struct Traces(Option<VecDeque<Trace>>);

impl Traces {
    pub(crate) fn new(on: bool) -> Self {
        Self(on.then(|| VecDeque::with_capacity(WAITING)))
    }

    pub(crate) const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn push(&mut self, trace: Trace) {
        if let Some(waiting) = &mut self.0 {
            if waiting.len() == WAITING {
                waiting.pop_front();
            }
            waiting.push_back(trace);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Trace> {
        self.0.as_mut()?.pop_front()
    }
}
