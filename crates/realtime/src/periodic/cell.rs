//! One cell of the matrix policy × load × pin: load up, thread in place, loop run, load reaped, verdict given.
//!
//! A refusal makes a cell's verdict and the matrix goes on; nothing here falls back to another policy.

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::job::{Compute, Exchange, Exchanges, Io};
use super::load::{Load, LoadError, LoadProfile, LoadRecord};
use super::record::Recorder;
use super::runner::{Run, Timing, run};
use super::spin::RtLimit;
use super::summary::{Summary, ecdf, upper_bound_95};
use super::surroundings::{Interference, Moment, cpus_online};
use super::verdict::{Verdict, judge};
use super::watch::{Cause, Watch};
use crate::cpu_list::CpuList;
use crate::mono::{SystemClock, ns};
use crate::sys::{Usage, thread_usage};
use crate::thread::policy::Policy;
use crate::thread::process::prefault_stack;
use crate::thread::refusal::Refusal;
use crate::thread::settings::{Applied, Effective, ThreadPolicy};

const ECDF_POINTS: usize = 200;

/// What one cell measures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Policy of the loop's thread.
    pub policy: Policy,
    /// Background load.
    pub load: LoadProfile,
    /// CPUs the loop is confined to.
    pub pin: Option<CpuList>,
}

/// What all cells share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Period, warm-up, duration.
    pub timing: Timing,
    /// Working set of the computation, bytes.
    pub state_bytes: usize,
    /// Exchange in the loop in place of the computation.
    pub io: Io,
    /// Timer slack of the time-sharing rows, nanoseconds; none = the kernel's default.
    pub timer_slack_ns: Option<u64>,
    /// Seed handed to the load.
    pub seed: u64,
}

/// The figures of a measured cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Cycles counted.
    pub cycles: u64,
    /// Cycles left out as warm-up.
    pub warmup: u64,
    /// Cycles whose job ended after the next tick.
    pub misses: u64,
    /// Ticks skipped.
    pub skipped: u64,
    /// Distance of the last tick from a whole number of periods after the first, nanoseconds.
    pub drift_ns: i64,
    /// Upper end of the 95 % interval of the miss probability per cycle.
    pub miss_bound_95: Option<f64>,
    /// Wake-up latency, microseconds.
    pub wake_us: Summary,
    /// Execution time by the wall clock, microseconds.
    pub exec_us: Summary,
    /// CPU time within the job, microseconds.
    pub cpu_us: Summary,
    /// Tick to end of job, microseconds.
    pub response_us: Summary,
    /// Largest wake-up latency as a share of the period, percent.
    pub worst_share_percent: Option<f64>,
    /// Minor page faults of the loop's thread.
    pub minor_faults: u64,
    /// Major page faults of the loop's thread.
    pub major_faults: u64,
    /// Voluntary context switches of the loop's thread.
    pub voluntary_switches: u64,
    /// Involuntary context switches of the loop's thread.
    pub involuntary_switches: u64,
    /// Exchanges, when there is I/O in the loop.
    pub exchanges: Option<Exchanges>,
    /// Interrupts and softirqs on the loop's CPUs during the run, counts by name.
    pub interrupts: std::collections::BTreeMap<String, u64>,
    /// The worst cycles and what happened around them.
    pub causes: Vec<Cause>,
    /// Cost of one look at the counters, microseconds, and after how many cycles one is taken.
    pub watch_cost_us: f64,
    /// See `watch_cost_us`.
    pub watch_every: u64,
    /// Wake-up latencies by microsecond: `[microsecond, count]`, empty ones left out.
    pub histogram: Vec<(u64, u64)>,
    /// Wake-ups beyond the histogram.
    pub overflow: u64,
    /// Cumulative distribution of the wake-up latency: `[microseconds, share]`.
    pub ecdf: Vec<(f64, f64)>,
}

