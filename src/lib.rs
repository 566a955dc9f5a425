//! The ROS 2 layer of crazyflie_openlink. Everything that needs no ROS is in the crates below `crates/`.
//!
//! ```text
//!  bin/bridge   bin/relay   bin/rtt   bin/domain_bridge      one thin file per executable
//!       │           │          │            │
//!  nodes::bridge  nodes::relay nodes::rtt  nodes::domain_bridge
//!       │           │          │            │
//!       ├───────────┴──────────┴──── ros    │                arguments, domains, QoS, contexts, clock (rclrs)
//!       │                      │         rcl_raw             serialized forwarding (rcl's C functions)
//!  bridge_core, link        latency
//!       │
//!  crtp_client, crtp, crtp_uart, prrt
//! ```
//!
//! Only this crate knows rclrs. Units are SI and axes REP-103 on this side; `bridge_core` converts.

pub mod nodes;
pub mod rcl_raw;
pub mod ros;

use std::io::IsTerminal as _;
use std::process::ExitCode;

/// Runs a node's main function: sets up the log, reads the arguments, and turns an error into one line and
/// exit code 1.
pub fn main(name: &str, run: impl FnOnce(&ros::args::NodeArgs) -> anyhow::Result<()>) -> ExitCode {
    let filter = tracing_subscriber::EnvFilter::try_from_env("OPENLINK_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .with_writer(std::io::stderr)
        .init();
    let result = ros::args::NodeArgs::parse(std::env::args(), name)
        .map_err(Into::into)
        .and_then(|a| run(&a));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{}", told_once(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error with those of its causes that its text does not name already.
pub(crate) fn told_once(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !text.contains(&cause) {
            let colon = if text.is_empty() { "" } else { ": " };
            text = format!("{text}{colon}{cause}");
        }
    }
    text
}
