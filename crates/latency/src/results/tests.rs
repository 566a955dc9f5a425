//! The schema as a contract, files read back, files refused.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::*;
use crate::{Echo, Measurement, Mode, MonoNs, Plan, Prober};

/// A real run of `count` probes on a virtual clock, each answered after its number of milliseconds.
fn run(count: u64) -> Measurement {
    let plan = Plan {
        run_id: 1,
        mode: Mode::Rate { hz: 10.0 },
        bytes: 33_000,
        count: count.max(1),
        warmup: 0,
        wait: Duration::ZERO,
        ..Plan::default()
    };
    let mut prober = Prober::new(plan, MonoNs(0)).unwrap();
    for i in 0..count {
        let now = MonoNs(i * 100_000_000);
        let probe = prober.poll_send(now).unwrap();
        let relay = Some((MonoNs(5), MonoNs(1005)));
        let (run_id, sequence, bytes) = (1, probe.sequence, 33_000);
        let echo = Echo {
            run_id,
            sequence,
            relay,
            bytes,
        };
        prober.handle_echo(MonoNs(now.0 + (i + 1) * 1_000_000), &echo);
    }
    prober.finish(MonoNs(count * 100_000_000))
}

fn row(count: u64) -> Row {
    let identity = Identity {
        link: "dds".into(),
        path: "cross-domain".into(),
        domains: Some([0, 232]),
        rmw: Some(["rmw_fastrtps_cpp".into(), "rmw_cyclonedds_cpp".into()]),
        qos: Some("reliable, keep last 10".into()),
        payload: Payload::Binary,
        settings: BTreeMap::from([("rmem".to_owned(), serde_json::json!(212_992))]),
    };
    Row::new(identity, &run(count))
}

#[test]
fn a_file_has_the_fields_of_the_contract() {
    let value = serde_json::to_value(Results::new(Host::default(), vec![row(3)])).unwrap();
    assert_eq!(value["schema"], 1);
    let row = value["rows"][0].as_object().unwrap();
    for key in "link path domains rmw qos payload bytes rate_hz sent received lost late warmup rtt_us latency_us \
                processing_us foreign partial settings"
        .split_whitespace()
    {
        assert!(row.contains_key(key), "{key} is missing");
    }
    assert_eq!(row["domains"], serde_json::json!([0, 232]));
    assert_eq!(
        (&row["payload"], &row["rate_hz"], &row["bytes"]),
        (&"binary".into(), &10.0.into(), &33_000.into())
    );
    for key in ["rtt_us", "latency_us", "processing_us"] {
        let keys: Vec<&String> = row[key].as_object().unwrap().keys().collect();
        assert_eq!(keys, ["max", "mean", "min", "p50", "p90", "p99", "p999"]);
        assert!(row[key]["p99"].is_null(), "3 samples give no p99");
    }
    assert_eq!(row["rtt_us"]["max"], 3000.0);
    assert_eq!(row["latency_us"]["max"], 1499.5);
}

#[test]
fn files_are_read_back_as_written_and_merged() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (
        folder.path().join("deep/one.json"),
        folder.path().join("two.json"),
    );
    let here = Host {
        name: "here".into(),
        ..Host::default()
    };
    let there = Host {
        name: "there".into(),
        ..Host::default()
    };
    let first = Results::new(here.clone(), vec![row(0), row(1)]);
    first.write(&one).unwrap();
    Results::new(there.clone(), vec![row(200)])
        .write(&two)
        .unwrap();
    assert_eq!(Results::read(&one).unwrap(), first);
    let all = Results::read_all(&[one.clone(), two, one])
        .unwrap()
        .unwrap();
    assert_eq!((all.rows.len(), &all.host), (5, &here));
    assert_eq!(all.rows[2].host.as_deref(), Some(&there));
    assert!(all.rows[3].host.is_none());
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        2,
        "no temporary file stays behind"
    );
}

#[test]
fn an_unknown_schema_is_refused_naming_file_and_field() {
    let refused = |text: &str| {
        Results::parse(Path::new("a.json"), text)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refused(r#"{"schema": 2}"#),
        "a.json: field schema is 2, and only 1 can be read"
    );
    assert_eq!(
        refused(r#"{"schema": "x"}"#),
        r#"a.json: field schema is "x", and only 1 can be read"#
    );
    assert!(refused(r#"{"rows": []}"#).contains("missing field `schema`"));
    assert!(refused("{").starts_with("a.json: no results file: EOF"));
    assert!(
        refused(r#"{"schema": 1, "host": {}, "rows": [{"link": 5}]}"#).contains("line 1 column")
    );
}

#[test]
fn a_file_of_a_later_minor_version_is_read() {
    let mut value = serde_json::to_value(Results::new(Host::default(), vec![row(1)])).unwrap();
    value["rows"][0]["new_field"] = 5.into();
    value["rows"][0].as_object_mut().unwrap().remove("rtt_ecdf");
    let read = Results::parse(Path::new("a.json"), &value.to_string()).unwrap();
    assert!(read.rows[0].rtt_ecdf.is_empty());
}

#[test]
fn host_facts_come_from_the_files_of_the_kernel() {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("proc/sys/kernel/osrelease", "6.12.25-rt\n"),
        ("proc/sys/kernel/version", "#1 SMP PREEMPT_RT Debian\n"),
        ("proc/sys/kernel/hostname", "pi\n"),
        (
            "proc/cpuinfo",
            "processor\t: 0\nBogoMIPS : 108\nModel\t\t: Raspberry Pi 5 Model B Rev 1.0\n",
        ),
        ("proc/meminfo", "MemTotal:        8258304 kB\n"),
        ("proc/stat", "cpu  10 0 10 60 0 0 0 20 0 0\n"),
        ("proc/loadavg", "0.25 0.1 0.0 1/100 5\n"),
        ("proc/sys/net/core/rmem_max", "212992\n"),
    ] {
        let file = root.path().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    let host = Host::read_below(root.path());
    assert_eq!((host.name.as_str(), host.realtime), ("pi", true));
    assert_eq!(host.cpu, "Raspberry Pi 5 Model B Rev 1.0");
    assert_eq!(
        (host.memory_mib, host.steal_percent, host.load),
        (Some(8064), Some(20.0), Some(0.25))
    );
    assert_eq!((host.governor, host.sockets["rmem_max"]), (None, 212_992));
    assert_eq!(Host::read_below(Path::new("/nonexistent")), Host::default());
}

#[test]
fn sizes_never_look_the_same() {
    let shown = [0, 64, 1000, 1024, 33_000, 502_000, 1_000_000, 4 << 20, 1025].map(row::size);
    assert_eq!(
        shown,
        [
            "0 B", "64 B", "1 KB", "1 KiB", "33 KB", "502 KB", "1 MB", "4 MiB", "1025 B"
        ]
    );
}

#[test]
fn writing_leaves_devices_and_links_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("file"), folder.path().join("link"));
    std::fs::write(&file, "old").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    super::write_whole(&link, b"new").unwrap();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
    let null = folder.path().join("null");
    std::os::unix::fs::symlink("/dev/null", &null).unwrap();
    super::write_whole(&null, b"gone").unwrap();
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
}
