//! ROS messages to commands and telemetry to ROS messages, field by field. Both sides are SI and REP-103, so
//! nothing is converted here but types.

use bridge_core::command::{GoTo, Request, Setpoint, StartTrajectory, Trajectory, Vertical};
use bridge_core::health::{Level, Report};
use bridge_core::telemetry::{BatteryState, Imu, Odometry, Pose, Power, Scan, Status};
use bridge_core::units::Compat;
use crtp::trajectory::Piece;
use crtp::{Channel, Packet, PacketError, Port};
use ros_env::builtin_interfaces::msg::{Duration, Time};
use ros_env::crazyflie_openlink::{msg as own, srv};
use ros_env::geometry_msgs::msg as geometry;
use ros_env::sensor_msgs::msg as sensor;
use ros_env::std_msgs::msg::Header;
use ros_env::{nav_msgs, sensor_msgs};

/// What the link itself knows, for `link_health`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LinkSide {
    pub(super) path: Option<link::Path>,
    /// Time for one packet.
    pub(super) pace: Option<std::time::Duration>,
    /// Times a UART stood still.
    pub(super) stalls: u64,
}

impl LinkSide {
    /// As it is now.
    pub(super) fn of(link: &dyn link::Link) -> Self {
        Self {
            path: link.path(),
            pace: link.pace(),
            stalls: link.stats().stalls,
        }
    }
}

/// Seconds of a ROS duration.
fn seconds(duration: &Duration) -> f64 {
    f64::from(duration.sec) + f64::from(duration.nanosec) / 1e9
}

const fn vector(v: &geometry::Vector3) -> [f64; 3] {
    [v.x, v.y, v.z]
}

const fn point(p: &geometry::Point) -> [f64; 3] {
    [p.x, p.y, p.z]
}

const fn quaternion(q: &geometry::Quaternion) -> [f64; 4] {
    [q.x, q.y, q.z, q.w]
}

const fn to_vector([x, y, z]: [f64; 3]) -> geometry::Vector3 {
    geometry::Vector3 { x, y, z }
}

const fn to_point([x, y, z]: [f64; 3]) -> geometry::Point {
    geometry::Point { x, y, z }
}

const fn to_quaternion([x, y, z, w]: [f64; 4]) -> geometry::Quaternion {
    geometry::Quaternion { x, y, z, w }
}

const fn to_pose(pose: &Pose) -> geometry::Pose {
    geometry::Pose {
        position: to_point(pose.position),
        orientation: to_quaternion(pose.orientation),
    }
}

/// `cmd_vel`: velocity in the heading frame, m/s and rad/s. Roll and pitch rates have no meaning here.
pub(super) const fn cmd_vel(twist: &geometry::Twist) -> Setpoint {
    Setpoint::Velocity {
        linear: vector(&twist.linear),
        yaw_rate: twist.angular.z,
    }
}

/// `cmd_vel_legacy`, in crazyswarm2's own units.
pub(super) const fn cmd_vel_legacy(twist: &geometry::Twist) -> Setpoint {
    Setpoint::Legacy {
        linear: vector(&twist.linear),
        yaw_rate: twist.angular.z,
    }
}

/// `cmd_hover`.
pub(super) fn cmd_hover(hover: &own::Hover) -> Setpoint {
    Setpoint::Hover {
        velocity: [hover.vx.into(), hover.vy.into()],
        yaw_rate: hover.yaw_rate.into(),
        height: hover.z_distance.into(),
    }
}

/// `cmd_position`.
pub(super) fn cmd_position(position: &own::Position, compat: Compat) -> Setpoint {
    let [x, y, z] = [position.x, position.y, position.z].map(f64::from);
    Setpoint::Position {
        position: [x, y, z],
        yaw: compat.yaw(position.yaw.into()),
    }
}

/// `cmd_velocity_world`.
pub(super) fn cmd_velocity_world(velocity: &own::VelocityWorld, compat: Compat) -> Setpoint {
    Setpoint::VelocityWorld {
        velocity: vector(&velocity.vel),
        yaw_rate: compat.yaw(velocity.yaw_rate.into()),
    }
}

/// `cmd_full_state`.
pub(super) const fn cmd_full_state(state: &own::FullState) -> Setpoint {
    Setpoint::FullState {
        position: point(&state.pose.position),
        velocity: vector(&state.twist.linear),
        acceleration: vector(&state.acc),
        orientation: quaternion(&state.pose.orientation),
        rates: vector(&state.twist.angular),
    }
}

