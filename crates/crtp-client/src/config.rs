//! What a client can be told, with defaults for a drone behind a UART and a radio network.

use std::time::Duration;

/// Settings of one client; fixed once it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long one request waits for its answer before it is sent again.
    pub request_timeout: Duration,
    /// How many times a request is sent before it counts as unanswered; at least 1. Commands whose repetition
    /// would do something else (high-level commands) are sent once, and wait as long as all tries together.
    pub attempts: u32,
    /// Pause before a new attempt to connect; `None` stays disconnected.
    pub reconnect: Option<Duration>,
    /// How often an echo is sent to measure latency and to see that the drone is there; `None` sends none and
    /// never finds the link lost by silence.
    pub ping_period: Option<Duration>,
    /// The link is lost when nothing at all has come in for this long.
    pub link_lost_after: Duration,
    /// Split a variable list that exceeds 26 bytes over several blocks; otherwise it is refused.
    pub split_blocks: bool,
    /// Fetch the extended types of parameters, to know which are persistent.
    pub extended_types: bool,
    /// Read every parameter after connecting.
    pub read_all_params: bool,
    /// Compare one entry of a cached table with the drone's before trusting it.
    pub verify_cache: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            request_timeout: Duration::from_millis(300),
            attempts: 5,
            reconnect: Some(Duration::from_secs(1)),
            ping_period: Some(Duration::from_millis(100)),
            link_lost_after: Duration::from_secs(1),
            split_blocks: true,
            extended_types: false,
            read_all_params: false,
            verify_cache: true,
        }
    }
}