/// One row of the result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// Policy asked for.
    pub policy: Policy,
    /// Background load.
    pub load: LoadProfile,
    /// CPUs asked for.
    pub pin: Option<CpuList>,
    /// I/O in the loop.
    pub io: String,
    /// What the figures are worth.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// What the kernel said the thread ran under.
    pub effective: Option<Effective>,
    /// The load as it was started.
    pub load_run: Option<LoadRecord>,
    /// What else the machine did.
    pub interference: Option<Interference>,
    /// The figures; none when refused.
    pub figures: Option<Figures>,
    /// Whether the run was ended before its time.
    pub stopped: bool,
}

/// A cell that could not be run at all.
#[derive(Debug, thiserror::Error)]
pub enum CellError {
    /// The load.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The load ended during the run.
    #[error("load {0} ended before the measurement did; the machine may be out of memory")]
    LoadDied(&'static str),
    /// A device, a thread or the kernel's answer about it.
    #[error("the loop cannot be set up: {0}")]
    Io(#[from] std::io::Error),
    /// The loop's thread panicked.
    #[error("the loop's thread ended in a panic")]
    Panic,
    /// The histograms.
    #[error("histogram: {0}")]
    Histogram(#[from] hdrhistogram::CreationError),
}

/// Everything the loop's thread hands back.
struct Measured {
    applied: Applied,
    run: Option<(Run, Watch, Usage, Option<Exchanges>)>,
}

impl Cell {
    fn thread_policy(&self, plan: &Plan) -> ThreadPolicy {
        ThreadPolicy {
            policy: Some(self.policy),
            cpus: self.pin.clone(),
            timer_slack_ns: plan.timer_slack_ns.filter(|_| !self.policy.is_real_time()),
            busy_poll_us: None,
        }
    }

    /// Asks the kernel for this cell's policy and pin in a thread of its own, and measures nothing.
    ///
    /// # Errors
    /// When the kernel cannot be asked.
    pub fn try_out(&self, plan: &Plan) -> Result<Vec<Refusal>, CellError> {
        let wish = self.thread_policy(plan);
        let applied = thread::spawn(move || wish.apply())
            .join()
            .map_err(|_| CellError::Panic)??;
        Ok(applied.refusals)
    }

    /// Measures this cell. Takes the plan's warm-up and duration, and a second for the load.
    ///
    /// # Errors
    /// When the load, a device or the thread fails; a refused policy is a result, not an error.
    pub fn measure(&self, plan: &Plan, stop: &AtomicBool) -> Result<CellResult, CellError> {
        let before = Moment::now();
        let length = plan.timing.warmup + plan.timing.duration;
        let mut load = Load::start(self.load, cpus_online(), length, plan.seed)?;
        let measured = self.in_thread(plan, stop)?;
        if !load.is_alive() {
            return Err(CellError::LoadDied(self.load.name()));
        }
        let record = load.record().cloned();
        load.finish()?;
        let interference = before.until(&Moment::now());
        Ok(self.result(plan, measured, record, interference))
    }

    fn in_thread(&self, plan: &Plan, stop: &AtomicBool) -> Result<Measured, CellError> {
        let builder = thread::Builder::new().name("loop".to_owned());
        thread::scope(|scope| {
            let handle = builder.spawn_scoped(scope, || self.measure_here(plan, stop))?;
            handle.join().map_err(|_| CellError::Panic)?
        })
    }

    /// Runs on the loop's own thread. The devices are opened first: a DEADLINE thread may not spawn their peers.
    fn measure_here(&self, plan: &Plan, stop: &AtomicBool) -> Result<Measured, CellError> {
        let mut exchange = Exchange::open(&plan.io, plan.timing.period / 2)?;
        let mut compute = Compute::new(plan.state_bytes);
        let mut watch = Watch::new(ns(plan.timing.period));
        prefault_stack();
        let applied = self.thread_policy(plan).apply()?;
        if !applied.refusals.is_empty() {
            return Ok(Measured { applied, run: None });
        }
        let before = thread_usage();
        let outcome = match &mut exchange {
            Some(exchange) => run(&mut SystemClock, plan.timing, exchange, &mut watch, stop),
            None => run(
                &mut SystemClock,
                plan.timing,
                &mut compute,
                &mut watch,
                stop,
            ),
        };
        let usage = used(before, thread_usage());
        let exchanges = exchange.map(|exchange| exchange.counts);
        Ok(Measured {
            applied,
            run: Some((outcome?, watch, usage, exchanges)),
        })
    }

    fn result(
        &self,
        plan: &Plan,
        measured: Measured,
        load_run: Option<LoadRecord>,
        interference: Interference,
    ) -> CellResult {
        let Measured { applied, run } = measured;
        let verdict = match &run {
            None => Verdict::Refused {
                refusals: applied.refusals,
            },
            Some((run, ..)) => judge(
                &run.recorder,
                self.policy,
                &interference,
                RtLimit::of_this_machine(),
            ),
        };
        let stopped = run.as_ref().is_some_and(|(run, ..)| run.stopped);
        CellResult {
            policy: self.policy,
            load: self.load,
            pin: self.pin.clone(),
            io: plan.io.name(),
            verdict,
            figures: run.map(|(run, watch, usage, exchanges)| {
                figures(&run, &watch, usage, exchanges, &applied.effective.cpus)
            }),
            effective: Some(applied.effective),
            load_run,
            interference: Some(interference),
            stopped,
        }
    }
}

fn used(before: Usage, after: Usage) -> Usage {
    Usage {
        cpu_ns: after.cpu_ns - before.cpu_ns,
        minor_faults: after.minor_faults - before.minor_faults,
        major_faults: after.major_faults - before.major_faults,
        voluntary_switches: after.voluntary_switches - before.voluntary_switches,
        involuntary_switches: after.involuntary_switches - before.involuntary_switches,
    }
}

fn figures(
    run: &Run,
    watch: &Watch,
    usage: Usage,
    exchanges: Option<Exchanges>,
    cpus: &CpuList,
) -> Figures {
    let recorder = &run.recorder;
    let (cost_ns, watch_every) = watch.effort();
    let wake_us = Summary::of(&recorder.wake);
    let period_us = recorder.period_ns() as f64 / 1e3;
    Figures {
        cycles: recorder.cycles,
        warmup: recorder.warmed_up,
        misses: recorder.misses,
        skipped: recorder.skipped,
        drift_ns: run.schedule.drift_ns(),
        miss_bound_95: upper_bound_95(recorder.misses, recorder.cycles),
        worst_share_percent: wake_us.max.map(|max| max / period_us * 100.0),
        wake_us,
        exec_us: Summary::of(&recorder.exec),
        cpu_us: Summary::of(&recorder.cpu),
        response_us: Summary::of(&recorder.response),
        minor_faults: usage.minor_faults,
        major_faults: usage.major_faults,
        voluntary_switches: usage.voluntary_switches,
        involuntary_switches: usage.involuntary_switches,
        exchanges,
        interrupts: watch
            .whole(cpus)
            .into_iter()
            .filter(|(name, _)| name.contains("irq "))
            .collect(),
        causes: watch.causes(recorder, cpus),
        watch_cost_us: cost_ns as f64 / 1e3,
        watch_every,
        histogram: buckets(recorder),
        overflow: recorder.overflow,
        ecdf: ecdf(&recorder.wake, ECDF_POINTS),
    }
}

fn buckets(recorder: &Recorder) -> Vec<(u64, u64)> {
    let filled = recorder
        .buckets
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0);
    filled.map(|(us, count)| (us as u64, *count)).collect()
}

/// How long a plan takes at least.
#[must_use]
pub fn expected_time(plan: &Plan, cells: usize) -> Duration {
    (plan.timing.warmup + plan.timing.duration)
        .saturating_mul(u32::try_from(cells).unwrap_or(u32::MAX))
}
