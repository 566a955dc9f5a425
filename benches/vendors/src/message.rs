//! The binary probe as any DDS implementation sees it: the fields of `msg/RttProbe.msg` in their order.

use serde::{Deserialize, Serialize};

/// Name of the type on the wire, as rosidl makes it for DDS.
pub const TYPE_NAME: &str = "crazyflie_openlink::msg::dds_::RttProbe_";

/// A probe or its echo. Times are monotonic, ns.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RttProbe {
    /// Identifies the run.
    pub run_id: u64,
    /// Counts from 0; the highest ones look for the relay.
    pub sequence: u64,
    /// When the schedule wanted the probe to leave.
    pub intended_ns: i64,
    /// When it left.
    pub sent_ns: i64,
    /// When the relay received it; 0 in a probe.
    pub relay_received_ns: i64,
    /// When the relay sent it back; 0 in a probe.
    pub relay_sent_ns: i64,
    /// The payload.
    pub data: Vec<u8>,
}

/// Name on the wire of a ROS topic.
#[must_use]
pub fn dds_topic(ros_name: &str) -> String {
    format!("rt/{}", ros_name.trim_start_matches('/'))
}
