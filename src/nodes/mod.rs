//! The nodes: what each one reads, does and reports. One module per executable.

pub mod bridge;
pub mod domain_bridge;
pub mod relay;
pub mod rtt;
