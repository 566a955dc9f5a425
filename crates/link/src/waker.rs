//! Waking the loop from another thread or from a signal handler.
//!
//! A socket pair rather than an event counter, because a signal handler can write a single byte to it.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// Wakes one [`Reactor`](crate::Reactor). Cheap to clone and to use: waking twice wakes once.
#[derive(Clone, Debug)]
pub struct Waker(Arc<UnixStream>);

impl Waker {
    /// Makes the reactor's current or next wait return.
    pub fn wake(&self) {
        // A full socket means that it is awake already; a closed one that there is nobody to wake.
        let _awake_or_gone = (&*self.0).write(&[1]);
    }

    /// A descriptor that wakes when one byte is written to it, for signal handlers.
    ///
    /// # Errors
    /// What the system says: no descriptor is free.
    pub fn writer(&self) -> io::Result<UnixStream> {
        self.0.try_clone()
    }
}

/// The reactor's end.
#[derive(Debug)]
pub(crate) struct Sleeper(UnixStream);

pub(crate) fn pair() -> io::Result<(Waker, Sleeper)> {
    let (writer, reader) = UnixStream::pair()?;
    writer.set_nonblocking(true)?;
    reader.set_nonblocking(true)?;
    Ok((Waker(Arc::new(writer)), Sleeper(reader)))
}

impl Sleeper {
    pub(crate) fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Takes all pending wake-ups as one.
    pub(crate) fn drain(&mut self) -> io::Result<()> {
        let mut bytes = [0; 64];
        loop {
            match self.0.read(&mut bytes) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
