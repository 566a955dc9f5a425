//! Bytes of requests, as cflib sends them.

use std::collections::BTreeMap;
use std::f64::consts::FRAC_1_SQRT_2;

use crtp::setpoint::{Hover, Setpoint};
use crtp::{FullState, Gate, Packet, ProtocolVersion, ValueError, high_level as hl};

use crate::{bytes, list, packet};

const GOLDEN: &[(&str, &str)] = &[
    ("rpyt", "3c000020410000a0400000a0413075"),
    ("rpyt_zero", "3c0000000000000000000000000000"),
    ("stop", "7c00"),
    ("velocity_world_8", "7c010000003f000080becdcccc3d0000f0c1"),
    ("velocity_world_9", "7c080000003f000080becdcccc3d0000f041"),
    ("z_distance_8", "7c020000c03f000020c0000034c2cdcccc3e"),
    ("z_distance_9", "7c090000c03f000020c000003442cdcccc3e"),
    ("hover_8", "7c05cdcc4c3ecdccccbd000070c10000003f"),
    ("hover_9", "7c0acdcc4c3ecdccccbd000070410000003f"),
    ("cppm", "7c0300dc05dc05dc05e803"),
    ("altitude_hold", "7c040000000000000000000000000000003f"),
    ("position", "7c070000803f000000400000003f0000b442"),
    ("manual_angle", "7c0b0000a0400000404000002041b88800"),
    ("manual_rate", "7c0b0000c8420000484200002041b88801"),
    ("notify_stop", "7d0000000000"),
    ("notify_stop_500", "7d00f4010000"),
    (
        "full_state",
        "7c06e80330f8f4016400c800d4fe000000005226000000c06400c800d4fe",
    ),
    (
        "full_state_half",
        "7c0600000000e80300000000000000000000000069a59516000000000000",
    ),
    (
        "full_state_turned",
        "7c0600000000e803000000000000000000000000ff030080000000000000",
    ),
    ("group_mask", "8c0003"),
    ("hl_stop", "8c0300"),
    ("takeoff", "8c07000000003f000000000000000040"),
    ("takeoff_current_yaw", "8c07000000803f000000000100002040"),
    ("land", "8c080000000000000000000100000040"),
    (
        "go_to_7",
        "8c0400000000803f000000000000003f0000000000004040",
    ),
    (
        "go_to_8",
        "8c0c0000000000803f000000000000003f0000000000004040",
    ),
    (
        "go_to_all",
        "8c0c0101010000803f000000000000003fdb0fc93f00004040",
    ),
    (
        "spiral",
        "8c0b000001db0fc93f0000003f0000803fcdcc4c3e00004040",
    ),
    ("define_trajectory", "8c06010100000000000a"),
    ("define_compressed", "8c060201018400000003"),
    ("start_trajectory_9", "8c05000100010000803f"),
    ("start_trajectory_10", "8c0d00010000010000803f"),
    ("ext_position", "6c0000803f0000004000004040"),
    (
        "ext_pose",
        "6d080000803f00000040000040400000000000000000000000000000803f",
    ),
    ("lpp_short", "6d02050102"),
    ("emergency_stop_11", "6d03"),
    ("watchdog_11", "6d04"),
    ("lighthouse_persist", "6d0b03000100"),
    ("log_create", "5d0601772f00773000773100774e00778100"),
    ("log_start", "5d03010a"),
    ("log_stop", "5d0401"),
    ("log_delete", "5d0201"),
    ("log_reset", "5d05"),
    ("log_toc_info", "5c03"),
    ("log_toc_item", "5c020000"),
    ("param_toc_info", "2c03"),
    ("param_toc_item", "2c020000"),
    ("param_read", "2d0000"),
    ("param_write_u8", "2e260002"),
    (
        "param_by_name",
        "2f006b616c6d616e00696e697469616c5800060000c03f",
    ),
    ("param_extended_10", "2f020f00"),
    ("param_extended_11", "2f070f00"),
    ("memory_count", "4c01"),
    ("memory_details", "4c0200"),
    ("memory_read", "4d000000000018"),
    ("arm_11", "dc0101"),
    ("recover_11", "dc02"),
    ("continuous_wave", "dc0001"),
    ("notification", "dc0301"),
    ("app", "dedeadbeef"),
    ("protocol", "dd00"),
    ("arm", "9d0101"),
    ("disarm", "9d0100"),
    ("recover", "9d02"),
    ("emergency_stop", "9d03"),
    ("watchdog", "9d04"),
    ("supervisor_info", "9c0c"),
    ("source", "fd00"),
];

fn built() -> BTreeMap<&'static str, Vec<u8>> {
    list::all().unwrap().into_iter().collect()
}

#[test]
fn every_golden_vector_is_built() {
    let built = built();
    for (name, hex) in GOLDEN {
        assert_eq!(built[name], bytes(hex), "{name}");
    }
}

#[test]
fn every_uplink_vector_passes_the_gate() {
    let mut gate = Gate::new();
    gate.observe(&packet("400102"));
    for (name, bytes) in built() {
        if name != "console" && !name.starts_with("trajectory_") {
            let verdict = gate.admit(&Packet::from_bytes(&bytes).unwrap());
            assert!(verdict.is_ok(), "{name}: {verdict:?}");
        }
    }
}

