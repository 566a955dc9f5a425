//! The thread behind blocking sockets: waits for the network and for timers, and wakes callers that wait for a change.
//! Ends when the last socket is gone.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use super::Wait;
use crate::endpoint::{Event, PeerId};
use crate::udp::Driver;

/// New connections that nobody has accepted; more are closed.
const MAX_WAITING: usize = 64;

/// What the thread and the callers share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) driver: Driver,
    /// Whether new connections are kept to be accepted.
    listening: bool,
    new: VecDeque<PeerId>,
    /// When the thread wakes by itself.
    planned: Option<Instant>,
}

#[derive(Debug)]
struct Common {
    /// The driver's socket, to be waited for without the lock.
    socket: OwnedFd,
    shared: Mutex<Shared>,
    changed: Condvar,
    wake: OwnedFd,
    stop: AtomicBool,
}

/// A driver with a thread.
#[derive(Debug)]
pub(super) struct Worker {
    common: Arc<Common>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    pub(super) fn start(driver: Driver, listening: bool) -> std::io::Result<Arc<Self>> {
        let socket = driver.as_fd().try_clone_to_owned()?;
        let common = Arc::new(Common {
            socket,
            shared: Mutex::new(Shared {
                driver,
                listening,
                new: VecDeque::new(),
                planned: None,
            }),
            changed: Condvar::new(),
            wake: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?,
            stop: AtomicBool::new(false),
        });
        let inner = Arc::clone(&common);
        let thread = std::thread::Builder::new()
            .name("prrt".into())
            .spawn(move || inner.run())?;
        Ok(Arc::new(Self {
            common,
            thread: Some(thread),
        }))
    }

    /// Runs `call` under the lock, and the thread again if it now has to wake sooner.
    pub(super) fn with<T>(&self, call: impl FnOnce(&mut Driver, Instant) -> T) -> T {
        let mut shared = self.common.lock();
        let result = call(&mut shared.driver, Instant::now());
        self.common.replan(&shared);
        result
    }

    /// Tries `attempt` now and after every change, until it returns something or the wait is over.
    pub(super) fn wait<T>(
        &self,
        wait: Wait,
        mut attempt: impl FnMut(&mut Shared, Instant) -> Option<T>,
    ) -> Option<T> {
        let mut shared = self.common.lock();
        loop {
            let now = Instant::now();
            let result = attempt(&mut shared, now);
            self.common.replan(&shared);
            if result.is_some() || wait.is_over(now) {
                return result;
            }
            shared = self.common.wait(shared, wait, now);
        }
    }

    /// A connection that nobody has accepted.
    pub(super) fn take_new(shared: &mut Shared, _now: Instant) -> Option<PeerId> {
        shared.new.pop_front()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.common.stop.store(true, Ordering::Release);
        self.common.rouse();
        if let Some(thread) = self.thread.take() {
            // A panic in the thread has been reported by the thread itself.
            let _ = thread.join();
        }
    }
}

impl Common {
    /// The state stays usable after a panic elsewhere: every method of the driver leaves it consistent.
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(
        &self,
        shared: MutexGuard<'a, Shared>,
        wait: Wait,
        now: Instant,
    ) -> MutexGuard<'a, Shared> {
        match wait {
            Wait::Until(at) => {
                let span = at.saturating_duration_since(now);
                self.changed
                    .wait_timeout(shared, span)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0
            }
            Wait::No | Wait::Forever => self
                .changed
                .wait(shared)
                .unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// Wakes the thread if something is due before it would wake by itself, or the socket has to be watched for room.
    fn replan(&self, shared: &Shared) {
        let due = shared.driver.poll_timeout().map(|(at, _)| at);
        let sooner = due.is_some_and(|due| shared.planned.is_none_or(|planned| due < planned));
        if sooner || shared.driver.wants_write() {
            self.rouse();
        }
    }

    fn rouse(&self) {
        // The only way this fails is a full counter, and then the thread is about to wake anyway.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    fn run(&self) {
        while !self.stop.load(Ordering::Acquire) {
            let (timeout, write) = self.plan();
            let ready = self.sleep(timeout, write);
            self.work(ready);
        }
    }

    fn plan(&self) -> (Option<Duration>, bool) {
        let mut shared = self.lock();
        let due = shared.driver.poll_timeout().map(|(at, _)| at);
        shared.planned = due;
        let timeout = due.map(|at| at.saturating_duration_since(Instant::now()));
        (timeout, shared.driver.wants_write())
    }

    /// Waits for the socket, a caller or the time; returns whether the socket is ready.
    fn sleep(&self, timeout: Option<Duration>, write: bool) -> bool {
        let wanted = if write {
            PollFlags::IN | PollFlags::OUT
        } else {
            PollFlags::IN
        };
        let mut fds = [
            PollFd::new(&self.socket, wanted),
            PollFd::new(&self.wake, PollFlags::IN),
        ];
        let timeout = timeout.and_then(|span| Timespec::try_from(span).ok());
        // An interrupted wait is a wake-up without a reason, which is harmless.
        let _ = poll(&mut fds, timeout.as_ref());
        let ready = !fds[0].revents().is_empty();
        if !fds[1].revents().is_empty() {
            let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        }
        ready
    }

    fn work(&self, ready: bool) {
        let mut shared = self.lock();
        let now = Instant::now();
        if ready {
            shared.driver.handle_ready(now);
        }
        if shared
            .driver
            .poll_timeout()
            .is_some_and(|(at, _)| at <= now)
        {
            shared.driver.handle_timeout(now);
        }
        shared.take_events(now);
        drop(shared);
        self.changed.notify_all();
    }
}

impl Shared {
    fn take_events(&mut self, now: Instant) {
        while let Some(event) = self.driver.poll_event() {
            match event {
                Event::Connected { peer, .. } if self.listening => self.offer(now, peer),
                Event::Disconnected { peer, .. } if self.driver.addr(peer).is_none() => {
                    self.new.retain(|&other| other != peer);
                }
                Event::Connected { .. } | Event::Disconnected { .. } | Event::Moved { .. } => {}
            }
        }
    }

    fn offer(&mut self, now: Instant, peer: PeerId) {
        if self.new.len() < MAX_WAITING {
            self.new.push_back(peer);
        } else {
            self.driver.close(now, peer);
        }
    }
}
