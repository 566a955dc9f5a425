//! Sockets and interfaces: buffers against the largest message, reassembly, queues, what was lost so far.

use crate::control_box::network::{fragments, snmp_number};
use crate::control_box::wire::STATE_BYTES;
use crate::doctor::finding::{Check, Judgement, Remedy, Verdict, sysctl};
use crate::doctor::machine::Machine;
use crate::doctor::profile::Profile;

const DDS_BUFFERS: &str =
    "ros2/rmw_cyclonedds#137, eclipse-cyclonedds/cyclonedds#294, ros2/ros2_documentation#700";
const CAP_NET_ADMIN: u32 = 12;
const CAP_SYS_ADMIN: u32 = 21;

/// The checks of this group.
pub const CHECKS: &[Check] = &[
    Check {
        id: "net.receive_buffer_limit",
        why: "a message larger than the receive buffer is lost in part and waits for a repair round",
        source: DDS_BUFFERS,
        remedy: sysctl!(
            "net.core.rmem_max = 16777216",
            "memory of sockets that ask for it"
        ),
        judge: rmem_max,
    },
    Check {
        id: "net.receive_buffer_default",
        why: "a program that does not ask gets this; 212992 bytes hold about 140 kB of payload in Ethernet frames",
        source: DDS_BUFFERS,
        remedy: sysctl!("net.core.rmem_default = 8388608", "memory of every socket"),
        judge: rmem_default,
    },
    Check {
        id: "net.send_buffer_limit",
        why: "a large message is handed over in one go only when the send buffer holds it",
        source: DDS_BUFFERS,
        remedy: sysctl!(
            "net.core.wmem_max = 16777216",
            "memory of sockets that ask for it"
        ),
        judge: wmem_max,
    },
    Check {
        id: "net.reassembly_memory",
        why: "large UDP messages are fragments until all have come; above this limit they are thrown away",
        source: "ros2/ros2_documentation#700, kernel documentation: ipfrag_high_thresh",
        remedy: sysctl!(
            "net.ipv4.ipfrag_high_thresh = 134217728",
            "memory under attack by fragments"
        ),
        judge: ipfrag,
    },
    Check {
        id: "net.reassembly_time",
        why: "an incomplete message blocks its memory this long: a stall of 30 s was seen",
        source: "eclipse-cyclonedds/cyclonedds#1304",
        remedy: sysctl!("net.ipv4.ipfrag_time = 3", "slow links may need longer"),
        judge: ipfrag_time,
    },
    Check {
        id: "net.losses_so_far",
        why: "overflowing sockets and failed reassemblies explain losses that look like the radio's",
        source: "proc_net_snmp: Udp RcvbufErrors, Ip ReasmFails",
        remedy: Remedy::same(
            "raise net.core.rmem_max and ask for a larger receive buffer; then see whether the counters still grow",
            "memory",
        ),
        judge: losses,
    },
    Check {
        id: "net.backlog",
        why: "packets that arrive faster than one core takes them are dropped beyond this number",
        source: "kernel documentation: netdev_max_backlog",
        remedy: sysctl!("net.core.netdev_max_backlog = 4096", "none worth naming"),
        judge: backlog,
    },
    Check {
        id: "net.busy_poll",
        why: "busy polling saves a wake-up at the price of a core; it is set per socket by the responder's busy-poll mode",
        source: "measured: no gain on loopback or a virtual cable",
        remedy: Remedy::NONE,
        judge: busy_poll,
    },
    Check {
        id: "net.queueing",
        why: "a plain first-in first-out queue lets a video stream stand before the control packets",
        source: "design of this project: control beside video on a narrow link",
        remedy: sysctl!("net.core.default_qdisc = fq_codel", "none"),
        judge: qdisc,
    },
    Check {
        id: "net.mtu",
        why: "a state of 2373 bytes is two fragments at 1500; the loopback interface hides that",
        source: "control interface contract",
        remedy: Remedy::NONE,
        judge: mtu,
    },
    Check {
        id: "net.large_receive_offload",
        why: "the card merges packets and delivers them late",
        source: "kernel documentation: segmentation offloads",
        remedy: Remedy::same("ethtool -K DEVICE lro off", "more CPU time at high rates"),
        judge: offload,
    },
    Check {
        id: "net.namespaces",
        why: "the fake control box uses a virtual cable between two namespaces where it may",
        source: "openlink box",
        remedy: Remedy::same("run openlink box as root, or with --link lo", "none"),
        judge: namespaces,
    },
];

/// Interfaces with hardware behind them or a cable's name, without loopback.
pub(crate) fn interfaces(machine: &Machine) -> Vec<String> {
    machine
        .names("/sys/class/net")
        .into_iter()
        .filter(|name| machine.exists(&format!("/sys/class/net/{name}/device")))
        .collect()
}

fn core(machine: &Machine, name: &str) -> Result<i64, Judgement> {
    machine
        .number(&format!("/proc/sys/net/core/{name}"))
        .ok_or_else(|| Judgement::cannot_tell(format!("net.core.{name} is not readable")))
}

/// A buffer is charged with the overhead of each packet, about half of the payload for 1500-byte frames.
fn buffer(machine: &Machine, name: &str, payload: i64, bad: Verdict) -> Judgement {
    match core(machine, name) {
        Err(unknown) => unknown,
        Ok(bytes) => {
            let needed = payload + payload / 2;
            Judgement::when(
                bytes < needed,
                bad,
                format!("net.core.{name} = {bytes}; the largest message needs about {needed}"),
            )
        }
    }
}

fn rmem_max(machine: &Machine, profile: Profile) -> Judgement {
    buffer(
        machine,
        "rmem_max",
        profile.largest_payload(),
        profile.latency_matters(),
    )
}

