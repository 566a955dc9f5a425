//! What is encoded decodes to the same, for every layout; random bytes never panic.

use arrayvec::ArrayVec;
use crtp::{FullState, commander, console, high_level, link_service, localization, log, memory};
use crtp::{Kind, Packet, ProtocolVersion, Status, Value};
use crtp::{param, platform, setpoint, supervisor, toc, trajectory};
use proptest::prelude::*;

/// Finite floats of any size.
fn float() -> impl Strategy<Value = f32> {
    any::<f32>().prop_filter("finite", |value| value.is_finite())
}

fn floats<const N: usize>() -> impl Strategy<Value = [f32; N]> {
    proptest::collection::vec(float(), N).prop_map(|v| v.try_into().unwrap())
}

fn version() -> impl Strategy<Value = ProtocolVersion> {
    (6u32..=13).prop_map(ProtocolVersion)
}

fn bytes<const N: usize>() -> impl Strategy<Value = ArrayVec<u8, N>> {
    proptest::collection::vec(any::<u8>(), 0..=N).prop_map(|v| v.into_iter().collect())
}

fn name() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9_]{1,11}"
}

fn plain_setpoint() -> impl Strategy<Value = setpoint::Setpoint> {
    use setpoint::{AltitudeHold, Hover, Manual, Position, Setpoint, VelocityWorld, ZDistance};
    (0..8, floats::<4>(), any::<u16>(), any::<bool>()).prop_map(
        |(which, [a, b, c, d], thrust, rate)| match which {
            0 => Setpoint::Stop,
            1 => Setpoint::VelocityWorld(VelocityWorld {
                vx: a,
                vy: b,
                vz: c,
                yaw_rate: d,
            }),
            2 => Setpoint::ZDistance(ZDistance {
                roll: a,
                pitch: b,
                yaw_rate: c,
                z: d,
            }),
            3 => Setpoint::AltitudeHold(AltitudeHold {
                roll: a,
                pitch: b,
                yaw_rate: c,
                vz: d,
            }),
            4 => Setpoint::Hover(Hover {
                vx: a,
                vy: b,
                yaw_rate: c,
                z: d,
            }),
            5 => Setpoint::Position(Position {
                x: a,
                y: b,
                z: c,
                yaw: d,
            }),
            6 => Setpoint::Manual(Manual {
                roll: a,
                pitch: b,
                yaw_rate: c,
                thrust,
                rate,
            }),
            _ => Setpoint::Cppm(setpoint::Cppm {
                roll: thrust,
                pitch: 1,
                yaw: 2,
                thrust: 3,
                aux: (0..thrust % 11).collect(),
            }),
        },
    )
}

fn high_level_command() -> impl Strategy<Value = high_level::Command> {
    use high_level::*;
    (
        0u8..14,
        any::<[u8; 4]>(),
        any::<[bool; 3]>(),
        floats::<5>(),
        any::<u32>(),
    )
        .prop_map(
            |(which, [group_mask, b, c, d], [p, q, r], [x, y, z, yaw, duration], offset)| {
                let vertical = Vertical {
                    group_mask,
                    height: x,
                    duration,
                };
                let timed = VerticalTimed {
                    group_mask,
                    height: x,
                    yaw,
                    use_current_yaw: p,
                    duration,
                };
                let fast = VerticalWithVelocity {
                    group_mask,
                    height: x,
                    height_is_relative: q,
                    yaw,
                    use_current_yaw: p,
                    velocity: y,
                };
                match which {
                    0 => Command::SetGroupMask(SetGroupMask { mask: b }),
                    1 => Command::TakeoffOld(vertical),
                    2 => Command::LandOld(vertical),
                    3 => Command::Stop(Stop { group_mask }),
                    4 => Command::GoToOld(GoTo {
                        group_mask,
                        relative: p,
                        x,
                        y,
                        z,
                        yaw,
                        duration,
                    }),
                    5 => Command::StartTrajectoryOld(StartTrajectory {
                        group_mask,
                        relative: p,
                        reversed: q,
                        trajectory_id: b,
                        timescale: x,
                    }),
                    6 => Command::DefineTrajectory(DefineTrajectory {
                        trajectory_id: group_mask,
                        location: b,
                        kind: c,
                        offset,
                        pieces: d,
                    }),
                    7 => Command::Takeoff(timed),
                    8 => Command::Land(timed),
                    9 => Command::TakeoffWithVelocity(fast),
                    10 => Command::LandWithVelocity(fast),
                    11 => Command::Spiral(Spiral {
                        group_mask,
                        sideways: p,
                        clockwise: q,
                        angle: x,
                        r0: y,
                        rf: z,
                        dz: yaw,
                        duration,
                    }),
                    12 => Command::GoTo(GoTo2 {
                        group_mask,
                        relative: p,
                        linear: q,
                        x,
                        y,
                        z,
                        yaw,
                        duration,
                    }),
                    _ => Command::StartTrajectory(StartTrajectory2 {
                        group_mask,
                        relative_position: p,
                        relative_yaw: q,
                        reversed: r,
                        trajectory_id: b,
                        timescale: x,
                    }),
                }
            },
        )
}

