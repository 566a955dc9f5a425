//! Services across domains: a client where the server is, and a server where the clients are, for any service type.
//!
//! The server is offered only while the real one is there, so that a client sees the truth. One thread takes
//! requests, one takes responses; what ties them is a bounded table of the calls under way.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::rcl_raw::{Client, Domain, RawError, RequestId, Server, TypeSupport};

use super::config::ServiceRule;
use super::stats::add;

/// How long a wait lasts at most; a stop does not wait for it.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long to pause after rcl reported an error.
const AFTER_ERROR: Duration = Duration::from_millis(100);
/// Most calls under way; a further one makes the bridge give up the oldest.
const CALLS: usize = 1024;

/// What a service has done.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Requests passed on.
    pub(super) requests: AtomicU64,
    /// Responses passed back.
    pub(super) responses: AtomicU64,
    /// Calls given up, as their time was over or there were too many.
    pub(super) given_up: AtomicU64,
    /// Responses to calls that were given up.
    pub(super) late: AtomicU64,
    /// Waits, takes and sends that failed.
    pub(super) errors: AtomicU64,
}

impl Counters {
    /// All counters by name.
    pub(super) fn by_name(&self) -> [(&'static str, u64); 5] {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [
            ("requests", count(&self.requests)),
            ("responses", count(&self.responses)),
            ("given_up", count(&self.given_up)),
            ("late", count(&self.late)),
            ("errors", count(&self.errors)),
        ]
    }
}

/// The calls under way, by the number that the client gave them.
#[derive(Debug, Default)]
struct Calls(BTreeMap<i64, (RequestId, Instant)>);

impl Calls {
    /// Adds a call and returns how many were given up for it.
    fn add(
        &mut self,
        now: Instant,
        number: i64,
        from: RequestId,
        timeout: Option<Duration>,
    ) -> u64 {
        let before = self.0.len();
        self.0.retain(|_, (_, asked)| {
            timeout.is_none_or(|timeout| now.duration_since(*asked) < timeout)
        });
        if self.0.len() >= CALLS {
            self.0.pop_first();
        }
        let given_up = before - self.0.len();
        self.0.insert(number, (from, now));
        given_up as u64
    }

    fn take(&mut self, number: i64) -> Option<RequestId> {
        self.0.remove(&number).map(|(from, _)| from)
    }
}

/// One turn of a thread.
type Pass = fn(&Shared) -> Result<(), RawError>;

/// What the threads of a service share.
#[derive(Debug)]
struct Shared {
    client: Arc<Client>,
    server: Server,
    calls: Mutex<Calls>,
    timeout: Option<Duration>,
    counters: Arc<Counters>,
    stop: AtomicBool,
    label: String,
}

/// A service that is offered; withdrawn when dropped.
#[derive(Debug)]
struct Offered {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// A service rule and what has become of it.
#[derive(Debug)]
pub(super) struct Proxy {
    /// The rule.
    pub(super) rule: ServiceRule,
    /// Its counters, over all the times it was offered.
    pub(super) counters: Arc<Counters>,
    types: Arc<TypeSupport>,
    to: Arc<Domain>,
    client: Arc<Client>,
    offered: Option<Offered>,
}

impl Proxy {
    /// Makes the client; the server follows when the real one is there.
    ///
    /// # Errors
    /// The type cannot be loaded, or what rcl said.
    pub(super) fn open(
        rule: &ServiceRule,
        from: &Arc<Domain>,
        to: &Arc<Domain>,
    ) -> Result<Self, RawError> {
        let types = Arc::new(TypeSupport::load_service(&rule.type_name)?);
        let client = Client::open(from, &rule.from_name, &types)?;
        Ok(Self {
            rule: rule.clone(),
            counters: Arc::default(),
            types,
            to: Arc::clone(to),
            client: Arc::new(client),
            offered: None,
        })
    }

    /// Whether the service is offered.
    pub(super) const fn is_up(&self) -> bool {
        self.offered.is_some()
    }

    /// Whether a server answers at the source.
    ///
    /// # Errors
    /// What rcl said.
    pub(super) fn has_server(&self) -> Result<bool, RawError> {
        self.client.is_ready()
    }

