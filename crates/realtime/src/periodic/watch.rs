//! Notes what the machine did around the worst cycles. Raw counter texts are read into fixed buffers after a cycle
//! ended and parsed only after the run; how often is chosen so that it costs at most 2 % of the time.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use serde::{Deserialize, Serialize};

use super::counters::{
    Counters, Suspect, growth, per_cpu_table, pressure_us, stat_number, suspects,
};
use super::record::{Cycle, Recorder, WORST};
use super::runner::Observer;
use crate::cpu_list::CpuList;
use crate::mono::{Clock as _, Mono, SystemClock};
use crate::sys::{Usage, thread_usage};

const FILES: [&str; 4] = [
    "/proc/interrupts",
    "/proc/softirqs",
    "/proc/stat",
    "/proc/pressure/cpu",
];
/// Sampling may cost this share of the time: one part in this many.
const BUDGET: u64 = 50;
const SUSPECTS: usize = 5;

/// The counters at one moment, unparsed.
#[derive(Clone, Debug)]
struct Sample {
    at: Mono,
    usage: Usage,
    texts: [Vec<u8>; FILES.len()],
    lengths: [usize; FILES.len()],
}

/// Watches one loop.
#[derive(Debug)]
pub struct Watch {
    files: [Option<File>; FILES.len()],
    first: Sample,
    before: Sample,
    now: Sample,
    kept: Vec<(Sample, Sample)>,
    stride: u64,
    countdown: u64,
    cost_ns: u64,
    period_ns: u64,
}

/// Why one of the worst cycles may have been bad.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cause {
    /// Number of the cycle.
    pub cycle: u64,
    /// Its wake-up latency, microseconds.
    pub wake_us: f64,
    /// Its execution time by the wall clock, microseconds.
    pub exec_us: f64,
    /// CPU time within the job, microseconds; less than the wall time means the core was taken away.
    pub cpu_us: f64,
    /// Length of the window that the counts cover, microseconds.
    pub window_us: f64,
    /// What happened more often than usual, most unusual first.
    pub suspects: Vec<Suspect>,
}

impl Watch {
    /// Opens the counters, makes the buffers and measures what a sample costs.
    #[must_use]
    pub fn new(period_ns: u64) -> Self {
        let files = FILES.map(|path| File::open(path).ok());
        let first = Sample::sized_for(&files);
        let slots = (0..WORST).map(|_| (first.clone(), first.clone())).collect();
        let mut watch = Self {
            files,
            before: first.clone(),
            now: first.clone(),
            first,
            kept: slots,
            stride: 1,
            countdown: 0,
            cost_ns: 0,
            period_ns,
        };
        watch.calibrate();
        watch
    }

    fn calibrate(&mut self) {
        let start = SystemClock.now();
        self.now.fill(&self.files);
        self.first.copy_from(&self.now);
        self.before.copy_from(&self.now);
        self.cost_ns = SystemClock.now().ns_since(start);
        self.stride = (self.cost_ns * BUDGET).div_ceil(self.period_ns).max(1);
    }

    /// Cost of one sample, nanoseconds, and after how many cycles one is taken.
    #[must_use]
    pub fn effort(&self) -> (u64, u64) {
        (self.cost_ns, self.stride)
    }

    /// The counters' growth over the whole run so far, for the CPUs given.
    #[must_use]
    pub fn whole(&self, cpus: &CpuList) -> Counters {
        growth(&self.first.counters(cpus), &self.before.counters(cpus))
    }

    /// The worst cycles with what happened around them on `cpus` (all CPUs when empty).
    #[must_use]
    pub fn causes(&self, recorder: &Recorder, cpus: &CpuList) -> Vec<Cause> {
        let whole = self.whole(cpus);
        let span = self.before.at.ns_since(self.first.at).max(1) as f64;
        recorder
            .worst()
            .iter()
            .filter_map(|(slot, cycle)| self.cause(*slot, cycle, cpus, &whole, span))
            .collect()
    }

    fn cause(
        &self,
        slot: usize,
        cycle: &Cycle,
        cpus: &CpuList,
        whole: &Counters,
        span: f64,
    ) -> Option<Cause> {
        let (before, after) = self.kept.get(slot)?;
        let window_ns = after.at.ns_since(before.at);
        let window = growth(&before.counters(cpus), &after.counters(cpus));
        Some(Cause {
            cycle: cycle.index,
            wake_us: cycle.wake_ns() as f64 / 1e3,
            exec_us: cycle.exec_ns() as f64 / 1e3,
            cpu_us: cycle.cpu_ns as f64 / 1e3,
            window_us: window_ns as f64 / 1e3,
            suspects: suspects(&window, whole, window_ns as f64 / span, SUSPECTS),
        })
    }
}

