//! A running route: one thread that waits, takes the serialized message and publishes it in the other domain.
//!
//! The middleware's own history is the route's bounded queue: with keep last the oldest sample is dropped, with
//! keep all the publisher is held back. A route that is stuck in publishing delays no other route.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::rcl_raw::{Gid, Qos, RawError, Route, Waker};

/// How long a wait lasts at most; a stop does not wait for it.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long to pause after rcl reported an error, so that a lasting one does not burn a core.
const AFTER_ERROR: Duration = Duration::from_millis(100);

/// Identities of the publishers that belong to this process, so that no message is sent back.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnGids(Arc<RwLock<BTreeSet<Gid>>>);

impl OwnGids {
    /// Whether a publisher is ours.
    #[must_use]
    pub(super) fn contains(&self, gid: &Gid) -> bool {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(gid)
    }

    fn insert(&self, gid: Gid) {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(gid);
    }

    fn remove(&self, gid: &Gid) {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(gid);
    }
}

/// Counters of a route, over all the times it was opened.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Messages forwarded.
    pub(super) forwarded: AtomicU64,
    /// Serialized bytes forwarded.
    pub(super) bytes: AtomicU64,
    /// Messages of our own publishers, skipped.
    pub(super) own: AtomicU64,
    /// Waits, takes and publishes that failed.
    pub(super) errors: AtomicU64,
}

/// A route's thread; stops and is joined when dropped.
#[derive(Debug)]
pub(super) struct Running {
    /// What the route was opened with.
    pub(super) qos: Qos,
    gid: Gid,
    own: OwnGids,
    stop: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Starts the thread of an opened route.
    ///
    /// # Errors
    /// The publisher cannot be identified or the thread cannot be made.
    pub(super) fn start(
        route: Route,
        qos: Qos,
        own: &OwnGids,
        counters: &Arc<Counters>,
        label: &str,
    ) -> anyhow::Result<Self> {
        let gid = route.gid()?;
        own.insert(gid);
        let stop = Arc::new(AtomicBool::new(false));
        let waker = route.waker();
        let mut pump = Pump {
            route,
            own: own.clone(),
            counters: Arc::clone(counters),
            stop: Arc::clone(&stop),
            label: label.to_owned(),
        };
        let thread = std::thread::Builder::new()
            .name("route".into())
            .spawn(move || pump.run())?;
        Ok(Self {
            qos,
            gid,
            own: own.clone(),
            stop,
            waker,
            thread: Some(thread),
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.waker.wake();
        if self
            .thread
            .take()
            .is_some_and(|thread| thread.join().is_err())
        {
            tracing::error!("a route's thread panicked");
        }
        self.own.remove(&self.gid);
    }
}

/// What the thread works on.
struct Pump {
    route: Route,
    own: OwnGids,
    counters: Arc<Counters>,
    stop: Arc<AtomicBool>,
    label: String,
}

impl Pump {
    fn run(&mut self) {
        while !self.stop.load(Ordering::Acquire) {
            if let Err(error) = self.turn() {
                let errors = self.counters.errors.fetch_add(1, Ordering::Relaxed) + 1;
                tracing::warn!(route = self.label, errors, %error, "cannot forward");
                std::thread::sleep(AFTER_ERROR);
            }
        }
    }

    /// Waits once and forwards all that is there.
    fn turn(&mut self) -> Result<(), RawError> {
        self.route.wait(PATIENCE)?;
        while let Some(taken) = self.route.take()? {
            if self.own.contains(&taken.gid) {
                self.counters.own.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            self.route.publish()?;
            self.counters.forwarded.fetch_add(1, Ordering::Relaxed);
            self.counters
                .bytes
                .fetch_add(taken.bytes, Ordering::Relaxed);
            if self.stop.load(Ordering::Acquire) {
                break;
            }
        }
        Ok(())
    }
}
