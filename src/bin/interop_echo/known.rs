//! Literals that both halves of the test spell out on their own; `test/interop/known.py` has the same values.

use rclrs::RclrsError;
use ros_env::crazyflie_openlink::msg::{
    ConnectionStatistics, ConnectionStatisticsArray, CrtpPacket, FullState, LogBlock, RttProbe,
};
use ros_env::{builtin_interfaces, geometry_msgs, std_msgs};

use super::lanes::Lanes;

/// Adds a lane for every literal.
pub(crate) fn compare_all(lanes: &mut Lanes) -> Result<(), RclrsError> {
    lanes.compare(crtp_packet())?;
    lanes.compare(full_state())?;
    lanes.compare(log_block())?;
    lanes.compare(rtt_probe())?;
    lanes.compare(connection_statistics())?;
    #[cfg(has_test_msgs)]
    test_msgs::compare_all(lanes)?;
    Ok(())
}

fn header() -> std_msgs::msg::Header {
    std_msgs::msg::Header {
        stamp: builtin_interfaces::msg::Time {
            sec: -7,
            nanosec: 999_999_999,
        },
        frame_id: "wörld".into(),
    }
}

fn crtp_packet() -> CrtpPacket {
    let data: Vec<u8> = (0..30).collect();
    CrtpPacket {
        header: header(),
        port: 3,
        channel: 1,
        data: data.as_slice().try_into().unwrap_or_default(),
    }
}

fn full_state() -> FullState {
    let vector = |x, y, z| geometry_msgs::msg::Vector3 { x, y, z };
    FullState {
        header: header(),
        pose: geometry_msgs::msg::Pose {
            position: geometry_msgs::msg::Point {
                x: 1.5,
                y: -2.5,
                z: 0.25,
            },
            orientation: geometry_msgs::msg::Quaternion {
                x: 0.5,
                y: -0.5,
                z: 0.5,
                w: -0.5,
            },
        },
        twist: geometry_msgs::msg::Twist {
            linear: vector(1.0, 2.0, 3.0),
            angular: vector(-1.0, -2.0, -3.0),
        },
        acc: vector(f64::MIN_POSITIVE, f64::MAX, f64::NEG_INFINITY),
    }
}

fn log_block() -> LogBlock {
    LogBlock {
        topic_name: "state".into(),
        frequency: -100,
        variables: vec![String::new(), "stateEstimate.x".into(), "ψ".into()],
    }
}

fn rtt_probe() -> RttProbe {
    RttProbe {
        run_id: u64::MAX,
        sequence: 1 << 53 | 1,
        intended_ns: i64::MIN,
        sent_ns: -1,
        relay_received_ns: 0,
        relay_sent_ns: i64::MAX,
        data: (0..=255).cycle().take(1000).collect(),
    }
}

fn connection_statistics() -> ConnectionStatisticsArray {
    let drone = |uri: &str, sent_count| ConnectionStatistics {
        uri: uri.into(),
        sent_count,
        sent_ping_count: 2,
        receive_count: 3,
        enqueued_count: 4,
        ack_count: 5,
    };
    ConnectionStatisticsArray {
        header: header(),
        stats: vec![drone("radio://0/80/2M", 1), drone("", u64::MAX)],
    }
}

#[cfg(has_test_msgs)]
mod test_msgs {
    use rclrs::RclrsError;
    use ros_env::test_msgs::msg::{
        BasicTypes, BoundedSequences, Constants, Nested, Strings, UnboundedSequences, WStrings,
    };

    use super::super::lanes::Lanes;

    pub(super) fn compare_all(lanes: &mut Lanes) -> Result<(), RclrsError> {
        lanes.compare(basic())?;
        lanes.compare(Nested {
            basic_types_value: basic(),
        })?;
        lanes.compare(strings())?;
        lanes.compare(wide_strings())?;
        lanes.compare(bounded())?;
        lanes.compare(unbounded())
    }

    /// The values of the constants, so that these are compared as well.
    fn basic() -> BasicTypes {
        BasicTypes {
            bool_value: Constants::BOOL_CONST,
            byte_value: Constants::BYTE_CONST,
            char_value: Constants::CHAR_CONST,
            float32_value: Constants::FLOAT32_CONST,
            float64_value: Constants::FLOAT64_CONST,
            int8_value: Constants::INT8_CONST,
            uint8_value: Constants::UINT8_CONST,
            int16_value: Constants::INT16_CONST,
            uint16_value: Constants::UINT16_CONST,
            int32_value: Constants::INT32_CONST,
            uint32_value: Constants::UINT32_CONST,
            int64_value: Constants::INT64_CONST,
            uint64_value: Constants::UINT64_CONST,
        }
    }

    /// Everything else in it are the defaults of the definition.
    fn strings() -> Strings {
        Strings {
            string_value: Strings::STRING_CONST.into(),
            bounded_string_value: "exactly 22 characters.".try_into().unwrap_or_default(),
            ..Strings::default()
        }
    }

    fn wide_strings() -> WStrings {
        WStrings {
            wstring_value: "\u{1F681} ψ".into(),
            array_of_wstrings: ["a".into(), String::new(), "ハ".into()],
            bounded_sequence_of_wstrings: ["x".into(), "ö".into()].into_iter().collect(),
            unbounded_sequence_of_wstrings: vec!["1".into(), "22".into(), "333".into()],
            ..WStrings::default()
        }
    }

    fn bounded() -> BoundedSequences {
        BoundedSequences {
            bool_values: [true, false, true]
                .as_slice()
                .try_into()
                .unwrap_or_default(),
            float64_values: [1.0].as_slice().try_into().unwrap_or_default(),
            string_values: ["one".into(), "two".into()].into_iter().collect(),
            alignment_check: -3,
            ..BoundedSequences::default()
        }
    }

    fn unbounded() -> UnboundedSequences {
        UnboundedSequences {
            bool_values: vec![true; 5],
            char_values: b"text".to_vec(),
            int64_values: vec![i64::MIN, 0, i64::MAX],
            string_values: vec!["one".into(), String::new()],
            basic_types_values: vec![basic(), BasicTypes::default()],
            alignment_check: 4,
            ..UnboundedSequences::default()
        }
    }
}
