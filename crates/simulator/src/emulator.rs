//! Emulated network paths: what a scenario does to packets, in virtual time or between two network namespaces.
//!
//! [`Direction`] is the pure part: it takes packets with the time and gives them back when they are due. [`Emulation`]
//! puts two of them between namespaces, [`Proxy`] between UDP sockets. Nothing here knows the protocols that it carries.

mod conditions;
mod direction;
mod lateness;
mod namespaces;
mod packet;
mod proxy;
mod rate;
mod raw;
mod running;
mod stats;
mod tun;
mod weather;

pub use conditions::{
    Bursts, Conditions, Loss, Outage, Reorder, Scenario, ScenarioError, Spikes, built_in, parse,
};
pub use direction::{Delivery, Direction, Meta, UDP_IP_HEADERS};
pub use lateness::Lateness;
pub use namespaces::{EmulationError, Namespaces};
pub use proxy::Proxy;
pub use rate::Rate;
pub use running::{Emulation, Report};
pub use stats::DirectionStats;
pub use weather::{Side, blocked};
