//! Counters of the whole machine and network namespace.

use std::collections::BTreeMap;
use std::path::Path;

use super::Causes;

/// As read at one instant.
#[derive(Clone, Debug, Default)]
pub(super) struct System {
    /// `Udp.InDatagrams`, `Ip.ReasmFails` and so on, of `/proc/net/snmp` and `/proc/net/snmp6`.
    net: BTreeMap<String, u64>,
    /// User, nice, system, idle, iowait, irq, softirq, steal; ticks.
    cpu: Vec<u64>,
    switches: u64,
    mtu: BTreeMap<String, u64>,
}

impl System {
    pub(super) fn read_below(root: &Path) -> Self {
        let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
        let stat = read("proc/stat");
        let mut net = snmp(&read("proc/net/snmp"));
        net.extend(snmp6(&read("proc/net/snmp6")));
        Self {
            net,
            cpu: cpu(&stat),
            switches: field(&stat, "ctxt ").unwrap_or(0),
            mtu: mtu(root),
        }
    }

    pub(super) fn since(&self, earlier: &Self) -> Causes {
        let net = |key: &str| {
            let at = |system: &Self| system.net.get(key).copied().unwrap_or(0);
            at(self).saturating_sub(at(earlier))
        };
        let ticks: Vec<u64> = self
            .cpu
            .iter()
            .zip(&earlier.cpu)
            .map(|(now, then)| now.saturating_sub(*then))
            .collect();
        let share = |of: u64| {
            let total: u64 = ticks.iter().sum();
            (total > 0).then(|| (of as f64 / total as f64 * 1e4).round() / 1e2)
        };
        let at = |index: usize| ticks.get(index).copied();
        let idle = at(3).unwrap_or(0) + at(4).unwrap_or(0);
        let steal = at(7);
        let busy = ticks.iter().sum::<u64>() - idle - steal.unwrap_or(0);
        Causes {
            udp_receive_overflows: net("Udp.RcvbufErrors") + net("Udp6RcvbufErrors"),
            udp_send_overflows: net("Udp.SndbufErrors") + net("Udp6SndbufErrors"),
            udp_datagrams: net("Udp.InDatagrams") + net("Udp6InDatagrams"),
            tcp_segments: net("Tcp.InSegs"),
            ip_reassembly_failures: net("Ip.ReasmFails") + net("Ip6ReasmFails"),
            steal_percent: steal.and_then(share),
            busy_percent: share(busy),
            context_switches: self.switches.saturating_sub(earlier.switches),
            mtu: self.mtu.clone(),
            ..Causes::default()
        }
    }
}

/// Pairs of lines, names above values, each with the protocol in front.
fn snmp(text: &str) -> BTreeMap<String, u64> {
    let lines: Vec<&str> = text.lines().collect();
    let pairs = lines.chunks_exact(2).filter_map(|pair| {
        let (protocol, names) = pair[0].split_once(':')?;
        let (_, values) = pair[1].split_once(':')?;
        Some((protocol, names, values))
    });
    pairs
        .flat_map(|(protocol, names, values)| {
            let numbers = values.split_whitespace().map(str::parse::<u64>);
            let named = names.split_whitespace().zip(numbers);
            named.filter_map(move |(name, value)| Some((format!("{protocol}.{name}"), value.ok()?)))
        })
        .collect()
}

/// One name and value a line.
fn snmp6(text: &str) -> BTreeMap<String, u64> {
    let lines = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
    });
    lines.collect()
}

fn cpu(stat: &str) -> Vec<u64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "));
    let ticks = line.unwrap_or_default().split_whitespace().take(8);
    ticks.map_while(|tick| tick.parse().ok()).collect()
}

/// The number after `key` at the start of a line.
pub(super) fn field(text: &str, key: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(key))?;
    rest.split_whitespace().next()?.parse().ok()
}

fn mtu(root: &Path) -> BTreeMap<String, u64> {
    let Ok(folder) = std::fs::read_dir(root.join("sys/class/net")) else {
        return BTreeMap::new();
    };
    let interfaces = folder.flatten().filter_map(|entry| {
        let word = |file: &str| std::fs::read_to_string(entry.path().join(file)).ok();
        // Loopback and tunnels call their state unknown.
        let down = word("operstate").is_some_and(|state| state.trim() == "down");
        let mtu = word("mtu")?.trim().parse().ok()?;
        (!down).then(|| (entry.file_name().to_string_lossy().into_owned(), mtu))
    });
    interfaces.collect()
}
