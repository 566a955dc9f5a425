//! The transport for programs without an event loop: sockets that block, with one background thread per UDP socket that
//! keeps time and reads the network. Calls run on the caller's thread; the lock is held for microseconds.

mod worker;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::Config;
use crate::endpoint::PeerId;
use crate::error::{Error, SendError};
use crate::message::{Delivery, Departure, Message, MessageId, Mode, Stream};
use crate::stats::Stats;
use crate::udp::Driver;
use worker::Worker;

/// How long a call may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    No,
    /// Until this instant.
    Until(Instant),
    /// Without limit.
    Forever,
}

impl Wait {
    /// At most `span` from now.
    pub fn at_most(span: Duration) -> Self {
        Self::Until(Instant::now() + span)
    }

    fn is_over(self, now: Instant) -> bool {
        match self {
            Self::No => true,
            Self::Until(at) => now >= at,
            Self::Forever => false,
        }
    }
}

/// Why nothing was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecvError {
    /// Nothing came in the time allowed.
    #[error("nothing received in the time allowed")]
    TimedOut,
    /// The connection is closed and everything that had arrived has been read.
    #[error("connection is closed")]
    Closed,
}

/// Accepts connections.
#[derive(Debug)]
pub struct Listener {
    worker: Arc<Worker>,
}

/// A connection. Clones share it; it is closed when the last one is dropped.
#[derive(Clone, Debug)]
pub struct Socket {
    handle: Arc<Handle>,
}

#[derive(Debug)]
struct Handle {
    worker: Arc<Worker>,
    peer: PeerId,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.worker.with(|driver, now| driver.close(now, self.peer));
    }
}

