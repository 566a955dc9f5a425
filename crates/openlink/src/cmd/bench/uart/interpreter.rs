//! The speed of an interpreter on a small single-board computer, and its lock.
//!
//! Owns who may compute: one thread at a time, which keeps the right until it blocks or another one has waited for the
//! switch interval, as CPython does. A step costs processor time of its own thread, so that it takes longer where the
//! thread has to share its processor. Off, nothing is locked and nothing is computed.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// How long a thread that wants to compute waits before it asks for the lock; CPython's default.
const SWITCH_AFTER: Duration = Duration::from_millis(5);

#[derive(Debug, Default)]
struct Lock {
    held: bool,
    wanted: bool,
    /// Counts changes of hands.
    turn: u64,
    waiting: u32,
}

/// One interpreter for all threads of a driver.
#[derive(Debug)]
pub(super) struct Interpreter {
    /// Processor time of a step; `None`: no interpreter.
    step: Option<Duration>,
    lock: Mutex<Lock>,
    free: Condvar,
}

impl Interpreter {
    pub(super) fn new(step: Option<Duration>) -> Self {
        Self {
            step,
            lock: Mutex::default(),
            free: Condvar::new(),
        }
    }

    /// This thread begins to compute.
    pub(super) fn enter(&self) {
        if self.step.is_some() {
            self.take(self.guard());
        }
    }

    /// This thread stops computing.
    pub(super) fn leave(&self) {
        if self.step.is_some() {
            self.guard().held = false;
            self.free.notify_all();
        }
    }

    /// A call that may block; others compute meanwhile.
    pub(super) fn outside<T>(&self, call: impl FnOnce() -> T) -> T {
        self.leave();
        let result = call();
        self.enter();
        result
    }

    /// Computes one step, and lets another thread on if one has waited long enough.
    pub(super) fn step(&self) {
        let Some(step) = self.step else { return };
        let end = processor_time() + step;
        while processor_time() < end {
            std::hint::spin_loop();
        }
        let mut lock = self.guard();
        if lock.wanted && lock.waiting > 0 {
            let turn = lock.turn;
            lock.held = false;
            self.free.notify_all();
            while lock.turn == turn && lock.waiting > 0 {
                lock = self.wait(lock);
            }
            self.take(lock);
        }
    }

    fn take(&self, mut lock: MutexGuard<'_, Lock>) {
        lock.waiting += 1;
        while lock.held {
            let (again, waited) = self
                .free
                .wait_timeout(lock, SWITCH_AFTER)
                .unwrap_or_else(PoisonError::into_inner);
            lock = again;
            lock.wanted |= lock.held && waited.timed_out();
        }
        lock.waiting -= 1;
        lock.held = true;
        lock.wanted = false;
        lock.turn += 1;
        drop(lock);
        self.free.notify_all();
    }

    fn wait<'a>(&self, lock: MutexGuard<'a, Lock>) -> MutexGuard<'a, Lock> {
        self.free.wait(lock).unwrap_or_else(PoisonError::into_inner)
    }

    fn guard(&self) -> MutexGuard<'_, Lock> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Processor time of this thread.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn one_thread_at_a_time_computes_and_none_is_left_out() {
        let interpreter = Interpreter::new(Some(Duration::from_micros(20)));
        let (inside, done) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    interpreter.enter();
                    for _ in 0..50 {
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1);
                        interpreter.step();
                        interpreter.outside(std::thread::yield_now);
                    }
                    interpreter.leave();
                    done.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        assert_eq!(done.into_inner(), 3);
    }

    #[test]
    fn off_locks_nothing() {
        let off = Interpreter::new(None);
        off.enter();
        off.enter();
        off.step();
        assert!(!off.guard().held);
    }
}
