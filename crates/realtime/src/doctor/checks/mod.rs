//! The checks, one file a group. Each reads through the machine and judges; none changes anything.

pub mod irq;
pub mod isolation;
pub mod kernel;
pub mod memory;
pub mod network;
pub mod scheduler;
pub mod speed;
pub mod time;
pub mod uart;
pub mod wifi;
