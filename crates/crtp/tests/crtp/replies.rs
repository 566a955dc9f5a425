//! Bytes of the drone's replies, as real firmware sends them.

use crtp::{Kind, Packet, ProtocolVersion, Status, Value};
use crtp::{console, high_level, link_service, log, memory, param, platform, supervisor, toc};

use crate::{hex, packet};

#[test]
fn connect_sequence_of_real_firmware() {
    let source = "fd4269746372617a65204372617a79666c6965000000000000000000000000";
    assert_eq!(hex(&link_service::source_reply()), source);
    assert_eq!(link_service::is_crazyflie(&packet(source)), Ok(true));

    let version = platform::VersionReply::Protocol(ProtocolVersion(12));
    assert_eq!(hex(&version.encode().unwrap()), "dd000c000000");
    assert_eq!(
        platform::VersionReply::parse(&packet("dd000c000000")),
        Ok(version)
    );

    let count = memory::InfoReply::Count(2);
    assert_eq!(hex(&count.encode()), "400102");
    let details = memory::InfoReply::Details(memory::Details {
        id: 0,
        kind: memory::Kind::TRAJECTORY,
        size: 0x1000,
        serial: [0; 8],
    });
    let bytes = "40020012001000000000000000000000";
    assert_eq!(hex(&details.encode()), bytes);
    assert_eq!(memory::InfoReply::parse(&packet(bytes)), Ok(details));
}

fn assert_toc(table: toc::Table, reply: toc::Reply, bytes: &str) {
    assert_eq!(hex(&reply.encode(table).unwrap()), bytes);
    assert_eq!(toc::Reply::parse(table, &packet(bytes)), Ok(reply));
}

#[test]
fn tables_of_contents_of_real_firmware() {
    let info = toc::Reply::Info {
        count: 380,
        crc: 0xe45e_4eae,
        limits: Some(toc::Limits {
            blocks: 16,
            variables: 128,
        }),
    };
    assert_toc(toc::Table::Log, info, "50037c01ae4e5ee41080");
    let item = toc::Item {
        id: 0,
        kind: 2,
        group: "crtp".into(),
        name: "rxRate".into(),
    };
    let bytes = "5002000002637274700072785261746500";
    assert_toc(toc::Table::Log, toc::Reply::Item(item), bytes);
    assert_toc(toc::Table::Log, toc::Reply::OutOfRange, "5002");
    let info = toc::Reply::Info {
        count: 245,
        crc: 0xf3d8_c53f,
        limits: None,
    };
    assert_toc(toc::Table::Param, info, "2003f5003fc5d8f3");
    let item = toc::Item {
        id: 0,
        kind: 8,
        group: "system".into(),
        name: "storageStats".into(),
    };
    let bytes = "200200000873797374656d0073746f72616765537461747300";
    assert_toc(toc::Table::Param, toc::Reply::Item(item), bytes);
}

#[test]
fn log_session_of_real_firmware() {
    let created = log::ControlReply {
        command: 6,
        block: 1,
        status: Status::OK,
    };
    assert_eq!(hex(&created.encode()), "5d060100");
    let unknown = log::ControlReply::parse(&packet("5d010908")).unwrap();
    assert_eq!(unknown.status, Status::UNKNOWN_COMMAND);

    let bytes = "5201a1200000000000000000005e98323400000000580d2139";
    let data = log::Data::parse(&packet(bytes)).unwrap();
    assert_eq!(
        (data.block, data.time_ms, data.values.len()),
        (1, 0x20a1, 20)
    );
    assert_eq!(hex(&data.encode()), bytes);
    let (last, rest) = Value::take(Kind::F32, &data.values[16..]).unwrap();
    assert_eq!(
        (last, rest),
        (Value::F32(f32::from_bits(0x3921_0d58)), &[][..])
    );
}

#[test]
fn parameters_of_real_firmware() {
    let value = param::ReadReply::parse(&packet("2d00000000")).unwrap();
    assert_eq!(value.value.as_ref().unwrap().as_slice(), [0]);
    assert_eq!(hex(&value.encode()), "2d00000000");
    let missing = param::ReadReply::parse(&packet("2dffff02")).unwrap();
    assert_eq!(missing.value, Err(Status::NOT_FOUND));
    let written = param::WriteReply::parse(&packet("2e260002")).unwrap();
    assert_eq!((written.id, written.value.as_slice()), (0x26, &[2][..]));

    let set = "2f006b616c6d616e00696e697469616c580000";
    let reply = param::MiscReply::SetByName {
        group: "kalman".into(),
        name: "initialX".into(),
        status: Status::OK,
    };
    assert_eq!(hex(&reply.encode().unwrap()), set);
    assert_eq!(param::MiscReply::parse(&packet(set)), Ok(reply));
    let persistent = param::MiscReply::ExtendedTypeV2 {
        id: 15,
        extended: Ok(1),
    };
    assert_eq!(hex(&persistent.encode().unwrap()), "2f070f000001");
    assert_eq!(
        param::MiscReply::parse(&packet("2f07000002")),
        Ok(param::MiscReply::ExtendedTypeV2 {
            id: 0,
            extended: Err(Status::NOT_FOUND)
        })
    );
}

#[test]
fn commands_and_supervisor_of_real_firmware() {
    let request = packet("8c07000000003f000000000000000040");
    let reply = high_level::Reply::to(&request, Status::BUSY);
    assert_eq!(hex(&reply.encode()), "8c07000010");
    assert_eq!(high_level::Reply::parse(&packet("8c07000010")), Ok(reply));

    let armed = supervisor::CommandReply::Arm {
        success: true,
        armed: true,
    };
    assert_eq!(hex(&armed.encode()), "91810101");
    assert_eq!(
        supervisor::CommandReply::parse(&packet("91820101")),
        Ok(supervisor::CommandReply::Recover {
            success: true,
            recovered: true
        })
    );
    let info = supervisor::Info(0x020e);
    let reply = supervisor::InfoReply::to(supervisor::InfoRequest::BitField, info);
    assert_eq!(hex(&reply.encode()), "908c0e02");
    let question = supervisor::InfoRequest::parse(&packet("9c04")).unwrap();
    let can_fly = supervisor::InfoReply::to(question, info);
    assert_eq!(hex(&can_fly.encode()), "908401");
    assert_eq!(info.refusal(), None);
    assert_eq!(
        supervisor::Info(0x0244).refusal(),
        Some("locked: restart the drone")
    );
}

#[test]
fn replies_in_reused_buffers_take_the_reserved_bits_of_their_request() {
    let reply = link_service::source_reply();
    let clear = reply.with_reserved_bits_of(&packet("f1"));
    assert_eq!(clear.header(), 0xf1);
    assert_eq!(clear.with_reserved_bits_of(&packet("fd")), reply);
}

#[test]
fn console_text_longer_than_a_packet_comes_in_pieces() {
    let text = "a line that is longer than thirty bytes\n";
    let packets: Vec<Packet> = console::Console::pieces(text).map(|c| c.encode()).collect();
    assert_eq!(packets.len(), 2);
    assert_eq!(packets[0].header(), 0x00);
    let joined: Vec<u8> = packets
        .iter()
        .flat_map(|p| console::Console::parse(p).unwrap().text)
        .collect();
    assert_eq!(joined, text.as_bytes());
}