#[test]
fn plus_one_on_each_axis_of_hover_for_each_version() {
    let one = "0000803f";
    let none = "00000000";
    for version in 6..=12 {
        let (number, yaw, zero) = match version {
            ..=8 => ("05", "000080bf", "00000080"),
            _ => ("0a", one, none),
        };
        let hover = |values: [f32; 4]| {
            let [vx, vy, yaw_rate, z] = values;
            let hover = Hover {
                vx,
                vy,
                yaw_rate,
                z,
            };
            let packet = Setpoint::Hover(hover).encode(ProtocolVersion(version));
            format!("{:?}", packet.unwrap())
        };
        for (values, expected) in [
            ([1.0, 0.0, 0.0, 0.0], [one, none, zero, none]),
            ([0.0, 1.0, 0.0, 0.0], [none, one, zero, none]),
            ([0.0, 0.0, 1.0, 0.0], [none, none, yaw, none]),
            ([0.0, 0.0, 0.0, 1.0], [none, none, zero, one]),
        ] {
            let expected = format!("7c{number}{}", expected.concat());
            assert_eq!(hover(values), expected, "version {version}");
        }
    }
}

#[test]
fn old_and_new_packets_mean_the_same_yaw() {
    let legacy = Setpoint::parse(&packet("7c05cdcc4c3ecdccccbd000070c10000003f"));
    let new = Setpoint::parse(&packet("7c0acdcc4c3ecdccccbd000070410000003f"));
    assert_eq!(legacy, new);
    assert!(matches!(new, Ok(Setpoint::Hover(h)) if h.yaw_rate == 15.0));
}

#[test]
fn full_state_saturates_and_never_wraps() {
    let far = FullState {
        position: [40.0, -40.0, 1e30],
        velocity: [32.767, -32.767, 32.768],
        acceleration: [0.0; 3],
        attitude: [0.0, 0.0, 0.0, 1.0],
        rates: [0.0; 3],
    };
    let built = Setpoint::FullState(far).encode(ProtocolVersion::NEWEST);
    assert_eq!(
        format!("{:?}", built.unwrap()),
        "7c06ff7f0180ff7fff7f0180ff7f000000000000000000c0000000000000"
    );
}

#[test]
fn quaternions_compress_as_the_firmware_does() {
    for (attitude, bits) in [
        ([0.0, 0.0, 0.0, 1.0], 0xc000_0000),
        ([1.0, 0.0, 0.0, 0.0], 0x0000_0000),
        ([0.5; 4], 0x1695_a569),
        ([0.0, 0.0, FRAC_1_SQRT_2, -FRAC_1_SQRT_2], 0x8000_03ff),
        ([0.1, 0.2, 0.3, 0.927_361_8], 0xc482_44d9),
    ] {
        assert_eq!(crtp::compress_quaternion(attitude), Ok(bits));
        let length: f64 = crtp::decompress_quaternion(bits)
            .iter()
            .map(|v| v * v)
            .sum();
        assert!((length - 1.0).abs() < 1e-12);
    }
    let decoded = crtp::decompress_quaternion(0xc482_44d9);
    for (value, expected) in decoded
        .into_iter()
        .zip([0.09963, 0.20065, 0.30028, 0.92717])
    {
        assert!((value - expected).abs() < 1e-5);
    }
}

#[test]
fn values_that_are_no_numbers_are_refused_by_name() {
    let hover = Hover {
        vx: 0.0,
        vy: f32::NAN,
        yaw_rate: 0.0,
        z: 0.5,
    };
    let error = Setpoint::Hover(hover)
        .encode(ProtocolVersion::NEWEST)
        .unwrap_err();
    assert_eq!(error.to_string(), "vy must be a finite number, got NaN");
    assert!(crtp::compress_quaternion([0.0; 4]).is_err());
    assert!(crtp::compress_quaternion([f64::INFINITY, 0.0, 0.0, 0.0]).is_err());
}

#[test]
fn what_an_old_version_cannot_say_is_refused() {
    let go_to = hl::GoTo2 {
        group_mask: 0,
        relative: false,
        linear: true,
        x: 0.0,
        y: 0.0,
        z: 1.0,
        yaw: 0.0,
        duration: 1.0,
    };
    let version = ProtocolVersion(7);
    assert_eq!(
        hl::Command::GoTo(go_to).for_version(version),
        Err(ValueError::Version {
            what: "linear flight",
            since: 8,
            version
        })
    );
}

#[test]
fn a_tenth_log_variable_cut_to_its_type_byte_is_ignored() {
    let nine = "010077020077030077040077050077060077070077080077090077";
    let request = packet(&format!("5d060177{nine}"));
    let Ok(crtp::log::Control::Create { variables, .. }) = crtp::log::Control::parse(&request)
    else {
        panic!("no create request");
    };
    let ids: Vec<u16> = variables.iter().map(|v| v.id).collect();
    assert_eq!(ids, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
}
