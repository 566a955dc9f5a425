//! What every node needs of ROS: arguments, domains, QoS and contexts. Knows nothing of drones.

pub mod args;
pub mod domain;
pub mod qos;
pub mod session;
pub mod stand_in;
pub mod stop;
pub mod topics;