fn rmem_default(machine: &Machine, profile: Profile) -> Judgement {
    buffer(
        machine,
        "rmem_default",
        profile.largest_payload(),
        profile.latency_matters(),
    )
}

fn wmem_max(machine: &Machine, profile: Profile) -> Judgement {
    buffer(
        machine,
        "wmem_max",
        profile.largest_payload(),
        profile.latency_matters(),
    )
}

fn ipfrag(machine: &Machine, profile: Profile) -> Judgement {
    match machine.number("/proc/sys/net/ipv4/ipfrag_high_thresh") {
        None => Judgement::cannot_tell("net.ipv4.ipfrag_high_thresh is not readable"),
        Some(bytes) => {
            let needed = profile.largest_payload() * 2;
            Judgement::when(
                bytes < needed,
                profile.latency_matters(),
                format!(
                    "net.ipv4.ipfrag_high_thresh = {bytes}; two of the largest messages need {needed}"
                ),
            )
        }
    }
}

fn ipfrag_time(machine: &Machine, profile: Profile) -> Judgement {
    match machine.number("/proc/sys/net/ipv4/ipfrag_time") {
        None => Judgement::cannot_tell("net.ipv4.ipfrag_time is not readable"),
        Some(seconds) => {
            let large = profile == Profile::GroundStation;
            Judgement::when(
                large && seconds > 10,
                Verdict::Warn,
                format!("net.ipv4.ipfrag_time = {seconds} s"),
            )
        }
    }
}

fn losses(machine: &Machine, profile: Profile) -> Judgement {
    let Some(text) = machine.text("/proc/net/snmp") else {
        return Judgement::cannot_tell("/proc/net/snmp is not readable");
    };
    let number = |group, name| snmp_number(&text, group, name).unwrap_or(0);
    let (overflows, failed, received) = (
        number("Udp", "RcvbufErrors"),
        number("Ip", "ReasmFails"),
        number("Udp", "InDatagrams"),
    );
    let read =
        format!("RcvbufErrors {overflows}, ReasmFails {failed} of {received} datagrams since boot");
    Judgement::when(
        (overflows + failed) * 1000 > received.max(1),
        profile.latency_matters(),
        read,
    )
}

fn backlog(machine: &Machine, profile: Profile) -> Judgement {
    let bad = if profile == Profile::GroundStation {
        Verdict::Warn
    } else {
        Verdict::Pass
    };
    match core(machine, "netdev_max_backlog") {
        Err(unknown) => unknown,
        Ok(packets) => Judgement::when(
            packets < 1000,
            bad,
            format!("net.core.netdev_max_backlog = {packets}"),
        ),
    }
}

fn busy_poll(machine: &Machine, _: Profile) -> Judgement {
    match (core(machine, "busy_poll"), core(machine, "busy_read")) {
        (Ok(poll), Ok(read)) => {
            Judgement::pass(format!("net.core.busy_poll = {poll}, busy_read = {read}"))
        }
        (Err(unknown), _) | (_, Err(unknown)) => unknown,
    }
}

fn qdisc(machine: &Machine, profile: Profile) -> Judgement {
    match machine.text("/proc/sys/net/core/default_qdisc") {
        None => Judgement::cannot_tell("net.core.default_qdisc is not readable"),
        Some(name) => Judgement::when(
            name == "pfifo_fast" && profile == Profile::BridgeOnPi,
            Verdict::Warn,
            format!("net.core.default_qdisc = {name}"),
        ),
    }
}

fn mtu(machine: &Machine, _: Profile) -> Judgement {
    let told: Vec<String> = interfaces(machine)
        .into_iter()
        .filter_map(|name| {
            let mtu = u32::try_from(machine.number(&format!("/sys/class/net/{name}/mtu"))?).ok()?;
            Some(format!(
                "{name}: {mtu}, a state is {} fragment(s)",
                fragments(STATE_BYTES, mtu)
            ))
        })
        .collect();
    if told.is_empty() {
        Judgement::not_applicable("no network interface")
    } else {
        Judgement::pass(told.join("; "))
    }
}

fn offload(machine: &Machine, profile: Profile) -> Judgement {
    let names = interfaces(machine);
    let told: Vec<(String, bool)> = names
        .into_iter()
        .filter_map(|name| lro(machine, &name).map(|on| (name, on)))
        .collect();
    if told.is_empty() {
        return Judgement::cannot_tell("ethtool is not installed or the driver does not tell");
    }
    let read: Vec<String> = told
        .iter()
        .map(|(name, on)| {
            format!(
                "{name}: large-receive-offload {}",
                if *on { "on" } else { "off" }
            )
        })
        .collect();
    Judgement::when(
        told.iter().any(|(_, on)| *on),
        profile.latency_matters(),
        read.join(", "),
    )
}

fn lro(machine: &Machine, name: &str) -> Option<bool> {
    let text = machine.command(&["ethtool", "-k", name])?;
    text.lines().find_map(|line| {
        line.trim()
            .strip_prefix("large-receive-offload:")
            .map(|value| value.trim().starts_with("on"))
    })
}

fn namespaces(machine: &Machine, _: Profile) -> Judgement {
    let status = machine.text("/proc/self/status").unwrap_or_default();
    let bits = status
        .lines()
        .find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok());
    match bits {
        None => Judgement::cannot_tell("/proc/self/status is not readable"),
        Some(bits) => {
            let may = bits >> CAP_NET_ADMIN & 1 == 1 && bits >> CAP_SYS_ADMIN & 1 == 1;
            Judgement::pass(if may {
                "permitted"
            } else {
                "not permitted; the box falls back to loopback"
            })
        }
    }
}
