//! The machine a run was made on, as far as it bears on latency.
//!
//! [`Host::read`] reads `/proc` and `/sys`; what cannot be read is absent, never guessed.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Facts of a machine at the time of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// Name.
    pub name: String,
    /// Kernel release and build.
    pub kernel: String,
    /// Whether the kernel is fully preemptible (`PREEMPT_RT`).
    pub realtime: bool,
    /// CPU model.
    pub cpu: String,
    /// CPUs this process may run on.
    pub cores: usize,
    /// Frequency governor of the first CPU.
    pub governor: Option<String>,
    /// Idle states of the first CPU, shallowest first; deep ones make slow rates look slow.
    pub idle_states: Vec<String>,
    /// Memory, MiB.
    pub memory_mib: Option<u64>,
    /// CPU time since boot that a hypervisor gave to others, percent.
    pub steal_percent: Option<f64>,
    /// Load average of the last minute.
    pub load: Option<f64>,
    /// Socket buffers in bytes: `rmem_default`, `rmem_max`, `wmem_default`, `wmem_max`.
    pub sockets: BTreeMap<String, u64>,
    /// When the file was begun, seconds since 1970. A label; no duration is computed from it.
    pub unix_time_s: u64,
    /// Versions of whatever took part: this package, ROS, the middlewares.
    pub versions: BTreeMap<String, String>,
}

impl Host {
    /// Reads this machine.
    #[must_use]
    pub fn read() -> Self {
        let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let mut host = Self::read_below(Path::new("/"));
        host.cores = std::thread::available_parallelism().map_or(0, usize::from);
        host.unix_time_s = since_1970.map_or(0, |time| time.as_secs());
        host.versions = BTreeMap::from([(
            "crazyflie_openlink".to_owned(),
            env!("CARGO_PKG_VERSION").to_owned(),
        )]);
        host
    }

    /// Notes the version of something that takes part.
    #[must_use]
    pub fn with_version(mut self, what: &str, version: &str) -> Self {
        self.versions.insert(what.to_owned(), version.to_owned());
        self
    }

    pub(super) fn is_same_machine(&self, other: &Self) -> bool {
        (&self.name, &self.kernel, &self.cpu) == (&other.name, &other.kernel, &other.cpu)
    }

    pub(super) fn read_below(root: &Path) -> Self {
        let read = |path: &str| std::fs::read_to_string(root.join(path)).ok();
        let word = |path: &str| read(path).map(|text| text.trim().to_owned());
        let release = word("proc/sys/kernel/osrelease").unwrap_or_default();
        let build = word("proc/sys/kernel/version").unwrap_or_default();
        let sockets = ["rmem_default", "rmem_max", "wmem_default", "wmem_max"];
        Self {
            name: word("proc/sys/kernel/hostname").unwrap_or_default(),
            realtime: build.contains("PREEMPT_RT")
                || word("sys/kernel/realtime").as_deref() == Some("1"),
            kernel: format!("{release} {build}").trim().to_owned(),
            cpu: cpu_model(&read("proc/cpuinfo").unwrap_or_default()),
            governor: word("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            idle_states: (0..)
                .map_while(|state| {
                    word(&format!(
                        "sys/devices/system/cpu/cpu0/cpuidle/state{state}/name"
                    ))
                })
                .collect(),
            memory_mib: read("proc/meminfo").and_then(|text| memory_mib(&text)),
            steal_percent: read("proc/stat").and_then(|text| steal_percent(&text)),
            load: read("proc/loadavg").and_then(|text| text.split(' ').next()?.parse().ok()),
            sockets: sockets
                .into_iter()
                .filter_map(|key| {
                    let value = word(&format!("proc/sys/net/core/{key}"))?;
                    Some((key.to_owned(), value.parse().ok()?))
                })
                .collect(),
            ..Self::default()
        }
    }
}

/// x86 says `model name`, a Raspberry Pi says `Model`.
fn cpu_model(cpuinfo: &str) -> String {
    let value = |key: &str| {
        cpuinfo.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == key).then(|| value.trim().to_owned())
        })
    };
    value("model name")
        .or_else(|| value("Model"))
        .or_else(|| value("Hardware"))
        .unwrap_or_default()
}

fn memory_mib(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024)
}

/// Fields of the first line of `/proc/stat`: user nice system idle iowait irq softirq steal; see proc(5).
fn steal_percent(stat: &str) -> Option<f64> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<f64> = line
        .split_whitespace()
        .take(8)
        .map_while(|tick| tick.parse().ok())
        .collect();
    let total: f64 = ticks.iter().sum();
    let steal = ticks.get(7)?;
    (total > 0.0).then(|| (steal / total * 1e4).round() / 1e2)
}
