//! Runs box and responder on their threads: waits, receives, sends; every judgement is the rules'.
//!
//! One thread a side. Progress leaves the box's thread through atomics; nothing is printed or locked in there.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::network::{Cable, HELLO};
use super::responder::{Controller, Responder, Waiting};
use super::rules::{ControlBox, Event, Rules};
use super::score::Score;
use super::wire::{REPLY_BYTES, STATE_BYTES, State};
use crate::mono::{Clock as _, Mono, SystemClock, ns};
use crate::thread::process::prefault_stack;
use crate::thread::settings::{Applied, ThreadPolicy};

const IDLE: Duration = Duration::from_millis(50);
const START_DELAY: Duration = Duration::from_millis(20);

/// What the box's thread shows while it runs.
#[derive(Debug, Default)]
pub struct Live {
    /// States sent.
    pub sent: AtomicU64,
    /// Success rate over the last 100, in millionths.
    pub success_millionths: AtomicU64,
    /// Misses in a row.
    pub streak: AtomicU64,
    /// Stops so far.
    pub stops: AtomicU64,
}

/// How the box runs.
#[derive(Clone, Debug)]
pub struct BoxPlan {
    /// The contract.
    pub rules: Rules,
    /// For how long.
    pub duration: Duration,
    /// Its thread.
    pub thread: ThreadPolicy,
}

/// How the responder runs.
#[derive(Clone, Debug)]
pub struct ResponderPlan {
    /// How it waits.
    pub waiting: Waiting,
    /// Time it computes for each reply.
    pub work: Duration,
    /// Its thread; `busy_poll_us` applies in the busy-poll mode.
    pub thread: ThreadPolicy,
}

/// What a box leaves behind.
#[derive(Debug)]
pub struct BoxRun {
    /// Its thread as the kernel saw it.
    pub applied: Applied,
    /// The score.
    pub score: Score,
    /// States not judged when the run ended, 0 or 1.
    pub in_flight: u64,
    /// Ids at which it stopped and the misses in a row, the first 100.
    pub stops: Vec<(u64, u32)>,
}

/// What a responder leaves behind.
#[derive(Debug)]
pub struct ResponderRun {
    /// Its thread as the kernel saw it.
    pub applied: Applied,
    /// Replies sent.
    pub answered: u64,
    /// Datagrams that were no states.
    pub refused: u64,
}

/// A run that could not be done.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A socket or the kernel.
    #[error("control box: {0}")]
    Io(#[from] io::Error),
    /// The histograms.
    #[error("histogram: {0}")]
    Histogram(#[from] hdrhistogram::CreationError),
    /// A thread panicked.
    #[error("the thread of the {0} ended in a panic")]
    Panic(&'static str),
}

/// Runs both sides on a cable until the duration is over, the box stops for good, or `stop` is set.
///
/// # Errors
/// When a socket or a thread fails.
pub fn run_both<C: Controller + Send>(
    cable: &Cable,
    plan: &BoxPlan,
    responder_plan: &ResponderPlan,
    responder: Responder<C>,
    live: &Live,
    stop: &AtomicBool,
) -> Result<(BoxRun, ResponderRun), RunError> {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let far = thread::Builder::new().name("responder".to_owned());
        let far = far.spawn_scoped(scope, || {
            run_responder(&cable.far, responder_plan, responder, &over)
        })?;
        let near = thread::Builder::new().name("control box".to_owned());
        let near = near.spawn_scoped(scope, || run_box(&cable.near, plan, live, stop))?;
        let near = near.join();
        over.store(true, Ordering::Relaxed);
        let far = far.join().map_err(|_| RunError::Panic("responder"))??;
        Ok((near.map_err(|_| RunError::Panic("control box"))??, far))
    })
}

/// Runs the box on the calling thread.
///
/// # Errors
/// When the socket fails other than by "nobody listens yet".
pub fn run_box(
    socket: &UdpSocket,
    plan: &BoxPlan,
    live: &Live,
    stop: &AtomicBool,
) -> Result<BoxRun, RunError> {
    socket.set_nonblocking(true)?;
    prefault_stack();
    let start = SystemClock.now() + START_DELAY;
    let mut machine = ControlBox::new(plan.rules, start)?;
    let mut stops = Vec::with_capacity(100);
    let applied = plan.thread.apply()?;
    let end = start + plan.duration;
    while let Some((at, _)) = machine.poll_timeout() {
        if stop.load(Ordering::Relaxed) || SystemClock.now() >= end {
            break;
        }
        wait_until(socket, at.min(end))?;
        turn(&mut machine, socket, &mut stops)?;
        show(&machine, live);
    }
    let in_flight = machine.in_flight();
    Ok(BoxRun {
        applied,
        score: machine.finish(),
        in_flight,
        stops,
    })
}

