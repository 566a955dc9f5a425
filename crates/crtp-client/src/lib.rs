//! Crazyflie client state machine: connecting, tables of contents, log blocks and parameters.
//!
//! [`Client`] speaks for one drone. It does no I/O and looks at no clock; whoever owns it moves its packets and
//! tells it the time. Setpoints do not pass through it.

mod client;
mod config;
mod connect;
mod console;
mod core;
mod event;
mod lane;
mod liveness;
mod log;
mod param;
mod request;
mod table;

pub use client::Client;
pub use config::Config;
pub use event::{DisconnectReason, Event, Reply, RequestError, RequestId, Stats};
pub use log::{
    LogConfig, LogError, LogHandle, LogSample, LogVariable, MAX_BLOCK, MAX_BLOCKS, MAX_VARIABLES,
};
pub use param::{Number, ParamError};
pub use request::Request;
pub use table::cache::{CacheError, FileCache, MemoryCache, NoCache, TableCache};
pub use table::{Entry, Table, TableKey};
