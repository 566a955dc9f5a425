//! The nodes: what each one reads, does and reports. One module per executable.

pub mod bridge;
pub mod domain_bridge;
pub mod relay;
pub mod rtt;

use crate::ros::args::ArgsError;

/// A prober that hears itself measures nothing, and a relay that feeds itself never stops.
fn refuse_equal_topics(probe: &str, echo: &str) -> Result<(), ArgsError> {
    if probe.trim_start_matches('/') == echo.trim_start_matches('/') {
        let allowed = "another topic than probe_topic";
        return Err(ArgsError::value("echo_topic", format!("{echo:?}"), allowed));
    }
    Ok(())
}
