//! What a client tells its owner: the connection's ups and downs, answers, values. Errors of the boundary are
//! here, too.

use std::collections::VecDeque;
use std::time::Duration;

use crtp::{ProtocolVersion, Status, Value, ValueError, high_level, supervisor};

use crate::log::{LogError, LogHandle};

/// Names one request, for its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub(crate) u64);

/// Why the client is not connected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DisconnectReason {
    /// The owner asked for it.
    #[error("closed")]
    Closed,
    /// A request of the connecting sequence stayed unanswered.
    #[error("no answer to {what} within {} ms", waited.as_millis())]
    NoAnswer {
        /// The request.
        what: &'static str,
        /// Over all tries.
        waited: Duration,
    },
    /// Nothing came in for too long.
    #[error("nothing received for {} ms", silence.as_millis())]
    Silent {
        /// How long.
        silence: Duration,
    },
    /// What answered is no Crazyflie.
    #[error("the peer is no Crazyflie: its link source answers something else")]
    NotACrazyflie,
    /// The drone is too old.
    #[error("protocol version {0} is too old, the oldest supported is {oldest}", oldest = ProtocolVersion::OLDEST)]
    TooOld(ProtocolVersion),
    /// An answer of the connecting sequence makes no sense.
    #[error("the drone's answer to {what} makes no sense: {detail}")]
    Nonsense {
        /// The request.
        what: &'static str,
        /// Why.
        detail: String,
    },
}

/// Why a request did not do what it was meant to.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RequestError {
    /// No answer came.
    #[error("no answer")]
    TimedOut,
    /// The connection ended first, or there is none.
    #[error("not connected")]
    NotConnected,
    /// The drone refused.
    #[error("the drone refused: {0}")]
    Refused(Status),
    /// The answer was shorter than it has to be.
    #[error("the answer has {got} bytes instead of {expected}")]
    Truncated {
        /// Data bytes that came.
        got: usize,
        /// Data bytes it should have.
        expected: usize,
    },
    /// Too many requests wait already.
    #[error("too many requests are waiting")]
    Busy,
    /// A value no packet can carry.
    #[error(transparent)]
    Value(#[from] ValueError),
}

/// The drone's answer to a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// A high-level command was taken.
    HighLevel(high_level::Reply),
    /// The answer to an arm, disarm or recovery request: granted or not, and the state now.
    Supervisor(supervisor::CommandReply),
    /// The supervisor's state.
    SupervisorInfo(supervisor::Info),
    /// Sent; the drone does not answer it.
    Sent,
    /// The bytes of a memory.
    Memory(Vec<u8>),
    /// The memory is written (and the trajectory defined, if that was asked for).
    Written,
}

/// Something a client has to say.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Tables are there, log blocks are being started, requests are taken.
    Connected {
        /// The drone's protocol version.
        version: ProtocolVersion,
        /// Entries of the log table.
        log_variables: usize,
        /// Entries of the parameter table.
        params: usize,
        /// Neither table had to be fetched.
        from_cache: bool,
    },
    /// The connection ended, or an attempt failed.
    Disconnected {
        /// Why.
        reason: DisconnectReason,
        /// When the next attempt comes, if one comes.
        retry_in: Option<Duration>,
    },
    /// A parameter's value, read or changed by the drone itself.
    ParamValue {
        /// `group.name`.
        name: String,
        /// The value.
        value: Value,
    },
    /// Every parameter has been read (see [`crate::Config::read_all_params`]).
    ParamsComplete,
    /// The outcome of [`crate::Client::read_param`].
    ParamRead {
        /// The request.
        request: RequestId,
        /// `group.name`.
        name: String,
        /// The value or why there is none.
        outcome: Result<Value, RequestError>,
    },
    /// The outcome of [`crate::Client::write_param`]; `request` is `None` for values restored after a
    /// reconnection.
    ParamWritten {
        /// The request.
        request: Option<RequestId>,
        /// `group.name`.
        name: String,
        /// The value now, or why it is not written.
        outcome: Result<Value, RequestError>,
    },
    /// All blocks of a log are started.
    LogStarted {
        /// The log.
        handle: LogHandle,
        /// Its name.
        name: String,
        /// Blocks it needs.
        blocks: usize,
        /// Variables the drone does not have; the others are logged.
        missing: Vec<String>,
    },
    /// A log cannot be started on this drone; others go on. It is tried again with the next connection.
    LogFailed {
        /// The log.
        handle: LogHandle,
        /// Why.
        error: LogError,
    },
    /// A line of the drone's console, without its line break.
    Console(String),
    /// The outcome of [`crate::Client::request`] and of the memory calls.
    Reply {
        /// The request.
        request: RequestId,
        /// The answer or why there is none.
        outcome: Result<Reply, RequestError>,
    },
    /// Round trip of one echo through the drone's link service.
    Latency(Duration),
    /// Bytes from the user's program on the drone.
    App(Vec<u8>),
    /// Worth one line in a log.
    Notice(String),
}

/// Counters of one client since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Requests sent again because no answer came.
    pub repeats: u64,
    /// Requests that stayed unanswered.
    pub unanswered: u64,
    /// Packets no request waits for and that are no data: late, doubled or for others.
    pub unexpected: u64,
    /// Log data of blocks that are not ours.
    pub unknown_blocks: u64,
    /// Log data of another length than the block has.
    pub malformed: u64,
    /// Samples of split logs of which a part got lost.
    pub incomplete: u64,
    /// Samples dropped because nobody took them.
    pub samples_dropped: u64,
    /// Events dropped because nobody took them.
    pub events_dropped: u64,
    /// Echoes sent.
    pub pings: u64,
    /// Echoes that came back.
    pub echoes: u64,
}

/// Bounded queue of events; the oldest is dropped and counted.
#[derive(Default)]
pub(crate) struct Events {
    queue: VecDeque<Event>,
    pub(crate) dropped: u64,
}

impl Events {
    const MAX: usize = 4096;

    pub(crate) fn push(&mut self, event: Event) {
        if self.queue.len() == Self::MAX {
            self.queue.pop_front();
            self.dropped += 1;
        }
        self.queue.push_back(event);
    }

    pub(crate) fn pop(&mut self) -> Option<Event> {
        self.queue.pop_front()
    }
}