/// `cmd_attitude`.
pub(super) fn cmd_attitude(attitude: &own::AttitudeSetpoint) -> Setpoint {
    Setpoint::Attitude {
        roll: attitude.roll.into(),
        pitch: attitude.pitch.into(),
        yaw_rate: attitude.yaw_rate.into(),
        thrust: attitude.thrust.into(),
    }
}

/// `crtp/tx`.
///
/// # Errors
/// A port above 15 or a channel above 3, in words; data that is too long cannot be received.
pub(super) fn raw_packet(message: &own::CrtpPacket) -> Result<Packet, String> {
    let port = Port::new(message.port).ok_or_else(|| {
        format!(
            "port is {}, allowed: a whole number from 0 to 15",
            message.port
        )
    })?;
    let channel = Channel::new(message.channel).ok_or_else(|| {
        format!(
            "channel is {}, allowed: a whole number from 0 to 3",
            message.channel
        )
    })?;
    Packet::new(port, channel, &message.data).map_err(|error: PacketError| error.to_string())
}

/// `takeoff`.
pub(super) fn takeoff(request: &srv::Takeoff_Request) -> Request {
    Request::Takeoff(vertical(
        request.group_mask,
        request.height,
        &request.duration,
    ))
}

/// `land`.
pub(super) fn land(request: &srv::Land_Request) -> Request {
    Request::Land(vertical(
        request.group_mask,
        request.height,
        &request.duration,
    ))
}

fn vertical(group_mask: u8, height: f32, duration: &Duration) -> Vertical {
    Vertical {
        group_mask,
        height: height.into(),
        duration: seconds(duration),
    }
}

/// `go_to`.
pub(super) fn go_to(request: &srv::GoTo_Request) -> Request {
    Request::GoTo(GoTo {
        group_mask: request.group_mask,
        relative: request.relative,
        goal: point(&request.goal),
        yaw: request.yaw.into(),
        duration: seconds(&request.duration),
    })
}

/// `start_trajectory`.
pub(super) fn start_trajectory(request: &srv::StartTrajectory_Request) -> Request {
    Request::StartTrajectory(StartTrajectory {
        group_mask: request.group_mask,
        trajectory_id: request.trajectory_id,
        timescale: request.timescale.into(),
        reversed: request.reversed,
        relative: request.relative,
    })
}

/// `arm`.
pub(super) const fn arm(request: &srv::Arm_Request) -> Request {
    Request::Arm(request.arm)
}

/// `notify_setpoints_stop`.
pub(super) const fn notify_stop(request: &srv::NotifySetpointsStop_Request) -> Request {
    Request::NotifySetpointsStop {
        remain_valid: request.remain_valid_millisecs,
    }
}

/// `upload_trajectory`.
///
/// # Errors
/// Another number of coefficients than 8, in words.
pub(super) fn trajectory(request: &srv::UploadTrajectory_Request) -> Result<Trajectory, String> {
    let pieces = request.pieces.iter().enumerate();
    Ok(Trajectory {
        id: request.trajectory_id,
        piece_offset: request.piece_offset,
        pieces: pieces
            .map(|(at, each)| piece(at, each))
            .collect::<Result<_, _>>()?,
    })
}

fn piece(at: usize, piece: &own::TrajectoryPolynomialPiece) -> Result<Piece, String> {
    let eight = |name: &str, values: &Vec<f32>| -> Result<[f32; 8], String> {
        let got = values.len();
        let why = || format!("pieces[{at}].{name} has {got} coefficients, allowed: 8");
        values.as_slice().try_into().map_err(|_| why())
    };
    Ok(Piece {
        x: eight("poly_x", &piece.poly_x)?,
        y: eight("poly_y", &piece.poly_y)?,
        z: eight("poly_z", &piece.poly_z)?,
        yaw: eight("poly_yaw", &piece.poly_yaw)?,
        duration: seconds(&piece.duration) as f32,
    })
}

/// A pose of a motion-capture system; without an orientation it is a position.
pub(super) fn measured(pose: &geometry::Pose) -> Setpoint {
    let position = point(&pose.position);
    let orientation = quaternion(&pose.orientation);
    if orientation[3].is_nan() {
        return Setpoint::ExternalPosition { position };
    }
    Setpoint::ExternalPose {
        position,
        orientation,
    }
}

