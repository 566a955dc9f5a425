//! The periodic loop on a virtual clock: drift, skips, warm-up, exact records, no allocation.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use realtime::Clock;
use realtime::mono::Mono;
use realtime::periodic::record::Cycle;
use realtime::periodic::runner::{NoObserver, Observer, Run, Timing, run};

const PERIOD: Duration = Duration::from_millis(4);
const P: u64 = 4_000_000;

/// A clock that only moves when slept on or worked on.
#[derive(Clone, Default)]
struct Virtual {
    now: Rc<Cell<u64>>,
    cpu: Rc<Cell<u64>>,
    late_by: Rc<Cell<u64>>,
}

impl Virtual {
    fn work(&self, wall: u64, cpu: u64) {
        self.now.set(self.now.get() + wall);
        self.cpu.set(self.cpu.get() + cpu);
    }
}

impl Clock for Virtual {
    fn now(&self) -> Mono {
        Mono(self.now.get())
    }

    fn thread_cpu_ns(&self) -> u64 {
        self.cpu.get()
    }

    fn sleep_until(&mut self, at: Mono) {
        self.now.set(self.now.get().max(at.0) + self.late_by.get());
    }
}

fn timing(cycles: u32, warmup: u32) -> Timing {
    Timing {
        period: PERIOD,
        warmup: PERIOD * warmup,
        duration: PERIOD * cycles,
    }
}

/// Runs with a job that takes `wall(index)` nanoseconds.
fn run_with(timing: Timing, mut wall: impl FnMut(u64) -> u64) -> Run {
    let clock = Virtual::default();
    let mut driven = clock.clone();
    let mut job = |index| clock.work(wall(index), 1_000);
    run(
        &mut driven,
        timing,
        &mut job,
        &mut NoObserver,
        &AtomicBool::new(false),
    )
    .unwrap()
}

/// A timer re-based on "now" drifts: 1e5 cycles with late wake-ups, total drift zero.
#[test]
fn a_hundred_thousand_late_cycles_drift_by_nothing() {
    let clock = Virtual::default();
    clock.late_by.set(137_000);
    let mut driven = clock.clone();
    let mut job = |_| clock.work(10_000, 10_000);
    let run = run(
        &mut driven,
        timing(100_000, 1),
        &mut job,
        &mut NoObserver,
        &AtomicBool::new(false),
    )
    .unwrap();
    assert_eq!((run.schedule.drift_ns(), run.schedule.skipped()), (0, 0));
    assert_eq!(run.recorder.cycles, 100_000);
    assert_eq!(run.recorder.span_ns, 99_999 * P);
    assert_eq!(run.recorder.buckets[137], 100_000);
}

/// A slow job queues ticks and then bursts: missed ticks are coalesced and counted instead.
#[test]
fn ticks_missed_by_a_slow_job_are_coalesced_and_counted() {
    let mut starts = Vec::new();
    let run = run_with(timing(20, 1), |index| {
        starts.push(index);
        if index == 10 { 5 * P + P / 2 } else { 10_000 }
    });
    assert_eq!(run.recorder.skipped, 5);
    assert_eq!(run.recorder.misses, 1);
    let expected: Vec<u64> = (0..=10).chain(16..21).collect();
    assert_eq!(
        starts, expected,
        "each cycle after the slow one starts on its own tick, none back to back"
    );
    assert_eq!(run.schedule.drift_ns(), 0);
}

/// First iteration poisons the statistics: warm-up is excluded and counted.
#[test]
fn the_warm_up_is_excluded_and_counted() {
    let run = run_with(
        timing(100, 5),
        |index| if index < 2 { 900_000 } else { 7_000 },
    );
    assert_eq!((run.recorder.warmed_up, run.recorder.cycles), (5, 100));
    assert!(run.recorder.exec.max() < 8_000);
    let without = run_with(
        timing(100, 0),
        |index| if index == 0 { 900_000 } else { 7_000 },
    );
    assert_eq!(
        (
            without.recorder.warmed_up,
            without.recorder.exec.max() < 8_000
        ),
        (1, true)
    );
}

#[test]
fn a_scripted_sequence_gives_the_exact_histogram() {
    let script = [
        0,
        P / 2,
        P + P / 2,
        10_000,
        2 * P,
        10_000,
        3 * P + P / 2,
        10_000,
    ];
    let mut step = 0;
    let run = run_with(timing(14, 1), |_| {
        step += 1;
        script.get(step - 1).copied().unwrap_or(10_000)
    });
    let recorder = &run.recorder;
    assert_eq!((recorder.misses, recorder.skipped), (3, 1 + 1 + 3));
    assert_eq!(recorder.cycles + recorder.skipped, 14);
    assert_eq!(
        recorder.buckets[0], recorder.cycles,
        "every wake-up on a virtual clock is on time"
    );
    assert_eq!(recorder.overflow, 0);
    let long = recorder
        .response
        .iter_recorded()
        .filter(|step| step.value_iterated_to() > P)
        .count();
    assert_eq!(long, 3);
    assert_eq!(recorder.worst()[0].1.response_ns(), 3 * P + P / 2);
}

#[test]
fn the_stop_flag_ends_the_loop_at_once() {
    let stop = AtomicBool::new(false);
    let clock = Virtual::default();
    let mut job = |index| {
        if index == 7 {
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    };
    let run = run(
        &mut clock.clone(),
        timing(1000, 1),
        &mut job,
        &mut NoObserver,
        &stop,
    )
    .unwrap();
    assert_eq!((run.stopped, run.recorder.cycles), (true, 7));
}

/// No allocation in the loop: the count of a long run is that of a short one.
#[test]
fn cycles_allocate_nothing() {
    struct Counting(u64);
    impl Observer for Counting {
        fn observe(&mut self, _: &Cycle, slot: Option<usize>) {
            self.0 += u64::from(slot.is_some());
        }
    }
    let allocations = |cycles| {
        let clock = Virtual::default();
        let mut driven = clock.clone();
        let mut job = |index: u64| clock.work(1_000 + index % 97, 900);
        allocation_counter::measure(|| {
            let outcome = run(
                &mut driven,
                timing(cycles, 1),
                &mut job,
                &mut Counting(0),
                &AtomicBool::new(false),
            );
            assert!(outcome.unwrap().recorder.cycles > 0);
        })
        .count_total
    };
    assert_eq!(allocations(10), allocations(50_000));
}
