//! Drives a schedule on a clock: sleep to the tick, stamp, run the job, stamp, record, tell the observer.
//!
//! Between wake-up and the end of the job there is nothing but stamps and the job. Always ends: by time, by cycle
//! count implied by it, or by the stop flag.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::record::{Cycle, Recorder};
use super::schedule::Schedule;
use crate::mono::{Clock, ns};

/// How long a loop runs and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// One cycle each.
    pub period: Duration,
    /// Left out of the statistics, at least one cycle.
    pub warmup: Duration,
    /// Measured after the warm-up.
    pub duration: Duration,
}

impl Timing {
    /// Cycles within the warm-up, at least one.
    #[must_use]
    pub fn warmup_cycles(&self) -> u64 {
        (ns(self.warmup) / ns(self.period).max(1)).max(1)
    }
}

/// What a cycle does.
pub trait Job {
    /// Does the work of cycle number `index`, in bounded time.
    fn run(&mut self, index: u64);
}

impl<F: FnMut(u64)> Job for F {
    fn run(&mut self, index: u64) {
        self(index);
    }
}

/// Looks at a cycle after it ended, outside the measured part.
pub trait Observer {
    /// `slot` is the place the cycle took among the worst, if it did.
    fn observe(&mut self, cycle: &Cycle, slot: Option<usize>);
}

/// Observes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn observe(&mut self, _: &Cycle, _: Option<usize>) {}
}

/// What a loop leaves behind.
#[derive(Clone, Debug)]
pub struct Run {
    /// The records.
    pub recorder: Recorder,
    /// The ticks.
    pub schedule: Schedule,
    /// Whether the stop flag ended it early.
    pub stopped: bool,
}

/// Runs the loop on the calling thread.
///
/// # Errors
/// Only when the histograms cannot be made, which the fixed bounds exclude.
pub fn run(
    clock: &mut impl Clock,
    timing: Timing,
    job: &mut impl Job,
    observer: &mut impl Observer,
    stop: &AtomicBool,
) -> Result<Run, hdrhistogram::CreationError> {
    let mut recorder = Recorder::new(ns(timing.period).max(1), timing.warmup_cycles())?;
    let start = clock.now() + timing.period;
    let end = start + timing.warmup + timing.duration;
    let mut schedule = Schedule::new(start, timing.period);
    while schedule.due() < end && !stop.load(Ordering::Relaxed) {
        let cycle = one_cycle(clock, &mut schedule, job);
        let slot = recorder.record(&cycle);
        observer.observe(&cycle, slot);
    }
    let stopped = schedule.due() < end;
    Ok(Run {
        recorder,
        schedule,
        stopped,
    })
}

fn one_cycle(clock: &mut impl Clock, schedule: &mut Schedule, job: &mut impl Job) -> Cycle {
    let (index, due) = (schedule.cycles() + schedule.skipped(), schedule.due());
    clock.sleep_until(due);
    let woke = clock.now();
    let cpu_before = clock.thread_cpu_ns();
    let began = clock.now();
    job.run(index);
    let ended = clock.now();
    let cpu_ns = clock.thread_cpu_ns().saturating_sub(cpu_before);
    let skipped = schedule.complete(ended);
    Cycle {
        index,
        due,
        woke,
        began,
        ended,
        cpu_ns,
        skipped,
    }
}
