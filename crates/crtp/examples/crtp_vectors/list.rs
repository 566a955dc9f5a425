//! Named packets with known bytes: what the example prints and the tests compare.

use std::f64::consts::FRAC_1_SQRT_2;

use crtp::high_level::{self as hl, Command};
use crtp::localization::{self, Request as Location};
use crtp::log::{Control, Type, Variable};
use crtp::memory::{self, InfoRequest};
use crtp::param::{self, Misc};
use crtp::setpoint::{
    AltitudeHold, Cppm, Hover, Manual, NotifySetpointsStop, Position, Setpoint, VelocityWorld,
    ZDistance,
};
use crtp::trajectory::{CompressedSegment, CompressedStart, Piece};
use crtp::{
    FullState, Kind, Packet, ProtocolVersion, Value, ValueError, commander, console, link_service,
    platform, supervisor, toc,
};

/// A name and the bytes, header first (without a header for contents of memories).
pub(crate) type Vector = (&'static str, Vec<u8>);

const NEW: ProtocolVersion = ProtocolVersion(12);
const OLD: ProtocolVersion = ProtocolVersion(8);

/// All vectors.
pub(crate) fn all() -> Result<Vec<Vector>, ValueError> {
    let groups = [
        setpoints()?,
        full_states()?,
        high_level()?,
        localization()?,
        log_and_param()?,
        services(),
        trajectories()?,
    ];
    Ok(groups.into_iter().flatten().collect())
}

fn packets<const N: usize>(packets: [(&'static str, Packet); N]) -> Vec<Vector> {
    packets
        .into_iter()
        .map(|(name, packet)| (name, packet.as_bytes().to_vec()))
        .collect()
}

fn setpoints() -> Result<Vec<Vector>, ValueError> {
    let rpyt = commander::Rpyt {
        roll: 10.0,
        pitch: 5.0,
        yaw_rate: 20.0,
        thrust: 30000,
    };
    let velocity = Setpoint::VelocityWorld(VelocityWorld {
        vx: 0.5,
        vy: -0.25,
        vz: 0.1,
        yaw_rate: 30.0,
    });
    let z_distance = Setpoint::ZDistance(ZDistance {
        roll: 1.5,
        pitch: -2.5,
        yaw_rate: 45.0,
        z: 0.4,
    });
    let hover = Setpoint::Hover(Hover {
        vx: 0.2,
        vy: -0.1,
        yaw_rate: 15.0,
        z: 0.5,
    });
    let cppm = Setpoint::Cppm(Cppm {
        roll: 1500,
        pitch: 1500,
        yaw: 1500,
        thrust: 1000,
        aux: Default::default(),
    });
    let altitude_hold = Setpoint::AltitudeHold(AltitudeHold {
        roll: 0.0,
        pitch: 0.0,
        yaw_rate: 0.0,
        vz: 0.5,
    });
    let position = Setpoint::Position(Position {
        x: 1.0,
        y: 2.0,
        z: 0.5,
        yaw: 90.0,
    });
    let manual = |roll, pitch, rate| -> Result<Packet, ValueError> {
        Setpoint::Manual(Manual {
            roll,
            pitch,
            yaw_rate: 10.0,
            thrust: Manual::thrust_of_percent(50.0)?,
            rate,
        })
        .encode(NEW)
    };
    let stop = |remain_valid_ms| NotifySetpointsStop { remain_valid_ms }.encode();
    Ok(packets([
        ("rpyt", rpyt.encode()?),
        ("rpyt_zero", commander::Rpyt::ZERO.encode()?),
        ("stop", Setpoint::Stop.encode(NEW)?),
        ("velocity_world_8", velocity.encode(OLD)?),
        ("velocity_world_9", velocity.encode(NEW)?),
        ("z_distance_8", z_distance.encode(OLD)?),
        ("z_distance_9", z_distance.encode(NEW)?),
        ("hover_8", hover.encode(OLD)?),
        ("hover_9", hover.encode(NEW)?),
        ("cppm", cppm.encode(NEW)?),
        ("altitude_hold", altitude_hold.encode(NEW)?),
        ("position", position.encode(NEW)?),
        ("manual_angle", manual(5.0, 3.0, false)?),
        ("manual_rate", manual(100.0, 50.0, true)?),
        ("notify_stop", stop(0)),
        ("notify_stop_500", stop(500)),
    ]))
}

fn full_states() -> Result<Vec<Vector>, ValueError> {
    let hover = FullState {
        position: [0.0, 0.0, 1.0],
        velocity: [0.0; 3],
        acceleration: [0.0; 3],
        attitude: [0.5; 4],
        rates: [0.0; 3],
    };
    let moving = FullState {
        position: [1.0, -2.0, 0.5],
        velocity: [0.1, 0.2, -0.3],
        acceleration: [0.0, 0.0, 9.81],
        attitude: [0.0, 0.0, 0.0, 1.0],
        rates: [0.1, 0.2, -0.3],
    };
    let turned = FullState {
        attitude: [0.0, 0.0, FRAC_1_SQRT_2, -FRAC_1_SQRT_2],
        ..hover
    };
    let odd = FullState {
        position: [0.57, -0.29, 1.005],
        attitude: [0.1, 0.2, 0.3, 0.927_361_8],
        ..moving
    };
    let encode = |state| Setpoint::FullState(state).encode(NEW);
    Ok(packets([
        ("full_state", encode(moving)?),
        ("full_state_half", encode(hover)?),
        ("full_state_turned", encode(turned)?),
        ("full_state_odd", encode(odd)?),
    ]))
}

fn high_level() -> Result<Vec<Vector>, ValueError> {
    let vertical = |height, use_current_yaw, duration| hl::VerticalTimed {
        group_mask: 0,
        height,
        yaw: 0.0,
        use_current_yaw,
        duration,
    };
    let go_to = hl::GoTo2 {
        group_mask: 0,
        relative: false,
        linear: false,
        x: 1.0,
        y: 0.0,
        z: 0.5,
        yaw: 0.0,
        duration: 3.0,
    };
    let go_to_all = hl::GoTo2 {
        group_mask: 1,
        relative: true,
        linear: true,
        yaw: std::f32::consts::FRAC_PI_2,
        ..go_to
    };
    let start = hl::StartTrajectory2 {
        group_mask: 0,
        relative_position: true,
        relative_yaw: false,
        reversed: false,
        trajectory_id: 1,
        timescale: 1.0,
    };
    let spiral = hl::Spiral {
        group_mask: 0,
        sideways: false,
        clockwise: true,
        angle: std::f32::consts::FRAC_PI_2,
        r0: 0.5,
        rf: 1.0,
        dz: 0.2,
        duration: 3.0,
    };
    let define = |trajectory_id, kind, offset, pieces| {
        Command::DefineTrajectory(hl::DefineTrajectory {
            trajectory_id,
            location: 1,
            kind,
            offset,
            pieces,
        })
        .encode()
    };
    let old = |command: Command, version| command.for_version(ProtocolVersion(version))?.encode();
    Ok(packets([
        (
            "group_mask",
            Command::SetGroupMask(hl::SetGroupMask { mask: 3 }).encode()?,
        ),
        (
            "hl_stop",
            Command::Stop(hl::Stop { group_mask: 0 }).encode()?,
        ),
        (
            "takeoff",
            Command::Takeoff(vertical(0.5, false, 2.0)).encode()?,
        ),
        (
            "takeoff_current_yaw",
            Command::Takeoff(vertical(1.0, true, 2.5)).encode()?,
        ),
        ("land", Command::Land(vertical(0.0, true, 2.0)).encode()?),
        ("go_to_7", old(Command::GoTo(go_to), 7)?),
        ("go_to_8", old(Command::GoTo(go_to), 8)?),
        ("go_to_all", Command::GoTo(go_to_all).encode()?),
        ("spiral", Command::Spiral(spiral).encode()?),
        ("define_trajectory", define(1, 0, 0, 10)?),
        ("define_compressed", define(2, 1, 132, 3)?),
        (
            "start_trajectory_9",
            old(Command::StartTrajectory(start), 9)?,
        ),
        (
            "start_trajectory_10",
            old(Command::StartTrajectory(start), 10)?,
        ),
    ]))
}

fn localization() -> Result<Vec<Vector>, ValueError> {
    let position = localization::Position {
        x: 1.0,
        y: 2.0,
        z: 3.0,
    };
    let pose = localization::Pose {
        x: 1.0,
        y: 2.0,
        z: 3.0,
        qx: 0.0,
        qy: 0.0,
        qz: 0.0,
        qw: 1.0,
    };
    let lpp = Location::LppShort {
        destination: 5,
        data: [1, 2].into_iter().collect(),
    };
    let persist = Location::LighthousePersist {
        geometry: 3,
        calibration: 1,
    };
    Ok(packets([
        ("ext_position", Location::Position(position).encode()?),
        ("ext_pose", Location::Pose(pose).encode()?),
        ("lpp_short", lpp.encode()?),
        ("emergency_stop_11", Location::EmergencyStop.encode()?),
        ("watchdog_11", Location::FeedWatchdog.encode()?),
        ("lighthouse_persist", persist.encode()?),
    ]))
}

/// A log variable stored and sent as the type with this number.
fn variable(number: u8, id: u16) -> Option<Variable> {
    let of = Type::from_number(number)?;
    Some(Variable {
        send_as: of,
        stored_as: of,
        id,
    })
}

fn log_and_param() -> Result<Vec<Vector>, ValueError> {
    let ids = [0x2f, 0x30, 0x31, 0x4e, 0x81];
    let variables = ids.iter().filter_map(|&id| variable(7, id)).collect();
    let create = Control::Create {
        block: 1,
        variables,
    };
    let write = |id, value| param::Write { id, value }.encode();
    let by_name = Misc::SetByName {
        group: "kalman".into(),
        name: "initialX".into(),
        value: Value::F32(1.5),
    };
    let misc = |request: Misc| request.encode();
    let read = memory::Read {
        id: 0,
        address: 0,
        length: 24,
    };
    let write_memory = memory::Write {
        id: 1,
        address: 0x0102,
        data: [1, 2, 3].into_iter().collect(),
    };
    let start = Control::StartTens {
        block: 1,
        tens_of_ms: 10,
    };
    Ok(packets([
        ("log_create", create.encode()),
        ("log_start", start.encode()),
        ("log_stop", Control::Stop { block: 1 }.encode()),
        ("log_delete", Control::Delete { block: 1 }.encode()),
        ("log_reset", Control::Reset.encode()),
        ("log_toc_info", toc::Request::Info.encode(toc::Table::Log)),
        (
            "log_toc_item",
            toc::Request::Item(0).encode(toc::Table::Log),
        ),
        (
            "param_toc_info",
            toc::Request::Info.encode(toc::Table::Param),
        ),
        (
            "param_toc_item",
            toc::Request::Item(0).encode(toc::Table::Param),
        ),
        ("param_read", param::Read { id: 0 }.encode()),
        ("param_write_u8", write(0x26, Value::U8(2))),
        ("param_write_f32", write(0x26, Value::F32(1.5))),
        (
            "param_write_i16",
            write(
                0x26,
                Value::from_integer(Kind::I16, -2).unwrap_or(Value::I16(0)),
            ),
        ),
        ("param_by_name", misc(by_name)?),
        ("param_extended_10", misc(Misc::ExtendedType(15))?),
        ("param_extended_11", misc(Misc::ExtendedTypeV2(15))?),
        ("param_store", misc(Misc::Store(15))?),
        ("param_state", misc(Misc::State(15))?),
        ("param_clear", misc(Misc::Clear(15))?),
        ("param_default_10", misc(Misc::Default(15))?),
        ("param_default_11", misc(Misc::DefaultV2(15))?),
        ("memory_count", InfoRequest::Count.encode()),
        ("memory_details", InfoRequest::Details(0).encode()),
        ("memory_read", read.encode()?),
        ("memory_write", write_memory.encode()),
    ]))
}

fn services() -> Vec<Vector> {
    let app = platform::App([0xde, 0xad, 0xbe, 0xef].into_iter().collect());
    let console = console::Console {
        text: b"hi\n".iter().copied().collect(),
    };
    packets([
        ("arm_11", platform::Command::Arm(true).encode()),
        ("recover_11", platform::Command::Recover.encode()),
        (
            "continuous_wave",
            platform::Command::ContinuousWave(true).encode(),
        ),
        (
            "notification",
            platform::Command::Notify { success: true }.encode(),
        ),
        ("app", app.encode()),
        ("protocol", platform::VersionRequest::Protocol.encode()),
        ("arm", supervisor::Command::Arm(true).encode()),
        ("disarm", supervisor::Command::Arm(false).encode()),
        ("recover", supervisor::Command::Recover.encode()),
        (
            "emergency_stop",
            supervisor::Command::EmergencyStop.encode(),
        ),
        ("watchdog", supervisor::Command::FeedWatchdog.encode()),
        (
            "supervisor_info",
            supervisor::InfoRequest::BitField.encode(),
        ),
        ("source", link_service::Request::Source.encode()),
        ("ping", link_service::Ping(1764.25).encode()),
        ("console", console.encode()),
    ])
}

fn trajectories() -> Result<Vec<Vector>, ValueError> {
    let axis = |first: f32| std::array::from_fn(|i| first + i as f32);
    let piece = Piece {
        x: axis(0.5),
        y: axis(-1.5),
        z: axis(2.25),
        yaw: axis(0.125),
        duration: 1.75,
    };
    let start = CompressedStart {
        position: [1.001, -2.5, 0.7],
        yaw: 1.5,
    };
    let segment = CompressedSegment {
        x: vec![],
        y: vec![0.57],
        z: vec![0.1, 0.2, -0.3],
        yaw: vec![0.1, 0.2, 0.3, 0.4, 0.5, 0.6, -0.7],
        duration_ms: 1500,
    };
    let (mut plain, mut compressed) = (Vec::new(), Vec::new());
    piece.append_to(&mut plain)?;
    start.append_to(&mut compressed)?;
    segment.append_to(&mut compressed)?;
    Ok(vec![
        ("trajectory_piece", plain),
        ("trajectory_compressed", compressed),
    ])
}
