use std::f64::consts::{FRAC_PI_2, PI};

use crtp::compress_quaternion;

use super::*;

fn close(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 5e-3)
}

/// The compressed attitude after a turn about z.
fn facing(yaw: f64) -> f64 {
    compress_quaternion([0.0, 0.0, (yaw / 2.0).sin(), (yaw / 2.0).cos()])
        .unwrap()
        .into()
}

#[test]
fn pose_keeps_metres_and_unpacks_the_attitude() {
    let pose = Pose::from_values(&[1.0, -2.0, 0.5, facing(FRAC_PI_2)]).unwrap();
    assert_eq!(pose.position, [1.0, -2.0, 0.5]);
    assert!(close(&[pose.heading()], &[FRAC_PI_2]));
    assert_eq!(Pose::from_values(&[1.0]), None);
}

#[test]
fn heading_is_counter_clockwise_from_x() {
    for yaw in [-3.0, -1.0, 0.0, 1.0, 3.0] {
        let pose = Pose::from_values(&[0.0, 0.0, 0.0, facing(yaw)]).unwrap();
        assert!(
            close(&[pose.heading()], &[yaw]),
            "{yaw}: {}",
            pose.heading()
        );
    }
}

#[test]
fn odometry_gives_velocity_along_the_body() {
    let north = FRAC_PI_2;
    let odometry = Odometry::from_values(&[
        1000.0,
        0.0,
        500.0,
        facing(north),
        0.0,
        250.0,
        100.0,
        0.0,
        0.0,
        90.0,
    ])
    .unwrap();
    assert_eq!(odometry.pose.position, [1.0, 0.0, 0.5]);
    assert!(
        close(&odometry.linear, &[0.25, 0.0, 0.1]),
        "{:?}",
        odometry.linear
    );
    assert!(
        close(&odometry.angular, &[0.0, 0.0, FRAC_PI_2]),
        "{:?}",
        odometry.angular
    );
}

#[test]
fn nose_down_moves_the_vertical_into_the_body_s_backward_axis() {
    let half = PI / 8.0;
    let nose_down = compress_quaternion([0.0, half.sin(), 0.0, half.cos()]).unwrap();
    let values = [
        0.0,
        0.0,
        0.0,
        nose_down.into(),
        0.0,
        0.0,
        1000.0,
        0.0,
        0.0,
        0.0,
    ];
    let linear = Odometry::from_values(&values).unwrap().linear;
    let eighth = std::f64::consts::FRAC_1_SQRT_2;
    assert!(close(&linear, &[-eighth, 0.0, eighth]), "{linear:?}");
}

#[test]
fn imu_is_in_rad_and_metres() {
    let imu = Imu::from_values(&[180.0, 0.0, -180.0, 0.0, 0.0, 1.0]).unwrap();
    assert_eq!(imu.angular_velocity, [PI, 0.0, -PI]);
    assert_eq!(imu.linear_acceleration, [0.0, 0.0, GRAVITY]);
}

#[test]
fn battery_and_status_are_in_volts() {
    let battery = BatteryState::from_values(&[3.9, 60.0, 1.0]).unwrap();
    assert_eq!(
        (battery.voltage, battery.charge, battery.power),
        (3.9, 0.6, Power::Charging)
    );
    let status = Status::from_values(&[526.0, 3900.0, 0.0, 44.0]).unwrap();
    assert_eq!(
        (status.supervisor.0, status.battery_voltage, status.rssi),
        (526, 3.9, 44)
    );
}

#[test]
fn what_is_out_of_reach_is_infinitely_far() {
    let scan = Scan::from_values(&[100.0, 3490.0, 3491.0, 8000.0]).unwrap();
    assert_eq!(scan.ranges, [0.1, 3.49, f64::INFINITY, f64::INFINITY]);
}

#[test]
fn every_fixed_block_but_odometry_fits_into_26_bytes() {
    let bytes = |variables: &[&str]| -> usize { variables.iter().map(|name| size(name)).sum() };
    for variables in [
        &Pose::VARIABLES[..],
        &Imu::VARIABLES,
        &BatteryState::VARIABLES,
        &Status::VARIABLES,
    ] {
        assert!(bytes(variables) <= 26, "{variables:?}");
    }
    assert_eq!(bytes(&Odometry::VARIABLES), 28);
}

/// Bytes of a variable, by the firmware's table of contents.
fn size(name: &str) -> usize {
    match name {
        "pm.batteryLevel" | "pm.state" | "radio.rssi" => 1,
        "supervisor.info" | "pm.vbatMV" => 2,
        "stateEstimateZ.quat" => 4,
        other if other.starts_with("stateEstimateZ.") => 2,
        _ => 4,
    }
}
