//! Paced, partially reliable, in-order datagram transport over UDP.
//!
//! Made for control traffic: small messages at 10 to 500 Hz that are worth nothing after a few milliseconds, next to
//! requests that must arrive, next to large messages that may wait. Lost messages are repaired several times within
//! their life, spread over it, so that one burst of loss does not take every copy; nothing is delivered after its
//! expiry. The idea is that of the Predictably Reliable Real-time Transport; the wire format is our own.
//!
//! [`Endpoint`] is the whole protocol as a state machine: it takes the time, datagrams and messages as arguments and
//! hands out datagrams, messages and the next instant at which it wants to be called. It never reads a clock, opens a
//! socket or starts a thread. [`udp`] puts it on a socket, [`blocking`] puts that on a thread.

mod ack;
mod bandwidth;
pub mod blocking;
mod clock;
mod code;
mod config;
mod connect;
mod cookie;
mod debt;
mod endpoint;
mod error;
mod expect;
pub mod keys;
mod loss;
mod message;
mod noise;
mod pace;
mod pacer;
mod path;
mod payload;
pub mod planner;
mod proof;
mod receiver;
mod reset;
mod rtt;
mod seal;
mod sender;
mod sent;
mod seq;
mod session;
mod slab;
mod spikes;
mod stats;
mod time;
mod trace;
pub mod udp;
mod window;
pub mod wire;

pub use config::{Config, Repair};
pub use endpoint::{Endpoint, Event, PeerId, StrayStats, Transmit};
pub use error::{ConfigError, Error, SendError, WireError};
pub use keys::{KeyError, Keys, PublicKey, SecretKey, SharedKey};
pub use message::{Delivery, Departure, Gap, Message, MessageId, Mode, Stream};
pub use payload::{INLINE_PAYLOAD, Payload};
pub use seq::{PacketNumber, Seq};
pub use stats::{Paces, ReceiveStats, RttStats, SendStats, Stats};
pub use time::{MAX_LIFE, Span, Stamp};
pub use trace::{Fate, Trace};
pub use wire::frame::CloseReason;
