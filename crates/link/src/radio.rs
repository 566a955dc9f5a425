//! `radio://`: a Crazyradio through the maintained crate `crazyflie-link` (feature `radio`).
//!
//! The crate is asynchronous and this loop is not, so a thread of its own drives it; two bounded queues and a wake-up
//! join them. A drone that is lost is called again once a second.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crazyflie_link::{Connection, LinkContext};
use crtp::{Admitted, Gate, Packet};
use crtp_uart::Outbox;
use tokio::sync::Notify;

use crate::interface::{
    Class, Event, Interest, Link, LinkStats, Outgoing, Received, Refusal, SendOutcome, State,
    class_of,
};
use crate::waker::{self, Sleeper, Waker};

/// Packets that wait to be taken; the oldest goes when there are more.
const INBOX: usize = 256;
/// Ordered packets that wait for the radio; further ones are refused.
const OUTBOX: usize = 64;
/// Events that wait to be taken.
const EVENTS: usize = 64;
/// Time between two calls of a drone that does not answer, and between two looks at the quality.
const PAUSE: Duration = Duration::from_secs(1);

/// What both threads see.
struct Shared {
    queues: Mutex<Queues>,
    /// Something is to be sent, or the link is to be closed.
    work: Notify,
    waker: Waker,
}

struct Queues {
    outbox: Outbox<Admitted>,
    inbox: VecDeque<Received>,
    events: VecDeque<Event>,
    state: State,
    quality: Option<f64>,
    stats: LinkStats,
}

impl Shared {
    /// A thread that panicked has left the queues whole: each change is one call.
    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn raise(&self, state: State, event: Event) {
        let mut queues = self.lock();
        if queues.state == State::Closed {
            return;
        }
        queues.stats.reopened += u64::from(queues.state == State::Down && state == State::Up);
        queues.state = state;
        if queues.events.len() < EVENTS {
            queues.events.push_back(event);
        }
        drop(queues);
        self.waker.wake();
    }

    fn keep(&self, packet: Packet) {
        if packet.is_null() {
            return;
        }
        let mut queues = self.lock();
        queues.stats.received += 1;
        if queues.inbox.len() == INBOX {
            queues.inbox.pop_front();
            queues.stats.bad_frames += 1;
        }
        queues.inbox.push_back(Received {
            packet,
            class: class_of(&packet),
            at: Instant::now(),
            expires: None,
        });
        drop(queues);
        self.waker.wake();
    }

    fn is_closed(&self) -> bool {
        self.lock().state == State::Closed
    }
}

/// A drone on the radio.
pub struct RadioLink {
    shared: Arc<Shared>,
    sleeper: Sleeper,
    gate: Gate,
    thread: Option<JoinHandle<()>>,
}

impl RadioLink {
    /// Calls the drone at `address` (`0/80/2M/E7E7E7E7E7`, what follows `radio://`) and calls again when it is lost.
    ///
    /// # Errors
    /// No thread or descriptor is to be had. A missing dongle is reported as an event.
    pub fn open(address: &str) -> io::Result<Self> {
        let (waker, sleeper) = waker::pair()?;
        let shared = Arc::new(Shared {
            queues: Mutex::new(Queues {
                outbox: Outbox::new(OUTBOX),
                inbox: VecDeque::with_capacity(INBOX),
                events: VecDeque::with_capacity(EVENTS),
                state: State::Connecting,
                quality: None,
                stats: LinkStats::default(),
            }),
            work: Notify::new(),
            waker,
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (served, uri) = (Arc::clone(&shared), format!("radio://{address}"));
        let builder = std::thread::Builder::new().name("radio".to_owned());
        let thread = builder.spawn(move || {
            let _ending = Ending(Arc::clone(&served));
            runtime.block_on(serve(&served, &uri));
        })?;
        Ok(Self {
            shared,
            sleeper,
            gate: Gate::new(),
            thread: Some(thread),
        })
    }

    fn refuse(&self, refusal: Refusal) -> SendOutcome {
        self.shared.lock().stats.count(refusal);
        SendOutcome::Refused(refusal)
    }
}

/// Calls until the link is closed.
async fn serve(shared: &Shared, uri: &str) {
    let context = LinkContext::new();
    let mut told = false;
    while !shared.is_closed() {
        match call(&context, uri).await {
            Ok(connection) => {
                told = false;
                shared.raise(State::Up, Event::Up(uri.to_owned()));
                let why = exchange(shared, &connection).await;
                shared.raise(
                    State::Down,
                    Event::Down(format!("{uri}: {why}; calling again")),
                );
                connection.close().await;
            }
            Err(error) if !std::mem::replace(&mut told, true) => {
                let text = format!("{uri}: {error}; calling again");
                let state = shared.lock().state;
                shared.raise(state, Event::Notice(text));
            }
            Err(_) => {}
        }
        let pause = tokio::time::sleep(PAUSE);
        tokio::select! {
            () = pause => {}
            () = shared.work.notified() => {}
        }
    }
}

async fn call(context: &LinkContext, uri: &str) -> Result<Connection, String> {
    // The driver panics where libusb cannot start, as on a machine without USB.
    rusb::Context::new().map_err(|error| format!("no USB here: {error}"))?;
    let opened = context.open_link(uri).await;
    opened.map_err(|error| error.to_string())
}

/// Tells when the thread ends although nobody has closed the link: the driver has panicked.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        let text = "the radio's thread has ended; open the link anew".to_owned();
        self.0.raise(State::Down, Event::Down(text));
    }
}

