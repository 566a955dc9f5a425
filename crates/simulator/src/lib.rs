//! Simulated Crazyflie that speaks CRTP protocol 12, its servers on a pseudo-terminal and UDP, and emulated links.
//!
//! [`Drone`] is the pure part: it flies, answers and keeps a record of everything that would have crashed a real
//! drone. It stands at the end of any path, so that everything else runs and is tested without hardware.

mod config;
mod drone;
pub mod emulator;
mod flight;
mod record;
mod report;
mod server;

pub use config::Config;
pub use drone::{Drone, Snapshot};
pub use flight::{LEVEL_OUT_MS, LOCK_MS, State};
pub use record::{
    Crash, FlightRecord, Hazard, LinkChange, PortCount, ThrustLock, Traffic, Transition, WouldCrash,
};
pub use report::{Commands, Report};
pub use server::{Framing, ServeError, Server, ServerConfig};
