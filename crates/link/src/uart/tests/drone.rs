//! Two drones for tests: one that speaks through our own device session, one that counts every byte itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crtp_uart::cpx::{self, Decoder, Function, Item, System};
use crtp_uart::session::Event;
use crtp_uart::{Config, Device, Pty, Pump, Session};
use rustix::event::{PollFd, PollFlags, Timespec};

/// Echoes every packet, and remembers the SYSTEM messages.
pub(super) struct Drone {
    stop: Arc<AtomicBool>,
    frozen: Arc<AtomicBool>,
    thread: JoinHandle<(Session<Device>, Vec<System>)>,
}

impl Drone {
    pub(super) fn power_on(pty: Pty) -> Self {
        Self::plug_in(pty, Session::device(Config::device(), Instant::now()))
    }

    /// A drone that had power before.
    pub(super) fn plug_in(pty: Pty, session: Session<Device>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let frozen = Arc::new(AtomicBool::new(false));
        let (stopped, still) = (stop.clone(), frozen.clone());
        let thread = std::thread::spawn(move || run(&pty, session, &stopped, &still));
        Self {
            stop,
            frozen,
            thread,
        }
    }

    /// From now on nobody reads or writes its end of the line.
    pub(super) fn freeze(&self) {
        self.frozen.store(true, Ordering::Relaxed);
    }

    /// The port vanishes; the drone lives on.
    pub(super) fn unplug(self) -> (Session<Device>, Vec<System>) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn run(
    pty: &Pty,
    mut session: Session<Device>,
    stop: &AtomicBool,
    frozen: &AtomicBool,
) -> (Session<Device>, Vec<System>) {
    let mut pump = Pump::new();
    let mut system = Vec::new();
    loop {
        // What was written before the plug was pulled is read still: goodbye is the last that a link says.
        let last = stop.load(Ordering::Relaxed);
        if frozen.load(Ordering::Relaxed) {
            if last {
                return (session, system);
            }
            std::thread::sleep(Duration::from_millis(1));
            continue;
        }
        if !last {
            wait(pty, Duration::from_millis(10));
        }
        let now = Instant::now();
        pump.receive(now, pty, &mut session).unwrap();
        session.handle_timeout(now);
        while session.backlog() < 4
            && let Some(packet) = session.recv()
        {
            session.send(now, packet, None, None).unwrap();
        }
        pump.transmit(now, pty, &mut session).unwrap();
        system.extend(std::iter::from_fn(|| session.poll_event()).filter_map(message));
        if last {
            return (session, system);
        }
    }
}

fn message(event: Event) -> Option<System> {
    match event {
        Event::System(message) => Some(message),
        _ => None,
    }
}

fn wait(pty: &Pty, at_most: Duration) {
    let timeout = Timespec::try_from(at_most).unwrap();
    rustix::event::poll(&mut [PollFd::new(pty, PollFlags::IN)], Some(&timeout)).unwrap();
}

/// What the byte counter has seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) crtp: u32,
    /// Frames that came before the token for them was written.
    pub(super) without_credit: u32,
    pub(super) damaged: u64,
}

/// Grants three tokens at once, then one for each frame, but only some time after it came.
pub(super) struct Strict {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Seen>,
}

impl Strict {
    pub(super) fn start(pty: Pty) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || count(&pty, &stopped));
        Self { stop, thread }
    }

    pub(super) fn stop(self) -> Seen {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn count(pty: &Pty, stop: &AtomicBool) -> Seen {
    let mut seen = Seen::default();
    let mut decoder = Decoder::new();
    let mut bytes = [0; 512];
    let mut credit = true;
    // Opening the port drops what was written before, so this is said until it is heard.
    while decoder.stats().tokens == 0 {
        rustix::io::write(pty, &cpx::CLEAR_TO_SEND.repeat(3)).unwrap();
        wait(pty, Duration::from_millis(100));
        read(pty, &mut bytes, &mut decoder, &mut credit, &mut seen);
    }
    while !stop.load(Ordering::Relaxed) {
        wait(pty, Duration::from_millis(10));
        read(pty, &mut bytes, &mut decoder, &mut credit, &mut seen);
        // A second frame in flight would come in this time.
        wait(pty, Duration::from_millis(2));
        read(pty, &mut bytes, &mut decoder, &mut credit, &mut seen);
        if !credit {
            credit = true;
            rustix::io::write(pty, &cpx::CLEAR_TO_SEND).unwrap();
        }
    }
    seen.damaged = decoder.stats().damaged() + decoder.stats().resync_bytes;
    seen
}

fn read(pty: &Pty, bytes: &mut [u8], decoder: &mut Decoder, credit: &mut bool, seen: &mut Seen) {
    let count = rustix::io::read(pty, &mut *bytes).unwrap_or(0);
    let mut input = &bytes[..count];
    while let Some(item) = decoder.next(&mut input) {
        if let Item::Frame(frame) = item {
            seen.without_credit += u32::from(!std::mem::replace(credit, false));
            seen.crtp += u32::from(frame.header.function == Function::CRTP);
        }
    }
}