/// When a message was made, ns since 1970; 0 if it does not tell.
pub(super) fn stamp(header: &Header) -> i64 {
    i64::from(header.stamp.sec) * 1_000_000_000 + i64::from(header.stamp.nanosec)
}

/// `tf`: from the header's frame to the robot's.
pub(super) fn transform(header: Header, child: &str, pose: &Pose) -> own::TFMessage {
    let transform = geometry::Transform {
        translation: to_vector(pose.position),
        rotation: to_quaternion(pose.orientation),
    };
    let child_frame_id = child.into();
    own::TFMessage {
        transforms: vec![geometry::TransformStamped {
            header,
            child_frame_id,
            transform,
        }],
    }
}

/// A header with this stamp (wall clock, ns since 1970) and frame.
pub(super) fn header(stamp_ns: i64, frame: &str) -> Header {
    let stamp = Time {
        sec: (stamp_ns / 1_000_000_000) as i32,
        nanosec: (stamp_ns % 1_000_000_000) as u32,
    };
    Header {
        stamp,
        frame_id: frame.into(),
    }
}

/// `pose`, in the reference frame.
pub(super) const fn pose(header: Header, pose: &Pose) -> geometry::PoseStamped {
    geometry::PoseStamped {
        header,
        pose: to_pose(pose),
    }
}

/// `odom`: pose in the header's frame, twist in the child frame (REP-105).
pub(super) fn odom(header: Header, child: &str, odometry: &Odometry) -> nav_msgs::msg::Odometry {
    let twist = geometry::Twist {
        linear: to_vector(odometry.linear),
        angular: to_vector(odometry.angular),
    };
    nav_msgs::msg::Odometry {
        header,
        child_frame_id: child.into(),
        pose: geometry::PoseWithCovariance {
            pose: to_pose(&odometry.pose),
            covariance: [0.0; 36],
        },
        twist: geometry::TwistWithCovariance {
            twist,
            covariance: [0.0; 36],
        },
    }
}

/// `imu`, without orientation: its covariance's first element is -1, as the message definition asks.
pub(super) fn imu(header: Header, imu: &Imu) -> sensor::Imu {
    let mut orientation_covariance = [0.0; 9];
    orientation_covariance[0] = -1.0;
    sensor::Imu {
        header,
        orientation_covariance,
        angular_velocity: to_vector(imu.angular_velocity),
        linear_acceleration: to_vector(imu.linear_acceleration),
        ..sensor::Imu::default()
    }
}

/// `battery`. What a Crazyflie does not measure is NaN, as the message definition asks.
pub(super) fn battery(header: Header, battery: &BatteryState) -> sensor::BatteryState {
    use sensor_msgs::msg::BatteryState as Message;
    Message {
        header,
        voltage: battery.voltage as f32,
        percentage: battery.charge as f32,
        temperature: f32::NAN,
        current: f32::NAN,
        charge: f32::NAN,
        capacity: f32::NAN,
        design_capacity: f32::NAN,
        power_supply_status: match battery.power {
            Power::Charging => Message::POWER_SUPPLY_STATUS_CHARGING,
            Power::Charged => Message::POWER_SUPPLY_STATUS_FULL,
            Power::Discharging | Power::Low | Power::ShuttingDown => {
                Message::POWER_SUPPLY_STATUS_DISCHARGING
            }
            Power::Unknown => Message::POWER_SUPPLY_STATUS_UNKNOWN,
        },
        power_supply_technology: Message::POWER_SUPPLY_TECHNOLOGY_LIPO,
        present: true,
        ..Message::default()
    }
}

/// `status`, with the round trip of the last echo through the drone.
pub(super) fn status(
    header: Header,
    status: &Status,
    latency: Option<std::time::Duration>,
    link: link::LinkStats,
) -> own::Status {
    let milliseconds = latency.map_or(0, |latency| latency.as_millis());
    own::Status {
        latency_unicast: u16::try_from(milliseconds).unwrap_or(u16::MAX),
        header,
        supervisor_info: status.supervisor.0,
        battery_voltage: status.battery_voltage as f32,
        pm_state: status.pm_state,
        rssi: status.rssi,
        num_rx_unicast: link.received as u32,
        num_tx_unicast: link.sent as u32,
        ..own::Status::default()
    }
}

