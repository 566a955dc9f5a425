//! SIGINT and SIGTERM as a request to finish, that also wakes a waiting loop.
//!
//! The first signal asks; a second one ends the process at once, for the case that finishing hangs.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use link::Waker;
use signal_hook::consts::{SIGINT, SIGTERM};

/// Whether a signal asked the process to finish.
#[derive(Clone, Debug)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Listens for both signals; each also wakes `waker`'s loop.
    pub(crate) fn install(waker: &Waker) -> io::Result<Self> {
        Self::with_writers(|| waker.writer())
    }

    /// Listens for both signals; each also makes the returned stream readable.
    pub(crate) fn with_stream() -> io::Result<(Self, UnixStream)> {
        let (writer, reader) = UnixStream::pair()?;
        Ok((Self::with_writers(|| writer.try_clone())?, reader))
    }

    fn with_writers(writer: impl Fn() -> io::Result<UnixStream>) -> io::Result<Self> {
        let flag = flag()?;
        for signal in [SIGINT, SIGTERM] {
            signal_hook::low_level::pipe::register(signal, writer()?)?;
        }
        Ok(Self(flag))
    }

    /// Whether to finish now.
    pub(crate) fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Listens for both signals; the flag is set by the first. For loops that look at it often enough.
pub(crate) fn flag() -> io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&flag))?;
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    Ok(flag)
}
