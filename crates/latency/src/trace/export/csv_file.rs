//! One line for each record.

use std::io::Write;

use crate::trace::Trace;

const HEAD: [&str; 15] = [
    "host",
    "mono_ns",
    "unix_ns",
    "packet",
    "stage",
    "direction",
    "link",
    "port",
    "channel",
    "size",
    "attempt",
    "reason",
    "verdict",
    "data",
    "host_number",
];

/// Writes all records.
///
/// # Errors
/// What `to` says.
pub fn csv(trace: &Trace, to: impl Write) -> std::io::Result<()> {
    let mut file = csv::Writer::from_writer(to);
    file.write_record(HEAD).map_err(into_io)?;
    for (host, hop) in &trace.hops {
        let info = &trace.hosts[*host];
        let link = info.links.get(usize::from(hop.link)).cloned();
        let data: String = hop
            .bytes()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        file.write_record([
            info.name.clone(),
            hop.at.0.to_string(),
            info.unix_ns_at(hop.at).to_string(),
            hop.packet.to_string(),
            hop.stage.name().to_owned(),
            hop.direction.name().to_owned(),
            link.unwrap_or_else(|| hop.link.to_string()),
            hop.port().to_string(),
            hop.channel().to_string(),
            hop.size.to_string(),
            hop.attempt.to_string(),
            hop.reason.name().to_owned(),
            hop.verdict.name().to_owned(),
            data,
            host.to_string(),
        ])
        .map_err(into_io)?;
    }
    file.flush()
}

fn into_io(error: csv::Error) -> std::io::Error {
    std::io::Error::other(error)
}
