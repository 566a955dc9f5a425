//! `openlink doctor dds`: which UDP ports a DDS domain takes on this host, who has them, and how many participants
//! there is room for.
//!
//! DDSI-RTPS derives every port from the domain and the participant's number (specification, 9.6.2.3): 7400 + 250 x
//! domain, + 0 and + 1 for multicast, + 10 + 2p and + 11 + 2p for participant p. A process has one participant for each
//! context, whatever the number of its nodes. Reads only.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::Context as _;
use bridge_core::DomainId;
use serde::Serialize;

use crate::out;

/// Participants of one domain whose ports lie below those of the next domain.
const ROOM: u32 = 120;
/// Ports of a domain.
const SPAN: u32 = 250;
/// First port of domain 0.
const BASE: u32 = 7400;
/// Ports that Linux gives to sockets that ask for none in particular, unless set otherwise.
const USUAL_RANGE: (u32, u32) = (32768, 60999);

/// Command line of `openlink doctor dds`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Domains to look at, 0 to 232; 0 if none is given.
    #[arg(value_name = "DOMAIN", value_parser = domain)]
    domains: Vec<DomainId>,
    /// Participants that this host is to have in each domain beside those that run now.
    #[arg(long, value_name = "N", default_value_t = 0)]
    participants: u32,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

fn domain(text: &str) -> Result<DomainId, String> {
    DomainId::parse("DOMAIN", text).map_err(|error| error.to_string())
}

/// What holds for one domain on this host.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Budget {
    domain: u8,
    /// First and last port, UDP.
    ports: (u32, u32),
    /// Participants that run now: bound unicast discovery ports.
    running: u32,
    /// Participants wanted in addition.
    planned: u32,
    /// Further ones that there is room for after those.
    room: u32,
    /// The kernel may give the domain's ports to other sockets.
    shares_ports: bool,
    /// Ports for one more participant at least are bound by something that is none.
    foreign: u32,
    verdict: Verdict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Fine,
    Warning,
    Impossible,
}

/// Examines and reports. Exit code 0: fine, 1: warnings, 2: more participants than there are ports for.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let bound = bound_ports()?;
    let range = port_range();
    let domains = if args.domains.is_empty() {
        vec![DomainId::default()]
    } else {
        args.domains
    };
    let budgets: Vec<_> = domains
        .iter()
        .map(|domain| budget(domain.get(), args.participants, &bound, range))
        .collect();
    for budget in &budgets {
        if args.json {
            out::json(budget);
        } else {
            out::line(text(budget, range));
        }
    }
    let worst = budgets.iter().map(|budget| budget.verdict).max();
    Ok(ExitCode::from(worst.map_or(0, |worst| worst as u8)))
}

/// The budget of a domain on a host with these bound UDP ports and this range of ports for any socket.
fn budget(domain: u8, planned: u32, bound: &BTreeSet<u32>, range: (u32, u32)) -> Budget {
    let first = BASE + SPAN * u32::from(domain);
    let pair = |p: u32| (first + 10 + 2 * p, first + 11 + 2 * p);
    let (mut running, mut foreign) = (0, 0);
    for (discovery, data) in (0..ROOM).map(pair) {
        match (bound.contains(&discovery), bound.contains(&data)) {
            (true, true) => running += 1,
            (false, false) => {}
            _ => foreign += 1,
        }
    }
    let taken = running + foreign + planned;
    // By the first participant's port: domain 101 has room for 54 below the usual range.
    let shares_ports = (range.0..=range.1).contains(&(first + 10));
    let verdict = if taken > ROOM {
        Verdict::Impossible
    } else if shares_ports || taken > ROOM * 4 / 5 {
        Verdict::Warning
    } else {
        Verdict::Fine
    };
    Budget {
        domain,
        ports: (first, (first + SPAN - 1).min(65535)),
        running,
        planned,
        room: ROOM.saturating_sub(taken),
        shares_ports,
        foreign,
        verdict,
    }
}

