//! The machine around a run: what it is, and what it did from start to end besides our loop. Reads the live machine;
//! the judgement of what was read is pure.

use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::counters::{CpuTimes, machine_times, pressure_us};
use crate::mono::{Clock as _, Mono, SystemClock, ns};
use crate::sys;

const TICK_NS: f64 = 1e7;
/// Foreign load above this share of the machine makes a run contaminated.
pub const FOREIGN_LIMIT: f64 = 0.10;
/// Time taken by the hypervisor above this share of the machine makes a run contaminated.
pub const STEAL_LIMIT: f64 = 0.01;

/// The machine, as far as it can be read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Kernel release and version string.
    pub kernel: String,
    /// Processor.
    pub cpu_model: String,
    /// CPUs online.
    pub cpus: usize,
    /// Frequency governor of the first CPU.
    pub governor: Option<String>,
    /// Frequency of the first CPU, kHz.
    pub frequency_khz: Option<u64>,
    /// Temperature of the first thermal zone, thousandths of a degree Celsius.
    pub temperature_millideg: Option<i64>,
    /// Clock source.
    pub clocksource: Option<String>,
    /// Boot parameters.
    pub command_line: String,
}

impl Host {
    /// Reads this machine.
    #[must_use]
    pub fn read() -> Self {
        let name = rustix::system::uname();
        let cpu0 = "/sys/devices/system/cpu/cpu0/cpufreq";
        Self {
            kernel: format!(
                "{} {}",
                name.release().to_string_lossy(),
                name.version().to_string_lossy()
            ),
            cpu_model: cpu_model(),
            cpus: cpus_online(),
            governor: text(&format!("{cpu0}/scaling_governor")),
            frequency_khz: number(&format!("{cpu0}/scaling_cur_freq")),
            temperature_millideg: number("/sys/class/thermal/thermal_zone0/temp"),
            clocksource: text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            command_line: text("/proc/cmdline").unwrap_or_default(),
        }
    }
}

/// CPUs online.
#[must_use]
pub fn cpus_online() -> usize {
    let list = text("/sys/devices/system/cpu/online").and_then(|list| list.parse().ok());
    list.map_or(1, |cpus: crate::CpuList| cpus.len()).max(1)
}

fn cpu_model() -> String {
    let info = text("/proc/cpuinfo").unwrap_or_default();
    let keys = ["model name", "Model", "Hardware"];
    let found = keys.iter().find_map(|key| {
        info.lines()
            .find(|line| line.starts_with(key))?
            .split_once(':')
    });
    found.map_or_else(
        || "unknown".to_owned(),
        |(_, model)| model.trim().to_owned(),
    )
}

/// Counters of the whole machine at one moment.
#[derive(Clone, Debug, Default)]
pub struct Moment {
    at: Mono,
    times: Option<CpuTimes>,
    own_cpu_ns: u64,
    children_cpu_ns: u64,
    pressure_us: Option<u64>,
    cgroup_throttled: Option<u64>,
    thermal_throttled: Option<u64>,
}

impl Moment {
    /// Reads the counters now.
    #[must_use]
    pub fn now() -> Self {
        Self {
            at: SystemClock.now(),
            times: machine_times(&text("/proc/stat").unwrap_or_default()),
            own_cpu_ns: process_cpu_ns(),
            children_cpu_ns: sys::children_usage().cpu_ns,
            pressure_us: pressure_us(&text("/proc/pressure/cpu").unwrap_or_default()),
            cgroup_throttled: cgroup_throttled(),
            thermal_throttled: thermal_throttled(),
        }
    }

    /// What happened until `later`.
    #[must_use]
    pub fn until(&self, later: &Self) -> Interference {
        let wall_ns = later.at.ns_since(self.at).max(1) as f64;
        let machine_ns = wall_ns * cpus_online() as f64;
        let grown = |pick: fn(&CpuTimes) -> u64| {
            let (before, after) = (self.times.as_ref()?, later.times.as_ref()?);
            Some(pick(after).saturating_sub(pick(before)) as f64 * TICK_NS)
        };
        let ours = (later.own_cpu_ns - self.own_cpu_ns)
            + later.children_cpu_ns.saturating_sub(self.children_cpu_ns);
        Interference {
            foreign_share: grown(|times| times.busy)
                .map(|busy| ((busy - ours as f64) / machine_ns).max(0.0)),
            steal_share: grown(|times| times.steal).map(|steal| steal / machine_ns),
            pressure_share: difference(self.pressure_us, later.pressure_us)
                .map(|us| us as f64 * 1e3 / wall_ns),
            cgroup_throttled: difference(self.cgroup_throttled, later.cgroup_throttled),
            thermal_throttled: difference(self.thermal_throttled, later.thermal_throttled),
        }
    }
}

