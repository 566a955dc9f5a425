//! What is kept of each cycle: histograms in nanoseconds and the worst cycles. Recording allocates nothing and
//! takes no lock; the cycles of the warm-up are counted and otherwise left out.

use hdrhistogram::Histogram;

use crate::mono::Mono;

/// Longest time kept apart, nanoseconds; longer ones count as this.
const TOP_NS: u64 = 60_000_000_000;
/// Width of a bucket of the plain histogram, nanoseconds.
pub const BUCKET_NS: u64 = 1_000;
const BUCKETS: usize = 20_000;
/// How many of the worst cycles are kept.
pub const WORST: usize = 10;

/// The stamps of one cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cycle {
    /// Number of the cycle from the start of the loop, warm-up included.
    pub index: u64,
    /// When it was due.
    pub due: Mono,
    /// When the thread ran again.
    pub woke: Mono,
    /// When the job began.
    pub began: Mono,
    /// When the job ended.
    pub ended: Mono,
    /// CPU time of the thread within the job, nanoseconds.
    pub cpu_ns: u64,
    /// Ticks skipped because of this cycle.
    pub skipped: u64,
}

impl Cycle {
    /// From the tick to the thread running, nanoseconds.
    #[must_use]
    pub fn wake_ns(&self) -> u64 {
        self.woke.ns_since(self.due)
    }

    /// From the tick to the end of the job, nanoseconds.
    #[must_use]
    pub fn response_ns(&self) -> u64 {
        self.ended.ns_since(self.due)
    }

    /// Duration of the job by the wall clock, nanoseconds.
    #[must_use]
    pub fn exec_ns(&self) -> u64 {
        self.ended.ns_since(self.began)
    }
}

/// Everything recorded of one loop.
#[derive(Clone, Debug)]
pub struct Recorder {
    period_ns: u64,
    warmup: u64,
    /// Cycles left out as warm-up.
    pub warmed_up: u64,
    /// Cycles counted.
    pub cycles: u64,
    /// Counted cycles whose job ended after the next tick.
    pub misses: u64,
    /// Ticks skipped by counted cycles.
    pub skipped: u64,
    /// Wake-up latency.
    pub wake: Histogram<u64>,
    /// Execution time by the wall clock.
    pub exec: Histogram<u64>,
    /// CPU time within the job.
    pub cpu: Histogram<u64>,
    /// Response time.
    pub response: Histogram<u64>,
    /// Wake-up latency in buckets of one microsecond.
    pub buckets: Vec<u64>,
    /// Wake-ups beyond the last bucket.
    pub overflow: u64,
    /// Time between the first and the last counted tick, nanoseconds.
    pub span_ns: u64,
    first_due: Option<Mono>,
    worst: Vec<Cycle>,
}

/// A histogram that covers 1 ns to 60 s with three digits; recording never allocates.
///
/// # Errors
/// Never with these bounds; the type is the library's.
pub fn histogram() -> Result<Histogram<u64>, hdrhistogram::CreationError> {
    Histogram::new_with_bounds(1, TOP_NS, 3)
}

impl Recorder {
    /// Space for one loop; the first `warmup` cycles, and always the very first, are left out.
    ///
    /// # Errors
    /// Never with the fixed bounds; the type is the library's.
    pub fn new(period_ns: u64, warmup: u64) -> Result<Self, hdrhistogram::CreationError> {
        Ok(Self {
            period_ns,
            warmup: warmup.max(1),
            warmed_up: 0,
            cycles: 0,
            misses: 0,
            skipped: 0,
            wake: histogram()?,
            exec: histogram()?,
            cpu: histogram()?,
            response: histogram()?,
            buckets: vec![0; BUCKETS],
            overflow: 0,
            span_ns: 0,
            first_due: None,
            worst: Vec::with_capacity(WORST),
        })
    }

    /// Takes one cycle. Returns the slot of the worst list it took, when its response time is among the worst so
    /// far, so that an observer can note what else the machine did.
    pub fn record(&mut self, cycle: &Cycle) -> Option<usize> {
        if self.warmed_up < self.warmup {
            self.warmed_up += 1;
            return None;
        }
        self.count(cycle);
        self.wake.saturating_record(cycle.wake_ns());
        self.exec.saturating_record(cycle.exec_ns());
        self.cpu.saturating_record(cycle.cpu_ns);
        self.response.saturating_record(cycle.response_ns());
        match self.buckets.get_mut((cycle.wake_ns() / BUCKET_NS) as usize) {
            Some(bucket) => *bucket += 1,
            None => self.overflow += 1,
        }
        self.rank(cycle)
    }

    fn count(&mut self, cycle: &Cycle) {
        self.cycles += 1;
        self.skipped += cycle.skipped;
        self.misses += u64::from(cycle.response_ns() > self.period_ns);
        let first = *self.first_due.get_or_insert(cycle.due);
        self.span_ns = cycle.due.ns_since(first);
    }

    fn rank(&mut self, cycle: &Cycle) -> Option<usize> {
        if self.worst.len() < WORST {
            self.worst.push(*cycle);
            return Some(self.worst.len() - 1);
        }
        let (slot, mildest) = self
            .worst
            .iter()
            .enumerate()
            .min_by_key(|(_, kept)| kept.response_ns())?;
        if cycle.response_ns() <= mildest.response_ns() {
            return None;
        }
        self.worst[slot] = *cycle;
        Some(slot)
    }

    /// The worst cycles by response time with their slots, worst first.
    #[must_use]
    pub fn worst(&self) -> Vec<(usize, Cycle)> {
        let mut worst: Vec<_> = self.worst.iter().copied().enumerate().collect();
        worst.sort_by_key(|(_, cycle)| std::cmp::Reverse(cycle.response_ns()));
        worst
    }

    /// The period, nanoseconds.
    #[must_use]
    pub fn period_ns(&self) -> u64 {
        self.period_ns
    }
}