fn text(budget: &Budget, range: (u32, u32)) -> String {
    let Budget {
        domain,
        ports,
        running,
        planned,
        room,
        foreign,
        ..
    } = budget;
    let mut text = format!(
        "domain {domain}: UDP ports {} to {}; {running} participants now, {planned} planned, room for {room} more (one for each context of a process)",
        ports.0, ports.1
    );
    if *foreign > 0 {
        text.push_str(&format!(
            "\n  {foreign} participants' ports are half taken by another socket; DDS skips them"
        ));
    }
    if budget.shares_ports {
        text.push_str(&format!(
            "\n  warning: Linux gives ports {} to {} to any socket, so a participant may find its own taken; use another domain or set net.ipv4.ip_local_port_range",
            range.0, range.1
        ));
    }
    match budget.verdict {
        Verdict::Impossible => text.push_str(
            "\n  impossible: a domain has ports for 120 participants on one host; put some in another domain, or several nodes into one process",
        ),
        Verdict::Warning if !budget.shares_ports => {
            text.push_str("\n  warning: more than four fifths of the domain's ports are taken");
        }
        Verdict::Warning | Verdict::Fine => {}
    }
    text
}

/// Local ports of all UDP sockets.
fn bound_ports() -> anyhow::Result<BTreeSet<u32>> {
    let mut ports = BTreeSet::new();
    for path in ["/proc/net/udp", "/proc/net/udp6"] {
        match std::fs::read_to_string(path) {
            Ok(table) => ports.extend(local_ports(&table)),
            // A kernel without IPv6 has no such table.
            Err(_) if path.ends_with('6') => {}
            Err(error) => return Err(error).context(path),
        }
    }
    Ok(ports)
}

/// The second column of the kernel's table is `address:port`, in hexadecimal.
fn local_ports(table: &str) -> impl Iterator<Item = u32> {
    table.lines().skip(1).filter_map(|line| {
        let local = line.split_whitespace().nth(1)?;
        u32::from_str_radix(local.rsplit_once(':')?.1, 16).ok()
    })
}

fn port_range() -> (u32, u32) {
    let read = || {
        let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
        let mut numbers = text.split_whitespace().map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    };
    read().unwrap_or(USUAL_RANGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "  sl  local_address rem_address   st\n  1: 00000000:1CF2 00000000:0000 07\n  2: 0100007F:1CF3 00000000:0000 07\n  3: 00000000:1CE8 00000000:0000 07\n";

    #[test]
    fn participants_are_counted_by_their_ports() {
        let bound: BTreeSet<u32> = local_ports(TABLE).collect();
        assert_eq!(bound, BTreeSet::from([7400, 7410, 7411]));
        let found = budget(0, 0, &bound, USUAL_RANGE);
        assert_eq!((found.running, found.room, found.foreign), (1, 119, 0));
        assert_eq!((found.ports, found.verdict), ((7400, 7649), Verdict::Fine));
        assert_eq!(budget(1, 0, &bound, USUAL_RANGE).running, 0);
    }

    #[test]
    fn more_participants_than_ports_are_impossible() {
        let none = BTreeSet::new();
        let verdict = |planned| budget(5, planned, &none, USUAL_RANGE).verdict;
        assert_eq!(
            (verdict(96), verdict(97)),
            (Verdict::Fine, Verdict::Warning)
        );
        assert_eq!(
            (verdict(120), verdict(121)),
            (Verdict::Warning, Verdict::Impossible)
        );
    }

    #[test]
    fn domains_in_the_kernel_s_own_range_are_warned_of() {
        let none = BTreeSet::new();
        let shares = |domain| budget(domain, 0, &none, USUAL_RANGE).shares_ports;
        assert_eq!(
            (
                shares(0),
                shares(101),
                shares(150),
                shares(215),
                shares(232)
            ),
            (false, false, true, false, false)
        );
        assert!(shares(102) && shares(214));
        assert!(text(&budget(150, 0, &none, USUAL_RANGE), USUAL_RANGE).contains("32768 to 60999"));
    }

    #[test]
    fn a_half_taken_pair_belongs_to_another_socket() {
        let bound = BTreeSet::from([7411]);
        let found = budget(0, 0, &bound, USUAL_RANGE);
        assert_eq!((found.running, found.foreign, found.room), (0, 1, 119));
    }
}
