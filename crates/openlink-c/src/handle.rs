//! A link and the thread that drives it. Owns both queues between that thread and its users, and their bounds.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crtp::Packet;
use link::{Event, Link, Outgoing, Reactor, Role, State, Uri, UriError, Waker, class_of};

/// Packets that wait to be received; the oldest goes when there are more.
const INBOX: usize = 1024;
/// Packets that wait to be sent; further ones are refused.
const OUTBOX: usize = 256;
/// How often a link that refuses a packet for lack of room is asked again, and how old the status may be.
const LOOK: Duration = Duration::from_millis(100);
/// Time for the last packets and the goodbye.
const LINGER: Duration = Duration::from_millis(300);

/// Why a link cannot be opened.
#[derive(Debug)]
pub enum OpenError {
    /// The text is no link.
    Uri(UriError),
    /// The link says why.
    Link(link::OpenError),
    /// There is no thread or no descriptor to be had.
    System(io::Error),
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Uri(error) => error.fmt(f),
            Self::Link(error) => error.fmt(f),
            Self::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}

/// Why a packet was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// 0 or more than 31 bytes.
    NoPacket,
    /// Too many packets wait.
    Full,
    /// The link is closed.
    Closed,
}

/// State of a link and what it says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// State.
    pub state: State,
    /// See [`Link::quality`].
    pub quality: Option<f64>,
    /// The last event in words.
    pub text: String,
    /// Packets that were refused by the link or expired before they could leave, and packets that nobody received
    /// in time.
    pub dropped: u64,
}

struct Shared {
    queues: Mutex<Queues>,
    arrived: Condvar,
}

struct Queues {
    inbox: VecDeque<Packet>,
    outbox: VecDeque<Packet>,
    status: Status,
    closing: bool,
}

impl Shared {
    /// A user that panicked has left the queues whole: each change is one call.
    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open link.
pub struct Handle {
    shared: Arc<Shared>,
    waker: Waker,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Handle {
    /// Opens the link that `uri` names and calls its other end (unless the URI says to listen).
    ///
    /// # Errors
    /// [`OpenError`], naming what is wrong. That nobody answers is no error: see [`Handle::status`].
    pub fn open(uri: &str) -> Result<Self, OpenError> {
        let uri: Uri = uri.parse().map_err(OpenError::Uri)?;
        let link = link::open(Instant::now(), &uri, Role::To).map_err(OpenError::Link)?;
        let reactor = Reactor::new().map_err(OpenError::System)?;
        let waker = reactor.waker();
        let shared = Arc::new(Shared {
            queues: Mutex::new(Queues {
                inbox: VecDeque::with_capacity(INBOX),
                outbox: VecDeque::with_capacity(OUTBOX),
                status: Status {
                    state: State::Connecting,
                    quality: None,
                    text: format!("calling {uri}"),
                    dropped: 0,
                },
                closing: false,
            }),
            arrived: Condvar::new(),
        });
        let driver = Driver {
            shared: Arc::clone(&shared),
            reactor,
            links: [link],
            held: None,
        };
        let builder = std::thread::Builder::new().name("openlink".to_owned());
        let thread = builder
            .spawn(move || driver.run())
            .map_err(OpenError::System)?;
        let thread = Mutex::new(Some(thread));
        Ok(Self {
            shared,
            waker,
            thread,
        })
    }

    /// Queues a packet, header first. Setpoints go newest first, everything else in order.
    ///
    /// # Errors
    /// [`SendError`]; the packet is dropped.
    pub fn send(&self, bytes: &[u8]) -> Result<(), SendError> {
        let packet = Packet::from_bytes(bytes).map_err(|_| SendError::NoPacket)?;
        let mut queues = self.shared.lock();
        if queues.closing || queues.status.state == State::Closed {
            return Err(SendError::Closed);
        }
        if queues.outbox.len() >= OUTBOX {
            return Err(SendError::Full);
        }
        queues.outbox.push_back(packet);
        drop(queues);
        self.waker.wake();
        Ok(())
    }

    /// The next packet, for which it waits; `None` once `wait` is over or the link is closed.
    #[must_use]
    pub fn receive(&self, wait: Duration) -> Option<Packet> {
        let idle = |queues: &mut Queues| queues.inbox.is_empty() && !queues.closing;
        let waited = self
            .shared
            .arrived
            .wait_timeout_while(self.shared.lock(), wait, idle);
        let (mut queues, _) = waited.unwrap_or_else(PoisonError::into_inner);
        queues.inbox.pop_front()
    }

    /// State now, as of the last 100 ms.
    #[must_use]
    pub fn status(&self) -> Status {
        self.shared.lock().status.clone()
    }

    /// Lets the last packets leave, says goodbye and closes; waits some hundred milliseconds at most. Whoever waits
    /// in [`Handle::receive`] returns. Closing twice does nothing.
    pub fn close(&self) {
        self.shared.lock().closing = true;
        self.shared.arrived.notify_all();
        self.waker.wake();
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            // A driver that panicked has closed its sockets all the same.
            let _ended = thread.join();
        }
        self.shared.lock().status.state = State::Closed;
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.close();
    }
}

/// What the thread owns.
struct Driver {
    shared: Arc<Shared>,
    reactor: Reactor,
    links: [Box<dyn Link>; 1],
    /// A packet the link had no room for.
    held: Option<Packet>,
}

impl Driver {
    fn run(mut self) {
        while !self.shared.lock().closing {
            if let Err(error) = self.turn(Instant::now() + LOOK) {
                self.shared.lock().status.text = error.to_string();
                break;
            }
        }
        self.finish();
    }

