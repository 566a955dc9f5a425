//! `ppoll` over raw descriptors: the only place where a descriptor's lifetime is promised, not proven.
//!
//! It waits and reports; it owns no descriptor and closes none.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

/// The descriptors of one wait; the memory is used again for the next.
#[derive(Debug, Default)]
pub(crate) struct PollSet(Vec<PollFd<'static>>);

impl PollSet {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds a descriptor, which must stay open until [`PollSet::wait`] has returned.
    pub(crate) fn push(&mut self, fd: RawFd, read: bool, write: bool) {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, read);
        flags.set(PollFlags::OUT, write);
        // SAFETY: the reactor fills the set from `Link::interests`, whose descriptors stay open until the next
        // `&mut` call of that link, and waits before it makes any such call. The set is cleared before it is
        // filled again, and nothing reads a stale entry. A wrong promise would only poll a foreign descriptor.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        self.0.push(PollFd::from_borrowed_fd(fd, flags));
    }

    /// Waits until a descriptor is ready or `timeout` is over; `None` waits for ever. A signal ends it early.
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let timeout = timeout.map(timespec);
        match rustix::event::poll(&mut self.0, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the descriptor added at `index` is ready, has hung up or has failed.
    pub(crate) fn is_ready(&self, index: usize) -> bool {
        self.0.get(index).is_some_and(|fd| !fd.revents().is_empty())
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: duration.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}
