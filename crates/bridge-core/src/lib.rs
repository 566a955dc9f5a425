//! What a bridge decides, without waiting for anything: order, drops, safety rules.
//!
//! Nothing here reads a clock, opens a file or starts a thread; time comes in as an argument, packets come and
//! go through the [`link::Link`] interface.

pub mod bridge;
pub mod command;
pub mod domain;
pub mod drone;
pub mod drone_side;
pub mod fleet;
pub mod health;
pub mod kind;
pub mod mailbox;
pub mod name;
pub mod outbox;
pub mod policy;
pub mod telemetry;
pub mod units;

#[cfg(test)]
mod test;

pub use bridge::{Bridge, BridgeEvent, Summary};
pub use domain::{DomainId, MAX as MAX_DOMAIN};
pub use drone::{Drone, DroneEvent};
pub use drone_side::{DroneSide, Reason};
pub use fleet::Fleet;
pub use name::RobotName;
pub use policy::{LinkLoss, Safety};
