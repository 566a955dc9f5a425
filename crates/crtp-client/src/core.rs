//! What the parts of a client share: the request lanes, the event queue, and what each request is for. A part
//! gets all of it for the length of one call.

use std::collections::VecDeque;
use std::time::Instant;

use crtp::Packet;

use crate::config::Config;
use crate::connect::ConnectStep;
use crate::event::{Event, Events, RequestId, Stats};
use crate::lane::{Exchange, Expect, Lanes, Tries};
use crate::log::LogHandle;
use crate::param::ParamStep;
use crate::request::UserStep;

/// What a request is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// A step of connecting.
    Connect(ConnectStep),
    /// A step of setting up a log block.
    Block {
        handle: LogHandle,
        index: usize,
        step: BlockStep,
    },
    /// A block nobody wants any more.
    DeleteBlock,
    /// A parameter is read or written.
    Param(ParamStep),
    /// A request of the owner.
    User(RequestId, UserStep),
}

/// Steps of setting up a log block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockStep {
    /// Away with what is left of an earlier attempt.
    Delete,
    Create,
    /// Variables from this one on.
    Append(usize),
    Start,
    /// As above, in tens of milliseconds for firmware that knows nothing finer.
    StartTens,
}

impl Purpose {
    /// Whether a packet that starts like the answer is the answer, and not a late one to an earlier request.
    pub(crate) fn accepts(&self, packet: &Packet) -> bool {
        match self {
            Self::Connect(step) => step.accepts(packet),
            Self::Param(step) => step.accepts(packet),
            Self::Block { .. } | Self::DeleteBlock | Self::User(..) => true,
        }
    }
}

/// What came of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome<'a> {
    Answer(&'a Packet),
    Unanswered,
}

/// Everything the parts share, for the length of one call.
pub(crate) struct Core<'a> {
    pub(crate) now: Instant,
    pub(crate) config: &'a Config,
    pub(crate) lanes: &'a mut Lanes<Purpose>,
    pub(crate) events: &'a mut Events,
    pub(crate) stats: &'a mut Stats,
    /// Packets that need no answer.
    pub(crate) out: &'a mut VecDeque<Packet>,
}

impl Core<'_> {
    /// Asks something; the answer starts with the first `echoed` data bytes of the request.
    pub(crate) fn ask(&mut self, packet: Packet, echoed: usize, purpose: Purpose) {
        self.ask_with(
            packet,
            Expect::echo_of(&packet, echoed),
            Tries::Repeat,
            purpose,
        );
    }

    /// Asks something with another form of answer, or something that must not be repeated.
    pub(crate) fn ask_with(
        &mut self,
        packet: Packet,
        expect: Expect,
        tries: Tries,
        purpose: Purpose,
    ) {
        self.lanes.push(Exchange {
            packet,
            expect,
            purpose,
            tries,
        });
    }

    pub(crate) fn event(&mut self, event: Event) {
        self.events.push(event);
    }

    pub(crate) fn notice(&mut self, text: String) {
        self.event(Event::Notice(text));
    }
}