fn difference(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    Some(after?.saturating_sub(before?))
}

/// What else the machine did during a run; absent = cannot be read here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interference {
    /// CPU time of neither this process nor its load, as a share of the whole machine.
    pub foreign_share: Option<f64>,
    /// CPU time the hypervisor took, as a share of the whole machine.
    pub steal_share: Option<f64>,
    /// Share of the time in which some task waited for a CPU, whoever's.
    pub pressure_share: Option<f64>,
    /// Periods in which the cgroup's quota ran out.
    pub cgroup_throttled: Option<u64>,
    /// Thermal throttling events.
    pub thermal_throttled: Option<u64>,
}

impl Interference {
    /// Why the run cannot be trusted as it stands; empty when it can.
    #[must_use]
    pub fn contamination(&self) -> Vec<String> {
        let foreign = self.foreign_share.filter(|share| *share > FOREIGN_LIMIT);
        let steal = self.steal_share.filter(|share| *share > STEAL_LIMIT);
        let mut reasons = Vec::new();
        reasons.extend(
            foreign.map(|share| format!("foreign load took {:.0} % of the machine", share * 100.0)),
        );
        reasons.extend(
            steal.map(|share| format!("the hypervisor took {:.1} % of the machine", share * 100.0)),
        );
        reasons
    }

    /// Why the machine slowed us down on purpose, if it did.
    #[must_use]
    pub fn throttling(&self) -> Option<String> {
        let cgroup = self
            .cgroup_throttled
            .filter(|count| *count > 0)
            .map(|count| format!("the cgroup's CPU quota ran out {count} times"));
        let thermal = self
            .thermal_throttled
            .filter(|count| *count > 0)
            .map(|count| format!("{count} thermal throttling events"));
        cgroup.or(thermal)
    }
}

fn process_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    ns(Duration::new(
        time.tv_sec.unsigned_abs(),
        time.tv_nsec as u32,
    ))
}

fn cgroup_throttled() -> Option<u64> {
    let groups = text("/proc/self/cgroup")?;
    let unified = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let stat = text(&format!("/sys/fs/cgroup{unified}/cpu.stat"))?;
    super::counters::stat_number(&stat, "nr_throttled")
}

fn thermal_throttled() -> Option<u64> {
    let paths = (0..cpus_online()).map(|cpu| {
        format!("/sys/devices/system/cpu/cpu{cpu}/thermal_throttle/core_throttle_count")
    });
    let counts: Vec<u64> = paths.filter_map(|path| number(&path)).collect();
    (!counts.is_empty()).then(|| counts.iter().sum())
}

fn number<T: std::str::FromStr>(path: &str) -> Option<T> {
    text(path)?.parse().ok()
}

fn text(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_load_and_steal_contaminate_and_a_quota_throttles() {
        let clean = Interference {
            foreign_share: Some(0.02),
            steal_share: Some(0.001),
            ..Interference::default()
        };
        assert!(clean.contamination().is_empty() && clean.throttling().is_none());
        let dirty = Interference {
            foreign_share: Some(0.43),
            steal_share: Some(0.05),
            cgroup_throttled: Some(7),
            ..Interference::default()
        };
        assert_eq!(
            dirty.contamination(),
            [
                "foreign load took 43 % of the machine",
                "the hypervisor took 5.0 % of the machine"
            ]
        );
        assert!(dirty.throttling().unwrap().contains("7 times"));
    }

    #[test]
    fn foreign_share_is_what_neither_we_nor_our_load_used() {
        let cpus = cpus_online() as u64;
        let before = Moment {
            times: Some(CpuTimes::default()),
            ..Moment::default()
        };
        let after = Moment {
            at: Mono(10_000_000_000),
            times: Some(CpuTimes {
                busy: 500 * cpus,
                steal: 0,
            }),
            own_cpu_ns: 1_000_000_000 * cpus,
            children_cpu_ns: 3_000_000_000 * cpus,
            ..Moment::default()
        };
        let share = before.until(&after).foreign_share.unwrap();
        assert!((share - 0.1).abs() < 1e-9, "{share}");
    }

    #[test]
    fn this_machine_can_be_described() {
        let host = Host::read();
        assert!(host.cpus >= 1 && !host.kernel.is_empty());
    }
}