    /// What it says in logs.
    pub(super) fn label(&self) -> String {
        let rule = &self.rule;
        format!(
            "{} in {} > {} in {}",
            rule.from_name, rule.from_domain, rule.to_name, rule.to_domain
        )
    }

    /// Offers the service or withdraws it.
    ///
    /// # Errors
    /// What rcl said, or a thread cannot be made.
    pub(super) fn offer(&mut self, wanted: bool) -> anyhow::Result<()> {
        if wanted == self.is_up() {
            return Ok(());
        }
        self.offered = None;
        if !wanted {
            tracing::info!(service = self.label(), "service is gone");
            return Ok(());
        }
        let shared = Arc::new(Shared {
            client: Arc::clone(&self.client),
            server: Server::open(&self.to, &self.rule.to_name, &self.types)?,
            calls: Mutex::default(),
            timeout: self.rule.timeout,
            counters: Arc::clone(&self.counters),
            stop: AtomicBool::new(false),
            label: self.label(),
        });
        self.offered = Some(Offered::start(shared)?);
        tracing::info!(service = self.label(), "service is up");
        Ok(())
    }
}

impl Offered {
    fn start(shared: Arc<Shared>) -> std::io::Result<Self> {
        let mut offered = Self {
            shared,
            threads: Vec::new(),
        };
        let passes: [(&str, Pass); 2] = [
            ("requests", Shared::pass_requests),
            ("responses", Shared::pass_responses),
        ];
        for (name, pass) in passes {
            let shared = Arc::clone(&offered.shared);
            let thread = std::thread::Builder::new().name(name.into());
            offered
                .threads
                .push(thread.spawn(move || shared.run(pass))?);
        }
        Ok(offered)
    }
}

impl Drop for Offered {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.server.wake();
        self.shared.client.wake();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a service's thread panicked");
            }
        }
    }
}

impl Shared {
    fn run(&self, pass: Pass) {
        while !self.stop.load(Ordering::Acquire) {
            if let Err(error) = pass(self) {
                let errors = self.counters.errors.fetch_add(1, Ordering::Relaxed) + 1;
                tracing::warn!(service = self.label, errors, %error, "cannot pass on");
                std::thread::sleep(AFTER_ERROR);
            }
        }
    }

    fn calls(&self) -> std::sync::MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pass_requests(&self) -> Result<(), RawError> {
        self.server.wait(PATIENCE)?;
        while let Some(from) = self.server.take()? {
            // The response can come before the call is noted, so its thread waits for the note.
            let mut calls = self.calls();
            let number = self.client.send(&self.server)?;
            let given_up = calls.add(Instant::now(), number, from, self.timeout);
            add(&self.counters.given_up, given_up);
            add(&self.counters.requests, 1);
        }
        Ok(())
    }

    fn pass_responses(&self) -> Result<(), RawError> {
        self.client.wait(PATIENCE)?;
        while let Some(number) = self.client.take()? {
            let from = self.calls().take(number);
            let Some(from) = from else {
                add(&self.counters.late, 1);
                continue;
            };
            self.server.reply(&from, &self.client)?;
            add(&self.counters.responses, 1);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_answered_once_and_given_up_when_its_time_is_over() {
        let (mut calls, start) = (Calls::default(), Instant::now());
        let timeout = Some(Duration::from_secs(60));
        assert_eq!(calls.add(start, 1, RequestId::default(), timeout), 0);
        assert!(calls.take(1).is_some() && calls.take(1).is_none());
        calls.add(start, 2, RequestId::default(), timeout);
        let later = start + Duration::from_secs(61);
        assert_eq!(calls.add(later, 3, RequestId::default(), timeout), 1);
        assert!(calls.take(2).is_none() && calls.take(3).is_some());
    }

    #[test]
    fn a_call_without_a_time_out_waits_until_the_table_is_full() {
        let (mut calls, now) = (Calls::default(), Instant::now());
        let given_up: u64 = (0..CALLS as i64 + 1)
            .map(|number| calls.add(now, number, RequestId::default(), None))
            .sum();
        assert_eq!(given_up, 1);
        assert!(calls.take(0).is_none() && calls.take(1).is_some());
    }
}
