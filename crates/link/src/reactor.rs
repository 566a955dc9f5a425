//! The loop that drives links: one thread, one `ppoll`, no polling.
//!
//! It waits for descriptors, timers and wake-ups, and hands them to the links they belong to. What the links
//! then deliver is the caller's business.

use std::io;
use std::time::Instant;

use crate::interface::{Interest, Link};
use crate::poll::PollSet;
use crate::waker::{self, Sleeper, Waker};

/// Drives any number of links on the calling thread.
#[derive(Debug)]
pub struct Reactor {
    waker: Waker,
    sleeper: Sleeper,
    set: PollSet,
    /// The link that each descriptor behind the sleeper's belongs to.
    owners: Vec<usize>,
    interests: Vec<Interest>,
    touched: Vec<usize>,
}

impl Reactor {
    /// A reactor without links.
    ///
    /// # Errors
    /// What the system says: no descriptor is free.
    pub fn new() -> io::Result<Self> {
        let (waker, sleeper) = waker::pair()?;
        Ok(Self {
            waker,
            sleeper,
            set: PollSet::default(),
            owners: Vec::new(),
            interests: Vec::new(),
            touched: Vec::new(),
        })
    }

    /// Wakes this reactor from another thread or a signal handler.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Lets every link write what it held back, waits until a link has work, `until` has come or someone wakes
    /// the reactor, and lets every link that has work do it. Returns the time at which it woke.
    ///
    /// # Errors
    /// What `ppoll` says, which for open descriptors is only lack of memory.
    pub fn turn(
        &mut self,
        links: &mut [Box<dyn Link>],
        until: Option<Instant>,
    ) -> io::Result<Instant> {
        let now = Instant::now();
        links.iter_mut().for_each(|link| link.flush(now));
        self.gather(links);
        self.set.wait(timeout(links, until))?;
        let now = Instant::now();
        if self.set.is_ready(0) {
            self.sleeper.drain()?;
        }
        self.handle_ready(now, links);
        self.handle_due(now, links);
        Ok(now)
    }

    /// Indices of the links that did something in the last [`Reactor::turn`], each once.
    #[must_use]
    pub fn touched(&self) -> &[usize] {
        &self.touched
    }

    fn gather(&mut self, links: &[Box<dyn Link>]) {
        self.set.clear();
        self.owners.clear();
        self.set.push(self.sleeper.fd(), true, false);
        for (index, link) in links.iter().enumerate() {
            self.interests.clear();
            link.interests(&mut self.interests);
            for interest in &self.interests {
                self.set.push(interest.fd, interest.read, interest.write);
                self.owners.push(index);
            }
        }
    }

    fn handle_ready(&mut self, now: Instant, links: &mut [Box<dyn Link>]) {
        self.touched.clear();
        for (position, &owner) in self.owners.iter().enumerate() {
            let first = self.touched.last() != Some(&owner);
            if first && self.set.is_ready(position + 1) {
                self.touched.push(owner);
                links[owner].handle_ready(now);
            }
        }
    }

    fn handle_due(&mut self, now: Instant, links: &mut [Box<dyn Link>]) {
        for (index, link) in links.iter_mut().enumerate() {
            if link.poll_timeout().is_some_and(|(at, _)| at <= now) {
                link.handle_timeout(now);
                if !self.touched.contains(&index) {
                    self.touched.push(index);
                }
            }
        }
    }
}

fn timeout(links: &[Box<dyn Link>], until: Option<Instant>) -> Option<std::time::Duration> {
    let timers = links
        .iter()
        .filter_map(|link| link.poll_timeout())
        .map(|(at, _)| at);
    let first = timers.chain(until).min()?;
    Some(first.saturating_duration_since(Instant::now()))
}