impl Listener {
    /// Listens on `addr`.
    ///
    /// # Errors
    /// As for [`Driver::listen`].
    pub fn bind(addr: SocketAddr, config: Config) -> Result<Self, Error> {
        let driver = Driver::listen(Instant::now(), addr, config)?;
        let source = |source| Error::Socket { addr, source };
        Ok(Self {
            worker: Worker::start(driver, true).map_err(source)?,
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// What the system says.
    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.worker.with(|driver, _| driver.local_addr())
    }

    /// The next new connection.
    pub fn accept(&self, wait: Wait) -> Option<Socket> {
        let peer = self.worker.wait(wait, Worker::take_new)?;
        Some(Socket::new(Arc::clone(&self.worker), peer))
    }
}

impl Socket {
    fn new(worker: Arc<Worker>, peer: PeerId) -> Self {
        Self {
            handle: Arc::new(Handle { worker, peer }),
        }
    }

    /// Begins to connect to `addr`; goes on in the background and after every loss.
    ///
    /// # Errors
    /// As for [`Driver::connect`].
    pub fn connect(addr: SocketAddr, config: Config) -> Result<Self, Error> {
        let (driver, peer) = Driver::connect(Instant::now(), addr, config)?;
        let worker =
            Worker::start(driver, false).map_err(|source| Error::Socket { addr, source })?;
        Ok(Self::new(worker, peer))
    }

    /// Waits until messages flow; returns whether they do.
    pub fn wait_connected(&self, wait: Wait) -> bool {
        let peer = self.handle.peer;
        self.handle
            .worker
            .wait(wait, |shared, _| {
                shared.driver.is_connected(peer).then_some(())
            })
            .is_some()
    }

    /// Where the peer lives.
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.handle
            .worker
            .with(|driver, _| driver.addr(self.handle.peer))
    }

    /// Queues a message without waiting.
    ///
    /// # Errors
    /// The message is not taken; the queue is as before.
    pub fn try_send(
        &self,
        stream: Stream,
        life: Option<Duration>,
        data: &[u8],
    ) -> Result<MessageId, SendError> {
        self.handle
            .worker
            .with(|driver, now| driver.send(now, self.handle.peer, stream, life, data))
    }

    /// Sends a message and waits until it has left or has expired, so that a fast caller is slowed to the pace of the
    /// path. Without a life it waits as long as it takes.
    ///
    /// # Errors
    /// [`SendError::Expired`] if it could not leave within its life; otherwise as for [`Socket::try_send`], except that
    /// a full queue is waited for.
    pub fn send(
        &self,
        stream: Stream,
        life: Option<Duration>,
        data: &[u8],
    ) -> Result<MessageId, SendError> {
        let wait = life.map_or(Wait::Forever, Wait::at_most);
        let id = self
            .enqueue(wait, stream, life, data)
            .map_err(expired_if_full)?;
        let peer = self.handle.peer;
        let departed =
            self.handle
                .worker
                .wait(wait, |shared, _| match shared.driver.departure(peer, id) {
                    Departure::Waiting => None,
                    departed => Some(departed),
                });
        if departed == Some(Departure::Left) {
            Ok(id)
        } else {
            Err(SendError::Expired)
        }
    }

    /// Sends a message, waiting at most until `deadline` for room in the queue.
    ///
    /// # Errors
    /// [`SendError::Full`] if there was no room until then; otherwise as for [`Socket::try_send`].
    pub fn send_until(
        &self,
        deadline: Instant,
        stream: Stream,
        life: Option<Duration>,
        data: &[u8],
    ) -> Result<MessageId, SendError> {
        self.enqueue(Wait::Until(deadline), stream, life, data)
    }

    fn enqueue(
        &self,
        wait: Wait,
        stream: Stream,
        life: Option<Duration>,
        data: &[u8],
    ) -> Result<MessageId, SendError> {
        let mut last = SendError::Closed;
        let peer = self.handle.peer;
        let done = self.handle.worker.wait(wait, |shared, now| {
            match shared.driver.send(now, peer, stream, life, data) {
                Err(full @ SendError::Full { .. }) => {
                    last = full;
                    None
                }
                other => Some(other),
            }
        });
        done.unwrap_or(Err(last))
    }

    /// Waits until everything sent has been confirmed or given up; returns whether that is so.
    pub fn flush(&self, wait: Wait) -> bool {
        let peer = self.handle.peer;
        let idle = |load: Option<(usize, usize)>| load.is_none_or(|(messages, _)| messages == 0);
        self.handle
            .worker
            .wait(wait, |shared, _| {
                idle(shared.driver.load(peer)).then_some(())
            })
            .is_some()
    }

    /// The next message, as soon as it is there.
    ///
    /// # Errors
    /// Nothing came in time, or the connection is closed.
    pub fn recv_asap(&self, wait: Wait) -> Result<Message, RecvError> {
        self.recv(Mode::Asap, wait)
    }

    /// The next message in order; a missing one is given up once it expires within `window`.
    ///
    /// # Errors
    /// Nothing came in time, or the connection is closed.
    pub fn recv_ordered(&self, window: Duration, wait: Wait) -> Result<Message, RecvError> {
        self.recv(Mode::Ordered { window }, wait)
    }

    /// The newest message; older ones are dropped.
    ///
    /// # Errors
    /// Nothing came in time, or the connection is closed.
    pub fn recv_latest(&self, wait: Wait) -> Result<Message, RecvError> {
        self.recv(Mode::Latest, wait)
    }

    /// The next message as `mode` picks it.
    ///
    /// # Errors
    /// Nothing came in time, or the connection is closed.
    pub fn recv(&self, mode: Mode, wait: Wait) -> Result<Message, RecvError> {
        self.take(wait, |driver, now, peer| driver.recv(now, peer, mode))
    }

    /// The next message in order, or in its place the gap that missing messages leave once they expire within `window`.
    ///
    /// # Errors
    /// Nothing came in time, or the connection is closed.
    pub fn recv_with_gaps(&self, window: Duration, wait: Wait) -> Result<Delivery, RecvError> {
        self.take(wait, |driver, now, peer| {
            driver.recv_with_gaps(now, peer, window)
        })
    }

    fn take<T>(
        &self,
        wait: Wait,
        mut take: impl FnMut(&mut Driver, Instant, PeerId) -> Option<T>,
    ) -> Result<T, RecvError> {
        let peer = self.handle.peer;
        let received = self.handle.worker.wait(wait, |shared, now| {
            match take(&mut shared.driver, now, peer) {
                Some(taken) => Some(Ok(taken)),
                None if shared.driver.addr(peer).is_none() => Some(Err(RecvError::Closed)),
                None => None,
            }
        });
        received.unwrap_or(Err(RecvError::TimedOut))
    }

    /// Counters and figures, since the connection came up.
    pub fn stats(&self) -> Option<Stats> {
        self.handle
            .worker
            .with(|driver, _| driver.stats(self.handle.peer))
    }

    /// A line for a log, about the network; at most one a second.
    pub fn poll_notice(&self) -> Option<String> {
        self.handle.worker.with(|driver, _| driver.poll_notice())
    }
}

fn expired_if_full(error: SendError) -> SendError {
    match error {
        SendError::Full { .. } => SendError::Expired,
        other => other,
    }
}
