//! The nodes: what each one reads, does and reports. One module per executable.

pub mod bridge;
pub mod domain_bridge;
pub mod probe_message;
pub mod relay;
pub mod rtt;

use crate::ros::args::{ArgsError, NodeArgs};
use crate::ros::domain;
use crate::ros::session::Session;

/// A prober that hears itself measures nothing, and a relay that feeds itself never stops.
fn refuse_equal_topics(probe: &str, echo: &str) -> Result<(), ArgsError> {
    if probe.trim_start_matches('/') == echo.trim_start_matches('/') {
        let allowed = "another topic than probe_topic";
        return Err(ArgsError::value("echo_topic", format!("{echo:?}"), allowed));
    }
    Ok(())
}

/// The domain of the echoes: that of the probes unless `echo_domain_id` says otherwise.
fn echo_domain(args: &NodeArgs, domain: usize) -> Result<usize, ArgsError> {
    let id = args.int("echo_domain_id", domain as i64, 0..=domain::MAX)?;
    Ok(id as usize)
}

/// A session in the domain of the echoes, where that is another one.
fn second_session(
    args: &NodeArgs,
    domain: usize,
    echo_domain: usize,
) -> anyhow::Result<Option<Session>> {
    (echo_domain != domain)
        .then(|| Session::open(args, echo_domain, "_echo"))
        .transpose()
}
