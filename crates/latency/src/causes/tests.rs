//! Counters read from a machine made of files, and from this one.

use std::os::unix::fs::symlink;

use super::*;

fn machine(datagrams: u64, overflows: u64, drops: u64, ticks: u64) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let write = |path: &str, text: String| {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(
        "proc/net/snmp",
        format!(
            "Ip: Forwarding ReasmFails\nIp: 1 7\nUdp: InDatagrams NoPorts RcvbufErrors SndbufErrors\n\
             Udp: {datagrams} 3 {overflows} 0\n"
        ),
    );
    write("proc/net/snmp6", "Udp6RcvbufErrors   \t2\n".to_owned());
    write(
        "proc/net/udp",
        format!(
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n\
             90: 00000000:1CF2 00000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 555 2 0000000000000000 {drops}\n\
             91: 00000000:1CF3 00000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 556 2 0000000000000000 900\n"
        ),
    );
    write(
        "proc/stat",
        format!(
            "cpu  {ticks} 0 0 {} 0 0 0 {}\nctxt {}\n",
            ticks * 2,
            ticks,
            ticks * 10
        ),
    );
    write(
        "proc/42/stat",
        format!("42 (a (odd) name) S 1 1 1 0 -1 0 0 0 0 0 {ticks} {ticks} 0 0 20 0 3 0 1 1 1\n"),
    );
    write(
        "proc/42/status",
        "VmRSS:\t  2048 kB\nThreads:\t2\n".to_owned(),
    );
    for task in [42, 43] {
        write(
            &format!("proc/42/task/{task}/status"),
            format!("voluntary_ctxt_switches:\t{ticks}\nnonvoluntary_ctxt_switches:\t1\n"),
        );
    }
    write("sys/class/net/lo/mtu", "65536\n".to_owned());
    write("sys/class/net/lo/operstate", "unknown\n".to_owned());
    write("sys/class/net/eth1/mtu", "1500\n".to_owned());
    write("sys/class/net/eth1/operstate", "down\n".to_owned());
    std::fs::create_dir_all(root.path().join("proc/42/fd")).unwrap();
    symlink("socket:[555]", root.path().join("proc/42/fd/9")).unwrap();
    symlink("/dev/null", root.path().join("proc/42/fd/0")).unwrap();
    root
}

fn watched() -> Vec<Watched> {
    let one = |name: &str, pid| Watched {
        name: name.to_owned(),
        pid,
    };
    vec![one("relay", 42), one("gone", 4242)]
}

#[test]
fn two_snapshots_give_what_happened_between_them() {
    let (before, after) = (machine(100, 5, 3, 100), machine(1100, 25, 13, 200));
    let read = |root: &tempfile::TempDir| Snapshot::read_below(root.path(), &watched());
    let causes = read(&after).since(&read(&before));
    assert_eq!(
        (causes.udp_datagrams, causes.udp_receive_overflows),
        (1000, 20)
    );
    assert_eq!(
        (causes.ip_reassembly_failures, causes.context_switches),
        (0, 1000)
    );
    assert_eq!(
        (causes.steal_percent, causes.busy_percent),
        (Some(25.0), Some(25.0))
    );
    assert_eq!(causes.mtu, BTreeMap::from([("lo".to_owned(), 65_536)]));
    assert_eq!(
        causes.processes.len(),
        1,
        "a process that is not there is left out"
    );
    let relay = &causes.processes["relay"];
    assert_eq!((relay.cpu_s, relay.rss_mib, relay.threads), (2.0, 2.0, 2));
    assert_eq!(
        (relay.voluntary_switches, relay.involuntary_switches),
        (200, 0)
    );
    assert_eq!(relay.socket_drops, 10, "of its own socket alone");
    assert_eq!(causes.overflows(), 10);
}

#[test]
fn a_machine_without_any_counters_gives_none_and_does_not_fail() {
    let root = tempfile::tempdir().unwrap();
    let snapshot = Snapshot::read_below(root.path(), &watched());
    let causes = snapshot.since(&snapshot);
    assert_eq!(causes, Causes::default());
    assert_eq!(causes.steal_percent, None);
}

#[test]
fn the_transport_is_told_by_the_traffic_it_leaves() {
    let causes = |udp_datagrams, tcp_segments| Causes {
        udp_datagrams,
        tcp_segments,
        ..Causes::default()
    };
    assert_eq!(causes(200, 0).transport_seen(100, 64), "udp");
    assert_eq!(causes(200, 0).transport_seen(100, 4 << 20), "shared memory");
    assert_eq!(causes(13_000, 0).transport_seen(100, 4 << 20), "udp");
    assert_eq!(causes(3, 400).transport_seen(100, 1 << 20), "tcp");
    assert_eq!(causes(0, 0).transport_seen(100, 64), "shared memory");
}

#[test]
fn this_process_can_be_read_with_its_socket_buffers() {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 50_000).unwrap();
    let granted = rustix::net::sockopt::socket_recv_buffer_size(&socket).unwrap() as u64;
    let own = [Watched {
        name: "own".to_owned(),
        pid: std::process::id(),
    }];
    let before = Snapshot::read(&own);
    // Floods the socket until the kernel drops.
    for _ in 0..200 {
        socket
            .send_to(&[0; 1000], socket.local_addr().unwrap())
            .unwrap();
    }
    let causes = Snapshot::read(&own).since(&before);
    let usage = &causes.processes["own"];
    assert!(usage.rss_mib > 0.0 && usage.threads > 0);
    assert!(usage.socket_drops > 0, "{usage:?}");
    assert!(causes.udp_receive_overflows >= usage.socket_drops);
    // A sandbox may forbid to look at sockets by handle.
    if !usage.receive_buffers.is_empty() {
        assert!(usage.receive_buffers.contains(&granted), "{usage:?}");
    }
}
