//! A serial driver with the habits of slow ones, on a real port: what it does between packets is the experiment.
//!
//! Frames are encoded and decoded by the same code as ours; only reads, waits, threads and null packets differ.

use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use crtp::{Gate, Packet};
use crtp_uart::cpx::{self, CLEAR_TO_SEND, Function, Item, System};
use crtp_uart::{Serial, syslink};
use link::uri::Framing;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tap::{Direction, Hop, MonoNs, Stage, Tap};

use super::habits::{Habits, NAP, NULL_AFTER};
use super::interpreter::Interpreter;

/// A request without an answer for this long is given up.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);
/// Longest time without a look at whether to end.
const LOOK: Duration = Duration::from_millis(20);

/// The port and what its threads share.
pub(super) struct Driver {
    serial: Serial,
    framing: Framing,
    habits: Habits,
    interpreter: Interpreter,
    /// Whether the drone is ready for a frame.
    clear: Mutex<bool>,
    cleared: Condvar,
    over: AtomicBool,
}

/// What reads bytes, on one thread. A frame that has begun when the greeting ends must not be cut: the drone would wait
/// for its clear-to-send for ever.
pub(super) struct Reader {
    cpx: cpx::Decoder,
    syslink: syslink::Decoder,
    began: Option<MonoNs>,
    tap: Tap,
}

impl Reader {
    fn new() -> Self {
        Self {
            cpx: cpx::Decoder::new(),
            syslink: syslink::Decoder::default(),
            began: None,
            tap: Tap::off(),
        }
    }
}

impl Driver {
    /// Opens the port and greets the drone.
    pub(super) fn open(
        path: &Path,
        baud: u32,
        framing: Framing,
        habits: Habits,
        step: Duration,
    ) -> anyhow::Result<(Self, Reader)> {
        let driver = Self {
            serial: Serial::open(path, baud)?,
            framing,
            habits,
            interpreter: Interpreter::new(habits.interpreter.then_some(step)),
            clear: Mutex::new(framing == Framing::Syslink),
            cleared: Condvar::new(),
            over: AtomicBool::new(false),
        };
        let mut reader = Reader::new();
        if framing == Framing::Cpx {
            driver.interpreter.enter();
            driver.greet(&mut reader)?;
            driver.interpreter.leave();
        }
        Ok((driver, reader))
    }

    /// The drone offers clear-to-send until it hears one; then it wants to know that CRTP goes over this line.
    fn greet(&self, reader: &mut Reader) -> anyhow::Result<()> {
        for message in [
            None,
            Some(System::UseThisLink(true)),
            Some(System::ClientConnected(true)),
        ] {
            let end = Instant::now() + 5 * PATIENCE;
            while !self.is_clear() {
                anyhow::ensure!(
                    Instant::now() < end,
                    "no clear-to-send from the simulated drone"
                );
                self.receive(reader, LOOK)?;
            }
            match message {
                None => self.write(&CLEAR_TO_SEND)?,
                Some(message) => {
                    self.set_clear(false);
                    self.write(&cpx::system(message))?;
                }
            }
        }
        Ok(())
    }