impl Observer for Watch {
    fn observe(&mut self, _: &Cycle, slot: Option<usize>) {
        let due = self.countdown == 0;
        self.countdown = if due {
            self.stride - 1
        } else {
            self.countdown - 1
        };
        if !due && slot.is_none() {
            return;
        }
        self.now.fill(&self.files);
        if let Some((before, after)) = slot.and_then(|slot| self.kept.get_mut(slot)) {
            before.copy_from(&self.before);
            after.copy_from(&self.now);
        }
        std::mem::swap(&mut self.before, &mut self.now);
    }
}

impl Sample {
    /// Buffers with room for twice what the files hold now.
    fn sized_for(files: &[Option<File>; FILES.len()]) -> Self {
        let size = |file: &Option<File>| file.as_ref().map_or(0, |file| 2 * length_of(file) + 4096);
        Self {
            at: Mono(0),
            usage: Usage::default(),
            texts: std::array::from_fn(|index| vec![0; size(&files[index])]),
            lengths: [0; FILES.len()],
        }
    }

    fn fill(&mut self, files: &[Option<File>; FILES.len()]) {
        self.at = SystemClock.now();
        self.usage = thread_usage();
        for (index, file) in files.iter().enumerate() {
            self.lengths[index] = file
                .as_ref()
                .map_or(0, |file| read_all(file, &mut self.texts[index]));
        }
    }

    fn copy_from(&mut self, other: &Self) {
        self.at = other.at;
        self.usage = other.usage;
        self.lengths = other.lengths;
        for (index, text) in self.texts.iter_mut().enumerate() {
            let length = other.lengths[index];
            text[..length].copy_from_slice(&other.texts[index][..length]);
        }
    }

    fn text(&self, index: usize) -> String {
        String::from_utf8_lossy(&self.texts[index][..self.lengths[index]]).into_owned()
    }

    fn counters(&self, cpus: &CpuList) -> Counters {
        let mut counters = prefixed("irq ", per_cpu_table(&self.text(0), cpus));
        counters.extend(prefixed("softirq ", per_cpu_table(&self.text(1), cpus)));
        let stat = self.text(2);
        let numbers = [
            ("context switches (machine)", stat_number(&stat, "ctxt")),
            ("new processes", stat_number(&stat, "processes")),
            (
                "ticks stolen by the hypervisor",
                super::counters::machine_times(&stat).map(|times| times.steal),
            ),
            (
                "cpu pressure, ms",
                pressure_us(&self.text(3)).map(|us| us / 1000),
            ),
            (
                "involuntary switches of the loop",
                Some(self.usage.involuntary_switches),
            ),
            ("minor faults of the loop", Some(self.usage.minor_faults)),
            ("major faults of the loop", Some(self.usage.major_faults)),
        ];
        counters.extend(
            numbers
                .into_iter()
                .filter_map(|(name, count)| Some((name.to_owned(), count?))),
        );
        counters
    }
}

fn prefixed(prefix: &str, counters: Counters) -> Counters {
    counters
        .into_iter()
        .map(|(name, count)| (format!("{prefix}{name}"), count))
        .collect()
}

fn length_of(file: &File) -> usize {
    let mut total = 0;
    let mut page = [0u8; 4096];
    while let Ok(read @ 1..) = file.read_at(&mut page, total as u64) {
        total += read;
    }
    total
}

/// Reads the file from its start into the buffer; a longer file is cut at the buffer's end.
fn read_all(file: &File, buffer: &mut [u8]) -> usize {
    let mut total = 0;
    while total < buffer.len() {
        match file.read_at(&mut buffer[total..], total as u64) {
            Ok(read @ 1..) => total += read,
            Ok(0) | Err(_) => break,
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_cycle_is_kept_with_the_window_around_it() {
        let mut watch = Watch::new(1_000_000_000);
        let mut recorder = Recorder::new(1_000_000_000, 1).unwrap();
        for index in 0..4 {
            let ended = Mono(index * 1_000_000_000 + 5_000 * index);
            let due = Mono(index * 1_000_000_000);
            let cycle = Cycle {
                index,
                due,
                woke: ended,
                began: ended,
                ended,
                ..Cycle::default()
            };
            let slot = recorder.record(&cycle);
            watch.observe(&cycle, slot);
        }
        let causes = watch.causes(&recorder, &CpuList::default());
        assert_eq!(
            causes.iter().map(|cause| cause.cycle).collect::<Vec<_>>(),
            [3, 2, 1]
        );
        assert!(causes.iter().all(|cause| cause.window_us > 0.0));
    }

    #[test]
    fn looking_at_the_counters_allocates_nothing() {
        let mut watch = Watch::new(1_000_000_000);
        let looks = allocation_counter::measure(|| {
            (0..50).for_each(|slot| watch.observe(&Cycle::default(), Some(slot % WORST)));
        });
        assert_eq!(looks.count_total, 0);
    }

    #[test]
    fn counters_of_this_machine_can_be_read() {
        let files = FILES.map(|path| File::open(path).ok());
        let mut sample = Sample::sized_for(&files);
        sample.fill(&files);
        let counters = sample.counters(&CpuList::default());
        assert!(counters["context switches (machine)"] > 0, "{counters:?}");
    }
}
