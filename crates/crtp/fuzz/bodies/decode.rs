//! No bytes make a decoder panic, and what was decoded can be encoded.

use crtp::*;

/// One input.
pub(crate) fn run(data: &[u8]) {
    let Ok(packet) = Packet::from_bytes(data) else {
        return;
    };
    requests(&packet);
    replies(&packet);
}

fn requests(packet: &Packet) {
    _ = setpoint::Setpoint::parse(packet).map(|s| s.encode(ProtocolVersion::NEWEST));
    _ = setpoint::NotifySetpointsStop::parse(packet).map(|s| s.encode());
    _ = commander::Rpyt::parse(packet).map(|s| s.encode());
    _ = high_level::Command::parse(packet).map(|c| c.encode());
    _ = localization::Request::parse(packet).map(|r| r.encode());
    _ = log::Control::parse(packet).map(|c| c.encode());
    _ = memory::InfoRequest::parse(packet).map(|r| r.encode());
    _ = memory::Read::parse(packet).map(|r| r.encode());
    _ = memory::Write::parse(packet).map(|w| w.encode());
    _ = param::Read::parse(packet).map(|r| r.encode());
    _ = param::Write::parse(packet);
    _ = param::Misc::parse(packet).map(|m| m.encode());
    _ = platform::Command::parse(packet).map(|c| c.encode());
    _ = platform::VersionRequest::parse(packet).map(|r| r.encode());
    _ = supervisor::Command::parse(packet).map(|c| c.encode());
    _ = supervisor::InfoRequest::parse(packet).map(|r| r.encode());
    _ = link_service::Request::parse(packet).map(|r| r.encode());
    _ = link_service::Ping::parse(packet).map(|p| p.encode());
    for table in [toc::Table::Log, toc::Table::Param] {
        _ = toc::Request::parse(table, packet).map(|r| r.encode(table));
    }
}

fn replies(packet: &Packet) {
    _ = high_level::Reply::parse(packet).map(|r| r.encode());
    _ = localization::Report::parse(packet).map(|r| r.encode());
    _ = log::ControlReply::parse(packet).map(|r| r.encode());
    _ = log::Data::parse(packet).map(|d| d.encode());
    _ = memory::InfoReply::parse(packet).map(|r| r.encode());
    _ = memory::ReadReply::parse(packet).map(|r| r.encode());
    _ = memory::WriteReply::parse(packet).map(|r| r.encode());
    _ = param::ReadReply::parse(packet).map(|r| r.encode());
    _ = param::WriteReply::parse(packet).map(|r| r.encode());
    _ = param::MiscReply::parse(packet).map(|r| r.encode());
    _ = platform::CommandReply::parse(packet).map(|r| r.encode());
    _ = platform::VersionReply::parse(packet).map(|r| r.encode());
    _ = platform::App::parse(packet).map(|a| a.encode());
    _ = supervisor::CommandReply::parse(packet).map(|r| r.encode());
    _ = supervisor::InfoReply::parse(packet).map(|r| r.encode());
    _ = console::Console::parse(packet).map(|c| c.encode());
    for table in [toc::Table::Log, toc::Table::Param] {
        _ = toc::Reply::parse(table, packet).map(|r| r.encode(table));
    }
}