fn turn(
    machine: &mut ControlBox,
    socket: &UdpSocket,
    stops: &mut Vec<(u64, u32)>,
) -> io::Result<()> {
    take_replies(machine, socket)?;
    machine.handle_timeout(SystemClock.now());
    if let Some(state) = machine.poll_transmit() {
        send_state(machine, socket, &state)?;
    }
    match machine.poll_event() {
        Some(Event::Stopped { id, streak, .. }) if stops.len() < stops.capacity() => {
            stops.push((id, streak))
        }
        Some(Event::Stopped { .. } | Event::Recovered) | None => {}
    }
    Ok(())
}

fn take_replies(machine: &mut ControlBox, socket: &UdpSocket) -> io::Result<()> {
    let mut bytes = [0u8; REPLY_BYTES + 1];
    loop {
        match socket.recv(&mut bytes) {
            Ok(length) if bytes[..length] == *HELLO => {}
            Ok(length) => {
                machine.handle_reply(SystemClock.now(), &bytes[..length]);
            }
            Err(error) if nothing_there(&error) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

fn send_state(machine: &mut ControlBox, socket: &UdpSocket, state: &State) -> io::Result<()> {
    let mut bytes = [0u8; STATE_BYTES];
    state.encode(&mut bytes);
    match socket.send(&bytes) {
        Ok(_) => Ok(()),
        Err(error) if nothing_there(&error) => {
            machine.note_send_error();
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// A full buffer, or an answer of the network that nobody listens (yet).
fn nothing_there(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionRefused | io::ErrorKind::Interrupted
    )
}

fn wait_until(socket: &UdpSocket, at: Mono) -> io::Result<()> {
    let left = at - SystemClock.now();
    let wait = Timespec::try_from(left).map_err(io::Error::other)?;
    match poll(
        &mut [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)],
        Some(&wait),
    ) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn show(machine: &ControlBox, live: &Live) {
    let score = machine.score();
    live.sent.store(score.counts.sent, Ordering::Relaxed);
    live.success_millionths
        .store((score.success_rate() * 1e6) as u64, Ordering::Relaxed);
    live.streak
        .store(u64::from(score.streak), Ordering::Relaxed);
    live.stops.store(score.counts.stops, Ordering::Relaxed);
}

/// Runs the responder on the calling thread until `over` is set.
///
/// # Errors
/// When the socket fails other than by "nobody listens yet".
pub fn run_responder<C: Controller>(
    socket: &UdpSocket,
    plan: &ResponderPlan,
    mut responder: Responder<C>,
    over: &AtomicBool,
) -> Result<ResponderRun, RunError> {
    socket.set_nonblocking(plan.waiting == Waiting::Spin)?;
    socket.set_read_timeout(Some(IDLE))?;
    prefault_stack();
    let mut applied = plan.thread.apply()?;
    if plan.waiting == Waiting::BusyPoll {
        applied
            .refusals
            .extend(plan.thread.apply_to_socket(&socket));
    }
    let mut run = ResponderRun {
        applied,
        answered: 0,
        refused: 0,
    };
    let mut bytes = [0u8; STATE_BYTES + 1];
    while !over.load(Ordering::Relaxed) {
        match socket.recv(&mut bytes) {
            Ok(length) => reply(
                socket,
                plan.work,
                &mut responder,
                &bytes[..length],
                &mut run,
            )?,
            Err(error) if nothing_there(&error) => std::hint::spin_loop(),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(run)
}

fn reply<C: Controller>(
    socket: &UdpSocket,
    work: Duration,
    responder: &mut Responder<C>,
    bytes: &[u8],
    run: &mut ResponderRun,
) -> io::Result<()> {
    let began = SystemClock.now();
    let Ok(state) = State::decode(bytes) else {
        run.refused += 1;
        return Ok(());
    };
    let (command, hold) = responder.handle_state(&state);
    let mut datagram = [0u8; REPLY_BYTES];
    command.encode(&mut datagram);
    work_until(began + work);
    if ns(hold) > 0 {
        thread::sleep(hold);
    }
    match socket.send(&datagram) {
        Ok(_) => run.answered += 1,
        Err(error) if nothing_there(&error) => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

fn work_until(end: Mono) {
    while SystemClock.now() < end {
        std::hint::spin_loop();
    }
}