/// Moves packets until the connection is lost or to be closed; why.
async fn exchange(shared: &Shared, connection: &Connection) -> String {
    let mut look = tokio::time::interval(PAUSE);
    loop {
        tokio::select! {
            received = connection.recv_packet() => match received {
                Ok(packet) => match Packet::from_bytes(&Vec::from(packet)) {
                    Ok(packet) => shared.keep(packet),
                    Err(_) => shared.lock().stats.bad_frames += 1,
                },
                Err(error) => return error.to_string(),
            },
            () = shared.work.notified() => {
                if shared.is_closed() {
                    return "closed".to_owned();
                }
                if let Err(error) = transmit(shared, connection).await {
                    return error.to_string();
                }
            }
            why = connection.wait_close() => return why,
            _ = look.tick() => {
                let statistics = connection.link_statistics().await;
                shared.lock().quality = statistics.map(|statistics| statistics.link_quality.into());
            }
        }
    }
}

async fn transmit(shared: &Shared, connection: &Connection) -> crazyflie_link::error::Result<()> {
    loop {
        let Some((packet, _since)) = shared.lock().outbox.pop(Instant::now()) else {
            return Ok(());
        };
        connection
            .send_packet(packet.as_bytes().to_vec().into())
            .await?;
        shared.lock().stats.sent += 1;
    }
}

impl Link for RadioLink {
    fn interests(&self, out: &mut Vec<Interest>) {
        out.push(Interest {
            fd: self.sleeper.fd(),
            read: true,
            write: false,
        });
    }

    fn handle_ready(&mut self, _now: Instant) {
        // A wake-up that cannot be read is read with the next; the queues are looked at in any case.
        let _read_later = self.sleeper.drain();
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.shared.lock().outbox.expire(now);
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let expires = self.shared.lock().outbox.expires_at();
        expires.map(|at| (at, "packet expires"))
    }

    fn recv(&mut self, _now: Instant) -> Option<Received> {
        let received = self.shared.lock().inbox.pop_front()?;
        self.gate.observe(&received.packet);
        Some(received)
    }

    fn send(&mut self, now: Instant, outgoing: &Outgoing) -> SendOutcome {
        if self.state() != State::Up {
            return self.refuse(Refusal::NotConnected);
        }
        if outgoing.expires.is_some_and(|at| at <= now) {
            return self.refuse(Refusal::Expired);
        }
        let packet = match self.gate.admit(&outgoing.packet) {
            Ok(packet) => packet,
            Err(reject) => return self.refuse(Refusal::Unsafe(reject.reason())),
        };
        let key = match outgoing.class {
            Class::Latest { key } => Some(key),
            Class::Ordered => None,
        };
        let queued = self
            .shared
            .lock()
            .outbox
            .push(now, packet, key, outgoing.expires);
        if let Err(error) = queued {
            return self.refuse(crate::uart::refusal(error));
        }
        self.shared.work.notify_one();
        SendOutcome::Accepted
    }

    fn backlog(&self) -> usize {
        self.shared.lock().outbox.len()
    }

    fn poll_event(&mut self) -> Option<Event> {
        let event = self.shared.lock().events.pop_front()?;
        if matches!(event, Event::Down(_)) {
            self.gate.forget();
        }
        Some(event)
    }

    fn state(&self) -> State {
        self.shared.lock().state
    }

    fn stats(&self) -> LinkStats {
        let queues = self.shared.lock();
        let drops = queues.outbox.drops();
        LinkStats {
            dropped_expired: queues.stats.dropped_expired + drops.expired,
            dropped_down: queues.stats.dropped_down + drops.discarded,
            superseded: drops.superseded,
            ..queues.stats
        }
    }

    fn quality(&self) -> Option<f64> {
        self.shared.lock().quality
    }

    fn close(&mut self, _now: Instant) {
        let mut queues = self.shared.lock();
        queues.state = State::Closed;
        queues.outbox.clear();
        drop(queues);
        self.shared.work.notify_one();
    }
}

impl Drop for RadioLink {
    fn drop(&mut self) {
        self.close(Instant::now());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has released the dongle all the same.
            let _ended = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where there is no dongle, that is told once and in words, and closing ends the calls.
    #[test]
    fn a_missing_dongle_is_told_and_closing_ends_the_calls() {
        let mut link = RadioLink::open("99/80/2M/E7E7E7E7E7").unwrap();
        let end = Instant::now() + Duration::from_secs(20);
        let event = loop {
            if let Some(event) = link.poll_event() {
                break event;
            }
            assert!(Instant::now() < end);
            std::thread::yield_now();
        };
        assert!(
            matches!(&event, Event::Notice(text) if text.contains("radio://99/80/2M")),
            "{event:?}"
        );
        assert_eq!(link.state(), State::Connecting);
        link.close(Instant::now());
        assert_eq!(link.state(), State::Closed);
    }
}