fn value() -> impl Strategy<Value = Value> {
    (0usize..11, any::<i64>(), float()).prop_map(|(kind, whole, fraction)| match kind {
        0 => Value::I8(whole as i8),
        1 => Value::I16(whole as i16),
        2 => Value::I32(whole as i32),
        3 => Value::I64(whole),
        4 => Value::U8(whole as u8),
        5 => Value::U16(whole as u16),
        6 => Value::U32(whole as u32),
        7 => Value::U64(whole as u64),
        8 => Value::F16(crtp::f16::from_f32(whole as i16 as f32 / 4096.0)),
        9 => Value::F32(fraction),
        _ => Value::F64(fraction.into()),
    })
}

fn variables() -> impl Strategy<Value = log::Variables> {
    proptest::collection::vec((1u8..=8, 1u8..=8, 0u16..0xffff), 0..=9).prop_map(|entries| {
        entries
            .into_iter()
            .map(|(send, stored, id)| log::Variable {
                send_as: log::Type::from_number(send).unwrap(),
                stored_as: log::Type::from_number(stored).unwrap(),
                id,
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn setpoints_decode_to_themselves(setpoint in plain_setpoint(), version in version()) {
        let packet = setpoint.encode(version).unwrap();
        prop_assert_eq!(setpoint::Setpoint::parse(&packet).unwrap(), setpoint);
    }

    #[test]
    fn full_states_decode_to_within_a_step(values in proptest::collection::vec(-32.0..32.0, 12), q in proptest::array::uniform4(-1.0f64..1.0)) {
        prop_assume!(q.iter().any(|v| v.abs() > 1e-3));
        let triple = |i: usize| [values[i], values[i + 1], values[i + 2]];
        let state = FullState { position: triple(0), velocity: triple(3), acceleration: triple(6), attitude: q, rates: triple(9) };
        let packet = setpoint::Setpoint::FullState(state).encode(ProtocolVersion(12)).unwrap();
        let Ok(setpoint::Setpoint::FullState(back)) = setpoint::Setpoint::parse(&packet) else { panic!("no full state") };
        for (a, b) in state.position.iter().zip(back.position) {
            prop_assert!((a - b).abs() < 0.001_001);
        }
        let length = q.iter().map(|v| v * v).sum::<f64>().sqrt();
        let cosine: f64 = q.iter().zip(back.attitude).map(|(a, b)| a / length * b).sum();
        prop_assert!(cosine.abs() > 0.9999, "{:?} became {:?}", q, back.attitude);
    }

    #[test]
    fn rpyt_decodes_to_itself([roll, pitch, yaw_rate] in floats::<3>(), thrust: u16) {
        let setpoint = commander::Rpyt { roll, pitch, yaw_rate, thrust };
        prop_assert_eq!(commander::Rpyt::parse(&setpoint.encode().unwrap()).unwrap(), setpoint);
    }

    #[test]
    fn meta_commands_decode_to_themselves(remain_valid_ms: u32) {
        let stop = setpoint::NotifySetpointsStop { remain_valid_ms };
        prop_assert_eq!(setpoint::NotifySetpointsStop::parse(&stop.encode()).unwrap(), stop);
    }

    #[test]
    fn high_level_commands_decode_to_themselves(command in high_level_command()) {
        let packet = command.encode().unwrap();
        prop_assert_eq!(high_level::Command::parse(&packet).unwrap(), command);
        prop_assert!(crtp::Gate::new().admit(&packet).is_ok());
    }

    #[test]
    fn high_level_replies_decode_to_themselves(command: u8, echo: [u8; 2], status: u8) {
        let reply = high_level::Reply { command, echo, status: Status(status) };
        prop_assert_eq!(high_level::Reply::parse(&reply.encode()).unwrap(), reply);
    }

    #[test]
    fn localization_requests_decode_to_themselves([x, y, z, qx, qy, qz, qw] in floats::<7>(), data in bytes::<28>(), a: u16, b: u16) {
        use localization::{Pose, Position, Request};
        for request in [
            Request::Position(Position { x, y, z }),
            Request::Pose(Pose { x, y, z, qx, qy, qz, qw }),
            Request::LppShort { destination: 7, data },
            Request::EmergencyStop,
            Request::FeedWatchdog,
            Request::LighthousePersist { geometry: a, calibration: b },
        ] {
            let packet = request.encode().unwrap();
            prop_assert!(crtp::Gate::new().admit(&packet).is_ok());
            prop_assert_eq!(Request::parse(&packet).unwrap(), request);
        }
    }

    #[test]
    fn packed_positions_and_poses_decode_to_within_a_step(items in proptest::collection::vec((any::<u8>(), proptest::array::uniform3(-32.0f64..32.0)), 1..=4)) {
        use localization::{PackedPose, PackedPosition, Request};
        let positions = Request::PackedPositions(items.iter().map(|&(id, position)| PackedPosition { id, position }).collect());
        let Ok(Request::PackedPositions(back)) = Request::parse(&positions.encode().unwrap()) else { panic!("no positions") };
        let poses = Request::PackedPoses(items.iter().take(2).map(|&(id, position)| PackedPose { id, position, attitude: [0.0, 0.0, 0.0, 1.0] }).collect());
        let Ok(Request::PackedPoses(poses)) = Request::parse(&poses.encode().unwrap()) else { panic!("no poses") };
        prop_assert_eq!(back.len(), items.len());
        prop_assert_eq!(poses.len(), items.len().min(2));
        for ((id, position), back) in items.iter().zip(&back) {
            prop_assert_eq!(*id, back.id);
            for (a, b) in position.iter().zip(back.position) {
                prop_assert!((a - b).abs() < 0.001_001);
            }
        }
    }

    #[test]
    fn localization_reports_decode_to_themselves([a, b] in floats::<2>(), d: [i16; 6], id: u8, ok: bool, n in 0usize..=5) {
        use localization::{Angles, Range, Report, Sweep};
        let half = |i: usize| crtp::f16::from_f32(f32::from(d[i]) / 8192.0);
        let angles = Angles {
            base_station: id,
            x: Sweep { first: a, differences: [half(0), half(1), half(2)] },
            y: Sweep { first: b, differences: [half(3), half(4), half(5)] },
        };
        for report in [
            Report::Ranges((0..n).map(|i| Range { anchor: i as u8, distance: a }).collect()),
            Report::LppShort { destination: id, success: ok },
            Report::Angles(angles),
            Report::LighthousePersist { success: ok },
            Report::MatchedAngles { angles, group: id >> 4, count: id & 15 },
        ] {
            prop_assert_eq!(Report::parse(&report.encode()).unwrap(), report);
        }
    }

    #[test]
    fn log_packets_decode_to_themselves(block: u8, variables in variables(), period_ms: u16, time in 0u32..1 << 24, values in bytes::<26>(), status: u8) {
        use log::Control;
        for control in [
            Control::Create { block, variables: variables.clone() },
            Control::Append { block, variables },
            Control::Delete { block },
            Control::StartTens { block, tens_of_ms: status },
            Control::Start { block, period_ms },
            Control::Stop { block },
            Control::Reset,
        ] {
            let packet = control.encode();
            prop_assert!(crtp::Gate::new().admit(&packet).is_ok());
            prop_assert_eq!(Control::parse(&packet).unwrap(), control);
        }
        let reply = log::ControlReply { command: 6, block, status: Status(status) };
        prop_assert_eq!(log::ControlReply::parse(&reply.encode()).unwrap(), reply);
        let data = log::Data { block, time_ms: time, values };
        prop_assert_eq!(log::Data::parse(&data.encode()).unwrap(), data);
    }

    #[test]
    fn tables_of_contents_decode_to_themselves(count: u16, crc: u32, id: u16, kind: u8, group in name(), name in name(), limited: bool) {
        let limits = limited.then_some(toc::Limits { blocks: 16, variables: 128 });
        for table in [toc::Table::Log, toc::Table::Param] {
            for reply in [
                toc::Reply::Info { count, crc, limits },
                toc::Reply::Item(toc::Item { id, kind, group: group.clone(), name: name.clone() }),
                toc::Reply::OutOfRange,
            ] {
                prop_assert_eq!(toc::Reply::parse(table, &reply.encode(table).unwrap()).unwrap(), reply);
            }
            for request in [toc::Request::Info, toc::Request::Item(id)] {
                prop_assert_eq!(toc::Request::parse(table, &request.encode(table)).unwrap(), request);
            }
        }
    }

    #[test]
    fn parameter_requests_decode_to_themselves(id: u16, value in value(), group in name(), name in name()) {
        use param::Misc;
        let read = param::Read { id };
        prop_assert_eq!(param::Read::parse(&read.encode()).unwrap(), read);
        let (back, bytes) = param::Write::parse(&param::Write { id, value }.encode()).unwrap();
        prop_assert_eq!((back, Value::take(value.kind(), &bytes).unwrap().0), (id, value));
        let by_name = Misc::SetByName { group: group[..group.len().min(9)].into(), name: name[..name.len().min(9)].into(), value };
        for request in [by_name, Misc::ExtendedType(id), Misc::Store(id), Misc::State(id), Misc::Clear(id), Misc::Default(id), Misc::ExtendedTypeV2(id), Misc::DefaultV2(id)] {
            let packet = request.encode().unwrap();
            prop_assert!(crtp::Gate::new().admit(&packet).is_ok());
            prop_assert_eq!(Misc::parse(&packet).unwrap(), request);
        }
    }

    #[test]
    fn parameter_replies_decode_to_themselves(id: u16, value in value(), status in 1u8.., extended: u8, group in name(), name in name()) {
        use param::MiscReply;
        let value: param::ValueBytes = value.to_bytes().into_iter().collect();
        let status = Status(status);
        for reply in [
            MiscReply::SetByName { group, name, status },
            MiscReply::Updated { id, value: value.clone() },
            MiscReply::ExtendedType { id, extended },
            MiscReply::Store { id, status },
            MiscReply::State { id, status: 1, values: value.clone() },
            MiscReply::Clear { id, status },
            MiscReply::Default { id, value: value.clone() },
            MiscReply::ExtendedTypeV2 { id, extended: Ok(extended) },
            MiscReply::ExtendedTypeV2 { id, extended: Err(status) },
            MiscReply::DefaultV2 { id, value: Ok(value.clone()) },
            MiscReply::DefaultV2 { id, value: Err(status) },
        ] {
            prop_assert_eq!(MiscReply::parse(&reply.encode().unwrap()).unwrap(), reply);
        }
        let written = param::WriteReply { id, value: value.clone() };
        prop_assert_eq!(param::WriteReply::parse(&written.encode()).unwrap(), written);
        for value in [Ok(value), Err(status)] {
            let reply = param::ReadReply { id, value };
            prop_assert_eq!(param::ReadReply::parse(&reply.encode()).unwrap(), reply);
        }
    }

    #[test]
    fn parameter_types_decode_to_themselves(byte: u8) {
        if let Some(meta) = param::Meta::from_byte(byte) {
            prop_assert_eq!(meta.to_byte(), byte & 0x7f);
        }
    }

    #[test]
    fn memory_packets_decode_to_themselves(id: u8, address: u32, length in 0u8..=24, data in bytes::<24>(), status in 1u8.., serial: [u8; 8]) {
        use memory::{Details, InfoReply, InfoRequest, Kind, Read, ReadReply, Write, WriteReply};
        for request in [InfoRequest::Count, InfoRequest::Details(id)] {
            prop_assert_eq!(InfoRequest::parse(&request.encode()).unwrap(), request);
        }
        for reply in [InfoReply::Count(id), InfoReply::Details(Details { id, kind: Kind(status), size: address, serial })] {
            prop_assert_eq!(InfoReply::parse(&reply.encode()).unwrap(), reply);
        }
        let read = Read { id, address, length };
        prop_assert_eq!(Read::parse(&read.encode().unwrap()).unwrap(), read);
        let write = Write { id, address, data: data.iter().copied().chain([1]).collect() };
        prop_assert_eq!(Write::parse(&write.encode()).unwrap(), write);
        for data in [Ok(data), Err(Status(status))] {
            let reply = ReadReply { id, address, data };
            prop_assert_eq!(ReadReply::parse(&reply.encode()).unwrap(), reply);
        }
        let reply = WriteReply { id, address, status: Status(status) };
        prop_assert_eq!(WriteReply::parse(&reply.encode()).unwrap(), reply);
    }

    #[test]
    fn supervisor_and_platform_packets_decode_to_themselves(flag: bool, state: bool, bit in 0u8..=10, info: u16, text in "[ -~]{0,29}", app in bytes::<30>(), version: u32) {
        use supervisor::{Command, CommandReply, Info, InfoReply, InfoRequest};
        for command in [Command::Arm(flag), Command::Recover, Command::EmergencyStop, Command::FeedWatchdog] {
            prop_assert_eq!(Command::parse(&command.encode()).unwrap(), command);
        }
        for reply in [CommandReply::Arm { success: flag, armed: state }, CommandReply::Recover { success: flag, recovered: state }] {
            prop_assert_eq!(CommandReply::parse(&reply.encode()).unwrap(), reply);
        }
        for request in [InfoRequest::Bit(bit), InfoRequest::BitField] {
            prop_assert_eq!(InfoRequest::parse(&request.encode()).unwrap(), request);
            let reply = InfoReply::to(request, Info(info));
            prop_assert_eq!(InfoReply::parse(&reply.encode()).unwrap(), reply);
        }
        for command in [platform::Command::ContinuousWave(flag), platform::Command::Arm(flag), platform::Command::Recover, platform::Command::Notify { success: flag }] {
            prop_assert_eq!(platform::Command::parse(&command.encode()).unwrap(), command);
        }
        let reply = platform::CommandReply { command: bit, success: flag, state };
        prop_assert_eq!(platform::CommandReply::parse(&reply.encode()).unwrap(), reply);
        for request in [platform::VersionRequest::Protocol, platform::VersionRequest::Firmware, platform::VersionRequest::DeviceType] {
            prop_assert_eq!(platform::VersionRequest::parse(&request.encode()).unwrap(), request);
        }
        for reply in [platform::VersionReply::Protocol(ProtocolVersion(version)), platform::VersionReply::Firmware(text.clone()), platform::VersionReply::DeviceType(text)] {
            prop_assert_eq!(platform::VersionReply::parse(&reply.encode().unwrap()).unwrap(), reply);
        }
        let app = platform::App(app);
        prop_assert_eq!(platform::App::parse(&app.encode()).unwrap(), app);
    }

    #[test]
    fn link_services_and_console_decode_to_themselves(data in bytes::<30>(), time: f64) {
        use link_service::Request;
        prop_assume!(!time.is_nan());
        for request in [Request::Echo(data.clone()), Request::Source, Request::Sink, Request::Null] {
            prop_assert_eq!(Request::parse(&request.encode()).unwrap(), request);
        }
        let ping = link_service::Ping(time);
        prop_assert_eq!(link_service::Ping::parse(&ping.encode()).unwrap(), ping);
        let console = console::Console { text: data };
        prop_assert_eq!(console::Console::parse(&console.encode()).unwrap(), console);
    }

    #[test]
    fn trajectory_pieces_decode_to_themselves(x in floats::<8>(), y in floats::<8>(), z in floats::<8>(), yaw in floats::<8>(), duration in float()) {
        let piece = trajectory::Piece { x, y, z, yaw, duration };
        let mut bytes = Vec::new();
        piece.append_to(&mut bytes).unwrap();
        prop_assert_eq!(trajectory::Piece::parse(&bytes.try_into().unwrap()), piece);
    }

    #[test]
    fn values_keep_their_kind_and_range(value in value(), whole: i64, fraction: f64) {
        let kind = value.kind();
        prop_assert_eq!(value.to_bytes().len(), kind.size());
        prop_assert_eq!(Kind::from_name(kind.name()), Some(kind));
        if let Some((min, max)) = kind.range() {
            let fits = (min..=max).contains(&i128::from(whole));
            prop_assert_eq!(Value::from_integer(kind, whole).is_some(), fits);
        }
        if let Some(value) = Value::from_float(kind, fraction) {
            prop_assert!(!kind.is_integer() || value.to_f64() == fraction);
        }
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 1..=31), port in 0u8..16, channel in 0u8..4, aimed: bool) {
        let mut bytes = bytes;
        if aimed {
            bytes[0] = port << 4 | channel;
        }
        let packet = Packet::from_bytes(&bytes).unwrap();
        _ = setpoint::Setpoint::parse(&packet);
        _ = setpoint::NotifySetpointsStop::parse(&packet);
        _ = commander::Rpyt::parse(&packet);
        _ = high_level::Command::parse(&packet);
        _ = high_level::Reply::parse(&packet);
        _ = localization::Request::parse(&packet);
        _ = localization::Report::parse(&packet);
        _ = log::Control::parse(&packet);
        _ = log::ControlReply::parse(&packet);
        _ = log::Data::parse(&packet);
        for table in [toc::Table::Log, toc::Table::Param] {
            _ = toc::Request::parse(table, &packet);
            _ = toc::Reply::parse(table, &packet);
        }
        _ = param::Read::parse(&packet);
        _ = param::ReadReply::parse(&packet);
        _ = param::Write::parse(&packet);
        _ = param::WriteReply::parse(&packet);
        _ = param::Misc::parse(&packet);
        _ = param::MiscReply::parse(&packet);
        _ = memory::InfoRequest::parse(&packet);
        _ = memory::InfoReply::parse(&packet);
        _ = memory::Read::parse(&packet);
        _ = memory::ReadReply::parse(&packet);
        _ = memory::Write::parse(&packet);
        _ = memory::WriteReply::parse(&packet);
        _ = supervisor::Command::parse(&packet);
        _ = supervisor::CommandReply::parse(&packet);
        _ = supervisor::InfoRequest::parse(&packet);
        _ = supervisor::InfoReply::parse(&packet);
        _ = platform::Command::parse(&packet);
        _ = platform::CommandReply::parse(&packet);
        _ = platform::VersionRequest::parse(&packet);
        _ = platform::VersionReply::parse(&packet);
        _ = platform::App::parse(&packet);
        _ = link_service::Request::parse(&packet);
        _ = link_service::Ping::parse(&packet);
        _ = link_service::is_crazyflie(&packet);
        _ = console::Console::parse(&packet);
    }
}