/// `link_health`.
pub(super) fn link_health(
    header: Header,
    report: &Report,
    link: &LinkSide,
    lateness: std::time::Duration,
) -> own::LinkHealth {
    let seconds =
        |time: Option<std::time::Duration>| time.map_or(f32::NAN, |time| time.as_secs_f64() as f32);
    let share = |share: Option<f64>| share.map_or(f32::NAN, |share| share as f32);
    let trips = report.round_trip;
    own::LinkHealth {
        header,
        level: match report.level {
            Level::Ok => own::LinkHealth::OK,
            Level::Degraded => own::LinkHealth::DEGRADED,
            Level::Failing => own::LinkHealth::FAILING,
            Level::Lost => own::LinkHealth::LOST,
        },
        reason: report.why.to_string().as_str().into(),
        exchanges: report.exchanges,
        success_rate: share(report.success_rate),
        miss_streak: report.miss_streak,
        worst_miss_streak: report.worst_streak,
        answered: report.answered,
        missed: report.missed,
        late: report.late,
        losses: report.losses,
        sent_age: seconds(report.sent_age),
        received_age: seconds(report.heard_age),
        round_trips: trips.map_or(0, |trips| trips.samples),
        round_trip_min: seconds(trips.map(|trips| trips.min)),
        round_trip_p50: seconds(trips.map(|trips| trips.p50)),
        round_trip_p90: seconds(trips.and_then(|trips| trips.p90)),
        round_trip_max: seconds(trips.map(|trips| trips.max)),
        raw_loss: share(link.path.and_then(|path| path.raw_loss)),
        residual_loss: share(link.path.and_then(|path| path.residual_loss)),
        redundancy: share(link.path.and_then(|path| path.redundancy)),
        pace: seconds(link.pace),
        uart_stalls: link.stalls,
        thread_lateness: seconds(Some(lateness)),
    }
}

/// `scan`: four ranges, from behind over the right to the left.
pub(super) fn scan(header: Header, scan: &Scan) -> sensor::LaserScan {
    use std::f32::consts::{FRAC_PI_2, PI};
    sensor::LaserScan {
        header,
        angle_min: -PI,
        angle_max: FRAC_PI_2,
        angle_increment: FRAC_PI_2,
        range_min: 0.01,
        range_max: 3.49,
        ranges: scan.ranges.iter().map(|range| *range as f32).collect(),
        ..sensor::LaserScan::default()
    }
}

/// A topic of the user's own.
pub(super) fn custom(header: Header, drone_ms: u64, values: &[f64]) -> own::LogDataGeneric {
    own::LogDataGeneric {
        header,
        // The message has 32 bits; they wrap after 49 days.
        timestamp: drone_ms as u32,
        values: values.iter().map(|value| *value as f32).collect(),
    }
}

/// `crtp/rx`.
pub(super) fn raw_message(header: Header, packet: &Packet) -> own::CrtpPacket {
    own::CrtpPacket {
        header,
        port: packet.port().number(),
        channel: packet.channel().number(),
        // A packet has at most 30 data bytes, as the message.
        data: packet.data().try_into().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_packets_keep_port_channel_and_data() {
        let packet = Packet::new(Port::LINK, Channel::C0, &[1, 2, 3]).unwrap();
        let message = raw_message(Header::default(), &packet);
        assert_eq!(raw_packet(&message).unwrap(), packet);
    }

    #[test]
    fn raw_packets_with_illegal_numbers_are_refused_naming_the_range() {
        let message = own::CrtpPacket {
            port: 16,
            ..own::CrtpPacket::default()
        };
        assert!(raw_packet(&message).unwrap_err().contains("0 to 15"));
        let message = own::CrtpPacket {
            channel: 4,
            ..own::CrtpPacket::default()
        };
        assert!(raw_packet(&message).unwrap_err().contains("0 to 3"));
    }

    #[test]
    fn times_split_into_seconds_and_nanoseconds() {
        let header = header(1_700_000_000_123_456_789, "world");
        assert_eq!(
            (header.stamp.sec, header.stamp.nanosec),
            (1_700_000_000, 123_456_789)
        );
        assert_eq!(
            seconds(&Duration {
                sec: 2,
                nanosec: 500_000_000
            }),
            2.5
        );
    }

    #[test]
    fn an_imu_says_that_it_has_no_orientation() {
        let values = Imu {
            angular_velocity: [0.0; 3],
            linear_acceleration: [0.0, 0.0, 9.8],
        };
        assert_eq!(
            imu(Header::default(), &values).orientation_covariance[0],
            -1.0
        );
    }
}