    fn turn(&mut self, until: Instant) -> io::Result<()> {
        let now = self.reactor.turn(&mut self.links, Some(until))?;
        self.send(now);
        self.receive(now);
        Ok(())
    }

    fn send(&mut self, now: Instant) {
        let [link] = &mut self.links;
        while link.state() == State::Up {
            let Some(packet) = self
                .held
                .take()
                .or_else(|| self.shared.lock().outbox.pop_front())
            else {
                return;
            };
            let outgoing = Outgoing {
                packet,
                class: class_of(&packet),
                expires: None,
            };
            match link.send(now, &outgoing) {
                link::SendOutcome::Accepted => {}
                link::SendOutcome::Refused(link::Refusal::QueueFull) => {
                    self.held = Some(packet);
                    return;
                }
                link::SendOutcome::Refused(_) => self.shared.lock().status.dropped += 1,
            }
        }
    }

    fn receive(&mut self, now: Instant) {
        let [link] = &mut self.links;
        let mut queues = self.shared.lock();
        while let Some(received) = link.recv(now) {
            if received.packet.is_null() {
                continue;
            }
            if queues.inbox.len() == INBOX {
                queues.inbox.pop_front();
                queues.status.dropped += 1;
            }
            queues.inbox.push_back(received.packet);
        }
        while let Some(Event::Up(text) | Event::Down(text) | Event::Notice(text)) =
            link.poll_event()
        {
            queues.status.text = text;
        }
        queues.status.state = link.state();
        queues.status.quality = link.quality();
        if !queues.inbox.is_empty() {
            self.shared.arrived.notify_one();
        }
    }

    /// Lets what is queued leave, then says goodbye.
    fn finish(&mut self) {
        let end = Instant::now() + LINGER;
        while self.owes() && Instant::now() < end && self.turn(end).is_ok() {}
        let [link] = &mut self.links;
        link.close(Instant::now());
        // A serial link that still owes its goodbye says it when it is dropped.
        link.flush(Instant::now());
    }

    fn owes(&self) -> bool {
        let [link] = &self.links;
        let waits = self.held.is_some() || !self.shared.lock().outbox.is_empty();
        link.state() == State::Up && (waits || link.backlog() > 0)
    }
}
