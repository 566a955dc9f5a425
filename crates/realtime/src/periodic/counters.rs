//! The kernel's counters as named numbers: interrupts, softirqs, CPU times, pressure. Parsing only; texts come from
//! the caller, live or recorded.

use std::collections::BTreeMap;

use crate::cpu_list::CpuList;

/// Named counters.
pub type Counters = BTreeMap<String, u64>;

/// The rows of `/proc/interrupts` or `/proc/softirqs`, summed over the columns of `cpus` (all columns when empty).
/// The name is the label and, for interrupts, the description behind the columns.
#[must_use]
pub fn per_cpu_table(text: &str, cpus: &CpuList) -> Counters {
    let mut lines = text.lines();
    let columns: Vec<usize> = lines.next().map_or_else(Vec::new, column_cpus);
    lines.filter_map(|line| row(line, &columns, cpus)).collect()
}

fn column_cpus(header: &str) -> Vec<usize> {
    header
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("CPU")?.parse().ok())
        .collect()
}

fn row(line: &str, columns: &[usize], cpus: &CpuList) -> Option<(String, u64)> {
    let (label, rest) = line.split_once(':')?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let numbers: Vec<u64> = words
        .iter()
        .map_while(|word| word.parse().ok())
        .take(columns.len())
        .collect();
    let sum = columns
        .iter()
        .zip(&numbers)
        .filter(|(cpu, _)| cpus.is_empty() || cpus.contains(**cpu))
        .map(|(_, count)| count)
        .sum();
    let description = words[numbers.len()..].join(" ");
    let name = if description.is_empty() {
        label.trim().to_owned()
    } else {
        format!("{} ({description})", label.trim())
    };
    Some((name, sum))
}

/// Times of one row of `/proc/stat`, in ticks of `USER_HZ` (100 a second).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// Everything but idle and waiting for I/O.
    pub busy: u64,
    /// Taken by the hypervisor.
    pub steal: u64,
}

/// Times of the whole machine (`cpu` row) in the text of `/proc/stat`.
#[must_use]
pub fn machine_times(stat: &str) -> Option<CpuTimes> {
    let row = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = row
        .split_whitespace()
        .map_while(|word| word.parse().ok())
        .collect();
    let [user, nice, system, _idle, _iowait, irq, softirq, steal, ..] = ticks[..] else {
        return None;
    };
    Some(CpuTimes {
        busy: user + nice + system + irq + softirq,
        steal,
    })
}

/// A single-number row of `/proc/stat`, such as `ctxt`, `processes` or `btime`.
#[must_use]
pub fn stat_number(stat: &str, key: &str) -> Option<u64> {
    stat.lines().find_map(|line| {
        line.strip_prefix(key)?
            .strip_prefix(' ')?
            .split_whitespace()
            .next()?
            .parse()
            .ok()
    })
}

/// Microseconds in which at least one task waited, from a `/proc/pressure/*` text.
#[must_use]
pub fn pressure_us(text: &str) -> Option<u64> {
    let some = text.lines().find(|line| line.starts_with("some"))?;
    some.split_whitespace()
        .find_map(|word| word.strip_prefix("total=")?.parse().ok())
}

/// What grew from `before` to `after`, and by how much.
#[must_use]
pub fn growth(before: &Counters, after: &Counters) -> Counters {
    after
        .iter()
        .map(|(name, count)| {
            (
                name.clone(),
                count.saturating_sub(before.get(name).copied().unwrap_or(0)),
            )
        })
        .filter(|(_, grown)| *grown > 0)
        .collect()
}

/// One line of a ranking: more of it happened in a window than its rate over the whole run explains.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Suspect {
    /// The counter.
    pub name: String,
    /// How often it happened in the window.
    pub count: u64,
    /// How often its mean rate would let it happen.
    pub expected: f64,
}

/// Ranks the counters of a window by `(count − expected) / sqrt(expected + 1)`, the excess in standard deviations of
/// a Poisson count, and keeps the first `limit` that exceed their expectation.
#[must_use]
pub fn suspects(window: &Counters, whole: &Counters, share: f64, limit: usize) -> Vec<Suspect> {
    let mut found: Vec<(f64, Suspect)> = window
        .iter()
        .map(|(name, count)| {
            let expected = whole.get(name).copied().unwrap_or(0) as f64 * share;
            let excess = (*count as f64 - expected) / (expected + 1.0).sqrt();
            (
                excess,
                Suspect {
                    name: name.clone(),
                    count: *count,
                    expected,
                },
            )
        })
        .filter(|(excess, _)| *excess > 0.5)
        .collect();
    found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    found
        .into_iter()
        .take(limit)
        .map(|(_, suspect)| suspect)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERRUPTS: &str = "           CPU0       CPU1
 24:        100         20  IO-APIC   24-edge      virtio0
LOC:       5000       7000   Local timer interrupts
ERR:          3
";

    #[test]
    fn interrupt_rows_are_summed_over_the_cpus_asked_for() {
        let all = per_cpu_table(INTERRUPTS, &CpuList::default());
        assert_eq!(all["LOC (Local timer interrupts)"], 12_000);
        assert_eq!(all["24 (IO-APIC 24-edge virtio0)"], 120);
        assert_eq!(all["ERR"], 3);
        let second = per_cpu_table(INTERRUPTS, &"1".parse().unwrap());
        assert_eq!(second["LOC (Local timer interrupts)"], 7_000);
    }

    #[test]
    fn stat_and_pressure_are_read() {
        let stat = "cpu  10 1 5 100 7 2 3 4 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\nctxt 99\nprocesses 12\n";
        assert_eq!(machine_times(stat), Some(CpuTimes { busy: 21, steal: 4 }));
        assert_eq!(stat_number(stat, "ctxt"), Some(99));
        assert_eq!(stat_number(stat, "btime"), None);
        assert_eq!(
            pressure_us("some avg10=1.00 avg60=0 avg300=0 total=12345\nfull total=1\n"),
            Some(12_345)
        );
    }

    #[test]
    fn the_unusual_counter_ranks_before_the_merely_frequent_one() {
        let counters = |pairs: &[(&str, u64)]| {
            pairs
                .iter()
                .map(|(n, c)| ((*n).to_owned(), *c))
                .collect::<Counters>()
        };
        let whole = counters(&[("timer", 100_000), ("net", 40), ("disk", 10)]);
        let window = counters(&[("timer", 105), ("net", 30), ("disk", 0)]);
        let ranked = suspects(&window, &whole, 0.001, 5);
        assert_eq!(ranked[0].name, "net");
        assert!(!ranked.iter().any(|suspect| suspect.name == "disk"));
    }

    #[test]
    fn texts_that_are_no_tables_give_nothing() {
        assert!(per_cpu_table("", &CpuList::default()).is_empty());
        assert_eq!(machine_times("cpu  1 2\n"), None);
        assert_eq!(pressure_us("full total=1"), None);
    }
}