    fn is_clear(&self) -> bool {
        *self.clear.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_clear(&self, clear: bool) {
        let clear = clear || self.framing == Framing::Syslink;
        *self.clear.lock().unwrap_or_else(PoisonError::into_inner) = clear;
        self.cleared.notify_all();
    }

    fn write(&self, bytes: &[u8]) -> anyhow::Result<()> {
        let written = loop {
            match rustix::io::write(&self.serial, bytes) {
                // A tty refuses a second writer while the first is still in its call.
                Err(Errno::AGAIN) => std::thread::yield_now(),
                written => break written?,
            }
        };
        anyhow::ensure!(
            written == bytes.len(),
            "the port took {written} of {} bytes",
            bytes.len()
        );
        Ok(())
    }

    /// Writes a packet; the drone is ready for it.
    fn transmit(&self, packet: &Packet, tap: &mut Tap) -> anyhow::Result<()> {
        self.set_clear(false);
        note(tap, Stage::UC, packet);
        let admitted = Gate::new()
            .admit(packet)
            .map_err(|reject| anyhow::anyhow!("{reject:?}"))?;
        let written = self.interpreter.outside(|| {
            let written = match self.framing {
                Framing::Cpx => self.write(&cpx::to_drone(&admitted)),
                Framing::Syslink => self.write(&syslink::to_drone(&admitted)),
            };
            note(tap, Stage::U1, packet);
            written
        });
        self.interpreter.step();
        written
    }

    /// Waits no longer than `patience` for bytes and takes what one read call gives; packets of the drone.
    fn receive(&self, reader: &mut Reader, patience: Duration) -> anyhow::Result<Vec<Packet>> {
        let mut bytes = [0; 256];
        let most = if self.habits.single_bytes {
            1
        } else {
            bytes.len()
        };
        let read = self
            .interpreter
            .outside(|| self.read(&mut bytes[..most], patience))?;
        if read == 0 {
            return Ok(Vec::new());
        }
        let came = MonoNs::now();
        self.interpreter.step();
        let mut input = &bytes[..read];
        let mut packets = Vec::new();
        loop {
            reader.began.get_or_insert(came);
            let Some(heard) = self.next(reader, &mut input) else {
                break;
            };
            if let (Some(packet), Some(began)) = (heard, reader.began) {
                let stamps = [(Stage::U3, began), (Stage::U4, came)];
                for (stage, at) in stamps {
                    reader
                        .tap
                        .record(&Hop::new(at, 0, stage, Direction::Down, packet.as_bytes()));
                }
                if self.framing == Framing::Cpx {
                    self.interpreter.outside(|| self.write(&CLEAR_TO_SEND))?;
                }
                self.interpreter.step();
                let parsed = Hop::new(
                    MonoNs::now(),
                    0,
                    Stage::U5,
                    Direction::Down,
                    packet.as_bytes(),
                );
                reader.tap.record(&parsed);
                packets.push(packet);
            }
            reader.began = None;
            if input.is_empty() {
                break;
            }
        }
        Ok(packets)
    }

    /// The next thing in the stream: a packet, or something else that was dealt with.
    fn next(&self, reader: &mut Reader, input: &mut &[u8]) -> Option<Option<Packet>> {
        if self.framing == Framing::Syslink {
            return reader.syslink.next(input).map(Some);
        }
        match reader.cpx.next(input)? {
            Item::ClearToSend => {
                self.set_clear(true);
                Some(None)
            }
            Item::Frame(frame) if frame.header.function == Function::CRTP => {
                Some(Packet::from_bytes(frame.data).ok())
            }
            Item::Frame(_) => Some(None),
        }
    }

    /// One read call once there is something; 0 when nothing came in time.
    fn read(&self, bytes: &mut [u8], patience: Duration) -> anyhow::Result<usize> {
        let end = Instant::now() + patience;
        loop {
            match rustix::io::read(&self.serial, &mut *bytes) {
                Ok(0) => bail!("the port is gone"),
                Ok(count) => return Ok(count),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(0);
            }
            if self.habits.sleeps {
                std::thread::sleep(NAP.min(left));
            } else {
                let fd = self.serial.as_fd();
                let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
                match poll(&mut fds, Some(&Timespec::try_from(left)?)) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }

    /// Sends each request at its time and waits for its answer; how many had none.
    pub(super) fn run(
        &self,
        mut reader: Reader,
        requests: impl Iterator<Item = (Instant, Packet)>,
        mut tap: impl FnMut() -> Tap,
    ) -> anyhow::Result<u64> {
        if self.habits.hand_off {
            reader.tap = tap();
            return self.run_threads(reader, requests, &mut tap);
        }
        let mut own = tap();
        reader.tap = tap();
        let mut lost = 0;
        self.interpreter.enter();
        for (at, request) in requests {
            self.idle(at, &mut reader, &mut own)?;
            note(&mut own, Stage::G0, &request);
            note(&mut own, Stage::U0, &request);
            let end = Instant::now() + PATIENCE;
            while !self.is_clear() && Instant::now() < end {
                self.receive(&mut reader, LOOK)?;
            }
            self.transmit(&request, &mut own)?;
            lost += u64::from(!self.await_answer(&request, end, &mut reader, &mut own)?);
        }
        self.interpreter.leave();
        Ok(lost)
    }

    /// Reads until `at`, with null packets if that is the habit.
    fn idle(&self, at: Instant, reader: &mut Reader, tap: &mut Tap) -> anyhow::Result<()> {
        loop {
            let left = at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            self.poll_once(left, reader, tap)?;
        }
    }

    fn poll_once(
        &self,
        left: Duration,
        reader: &mut Reader,
        tap: &mut Tap,
    ) -> anyhow::Result<Vec<Packet>> {
        let nulls = self.habits.null_packets;
        let patience = if nulls { left.min(NULL_AFTER) } else { left };
        let packets = self.receive(reader, patience)?;
        if nulls && packets.is_empty() && self.is_clear() {
            self.transmit(&Packet::NULL, tap)?;
        }
        Ok(packets)
    }

    fn await_answer(
        &self,
        request: &Packet,
        end: Instant,
        reader: &mut Reader,
        tap: &mut Tap,
    ) -> anyhow::Result<bool> {
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            for packet in self.poll_once(left, reader, tap)? {
                if is_answer(request, &packet) {
                    note_back(tap, &packet);
                    return Ok(true);
                }
            }
        }
    }

    fn run_threads(
        &self,
        reader: Reader,
        requests: impl Iterator<Item = (Instant, Packet)>,
        tap: &mut impl FnMut() -> Tap,
    ) -> anyhow::Result<u64> {
        let (out, queue) = mpsc::sync_channel::<Packet>(1);
        let (deliver, inbox) = mpsc::channel::<Packet>();
        let (mut own, mut sender_tap) = (tap(), tap());
        std::thread::scope(|scope| {
            let sender = scope.spawn(move || self.sender(&queue, &mut sender_tap));
            let receiver = scope.spawn(move || self.receiver(reader, &deliver));
            self.interpreter.enter();
            let mut lost = 0;
            for (at, request) in requests {
                let pause = at.saturating_duration_since(Instant::now());
                self.interpreter.outside(|| std::thread::sleep(pause));
                note(&mut own, Stage::G0, &request);
                let end = Instant::now() + PATIENCE;
                if self.interpreter.outside(|| out.send(request)).is_err() {
                    break;
                }
                self.interpreter.step();
                lost += u64::from(!self.take_answer(&request, end, &inbox, &mut own));
            }
            self.interpreter.leave();
            self.over.store(true, Ordering::Relaxed);
            drop(out);
            for thread in [sender, receiver] {
                thread
                    .join()
                    .map_err(|_| anyhow::anyhow!("a thread panicked"))?
                    .context("driver")?;
            }
            Ok(lost)
        })
    }

    fn take_answer(
        &self,
        request: &Packet,
        end: Instant,
        inbox: &mpsc::Receiver<Packet>,
        tap: &mut Tap,
    ) -> bool {
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let Ok(packet) = self.interpreter.outside(|| inbox.recv_timeout(left)) else {
                return false;
            };
            self.interpreter.step();
            if is_answer(request, &packet) {
                note_back(tap, &packet);
                return true;
            }
        }
    }

    fn sender(&self, queue: &mpsc::Receiver<Packet>, tap: &mut Tap) -> anyhow::Result<()> {
        let patience = if self.habits.null_packets {
            NULL_AFTER
        } else {
            LOOK
        };
        self.interpreter.enter();
        loop {
            let packet = match self.interpreter.outside(|| queue.recv_timeout(patience)) {
                Ok(packet) => packet,
                Err(RecvTimeoutError::Timeout) if self.habits.null_packets => Packet::NULL,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            self.interpreter.step();
            note(tap, Stage::U0, &packet);
            if self.interpreter.outside(|| self.wait_clear()) {
                self.transmit(&packet, tap)?;
            }
        }
        self.interpreter.leave();
        Ok(())
    }

    /// Whether clear-to-send came in time.
    fn wait_clear(&self) -> bool {
        let clear = self.clear.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .cleared
            .wait_timeout_while(clear, PATIENCE, |clear| !*clear);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn receiver(&self, mut reader: Reader, deliver: &mpsc::Sender<Packet>) -> anyhow::Result<()> {
        self.interpreter.enter();
        while !self.over.load(Ordering::Relaxed) {
            for packet in self.receive(&mut reader, LOOK)? {
                // The caller may have ended already.
                let _ended = deliver.send(packet);
            }
        }
        self.interpreter.leave();
        Ok(())
    }
}

/// The drone's echo has the bytes of its request.
pub(super) fn is_answer(request: &Packet, packet: &Packet) -> bool {
    packet.kind() == request.kind() && packet.data() == request.data()
}

/// A packet to the drone passes now; null packets are none of the experiment's.
fn note(tap: &mut Tap, stage: Stage, packet: &Packet) {
    if !packet.is_null() {
        tap.record(&Hop::new(
            MonoNs::now(),
            0,
            stage,
            Direction::Up,
            packet.as_bytes(),
        ));
    }
}

/// The caller has its answer.
pub(super) fn note_back(tap: &mut Tap, packet: &Packet) {
    let hop = Hop::new(
        MonoNs::now(),
        0,
        Stage::G7,
        Direction::Down,
        packet.as_bytes(),
    );
    tap.record(&hop);
}
