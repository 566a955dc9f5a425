//! `openlink doctor uart`: a serial port with its TX and RX joined, as the bridge uses it.
//!
//! It listens first and refuses to write where anything speaks, since bytes that are no frames reset a drone. What it
//! writes are clear-to-send tokens and whole frames, the only bytes that a drone that was left on would bear.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use crtp::{Channel, Gate, Packet, Port};
use crtp_uart::{Serial, cpx};
use link::uri::DEFAULT_BAUD;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use serde::Serialize;

use crate::out;

/// A drone that waits for a host offers clear-to-send every 100 ms.
const LISTEN: Duration = Duration::from_millis(350);
/// Time for a frame to come back; at 9600 bit/s the longest takes 38 ms.
const PATIENCE: Duration = Duration::from_millis(500);
/// Tokens that have to come back before the first frame is written.
const TOKENS: u32 = 3;

/// Command line of `openlink doctor uart`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The port, its TX and RX joined, no drone on it.
    #[arg(value_name = "DEVICE")]
    device: PathBuf,
    /// Speed, bit/s.
    #[arg(long, value_name = "BAUD", default_value_t = DEFAULT_BAUD, value_parser = clap::value_parser!(u32).range(9_600..=2_000_000))]
    baud: u32,
    /// Frames of full size to send, one after the other.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    frames: u32,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

/// What came back.
#[derive(Debug, Default, Serialize)]
struct Outcome {
    device: PathBuf,
    baud: u32,
    low_latency: String,
    /// Bytes of a frame.
    bytes: usize,
    frames: u32,
    whole: u32,
    damaged: u32,
    missing: u32,
    /// Time that a frame needs on the line, us.
    line_us: u64,
    /// Smallest, median, 99th percentile and largest time until a whole frame was back, us; absent where none was.
    round_trip_us: Option<[u64; 4]>,
}

/// Sends and compares. Exit code 0: every frame came back whole; 1: not.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let serial = Serial::open(&args.device, args.baud)?;
    let failed = || format!("{}", args.device.display());
    check_silence(&serial, &args.device).with_context(failed)?;
    check_loop(&serial, &args.device).with_context(failed)?;
    let outcome = measure(&serial, args).with_context(failed)?;
    if args.json {
        out::json(&outcome);
    } else {
        out::line(outcome.text());
    }
    Ok(ExitCode::from(u8::from(outcome.whole < outcome.frames)))
}

fn check_silence(serial: &Serial, device: &Path) -> anyhow::Result<()> {
    let heard = read(serial, 1, LISTEN)?;
    if !heard.is_empty() {
        bail!(
            "something speaks on {}: take the drone off, join TX and RX, and keep the login shell off the port",
            device.display()
        );
    }
    Ok(())
}

fn check_loop(serial: &Serial, device: &Path) -> anyhow::Result<()> {
    for _ in 0..TOKENS {
        if exchange(serial, &cpx::CLEAR_TO_SEND)? != cpx::CLEAR_TO_SEND {
            bail!(
                "what is written to {} does not come back: join TX and RX",
                device.display()
            );
        }
    }
    Ok(())
}

fn measure(serial: &Serial, args: &Args) -> anyhow::Result<Outcome> {
    let mut times = Vec::with_capacity(args.frames as usize);
    let mut outcome = Outcome {
        device: args.device.clone(),
        baud: serial.speed(),
        low_latency: serial.low_latency().to_string(),
        frames: args.frames,
        ..Outcome::default()
    };
    for number in 0..args.frames {
        let frame = frame(number)?;
        let began = Instant::now();
        let back = exchange(serial, &frame)?;
        if back == frame[..] {
            times.push(began.elapsed().as_micros() as u64);
        } else if back.len() < frame.len() {
            outcome.missing += 1;
        } else {
            outcome.damaged += 1;
        }
        outcome.bytes = frame.len();
    }
    times.sort_unstable();
    outcome.whole = times.len() as u32;
    outcome.line_us = 10_000_000 * outcome.bytes as u64 / u64::from(outcome.baud.max(1));
    outcome.round_trip_us = times.first().zip(times.last()).map(|(&min, &max)| {
        let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
        [min, at(0.5), at(0.99), max]
    });
    Ok(outcome)
}

/// An echo request of full size with every kind of byte in it over the frames.
fn frame(number: u32) -> anyhow::Result<cpx::FrameBytes> {
    let data: Vec<u8> = (0..30)
        .map(|at| (number.wrapping_mul(31) + at * 7) as u8)
        .collect();
    let packet = Packet::new(Port::LINK, Channel::C0, &data)?;
    let admitted = Gate::new().admit(&packet)?;
    Ok(cpx::to_drone(&admitted))
}

/// Writes `bytes` and reads as many.
fn exchange(serial: &Serial, bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut left = bytes;
    while !left.is_empty() {
        match rustix::io::write(serial, left) {
            Ok(count) => left = &left[count..],
            Err(Errno::AGAIN) => wait(serial, PollFlags::OUT, PATIENCE)?,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    read(serial, bytes.len(), PATIENCE)
}

/// Reads `count` bytes, or what came within `patience`.
fn read(serial: &Serial, count: usize, patience: Duration) -> io::Result<Vec<u8>> {
    let (mut bytes, end) = (vec![0; count], Instant::now() + patience);
    let mut got = 0;
    while got < count && Instant::now() < end {
        match rustix::io::read(serial, &mut bytes[got..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(more) => got += more,
            Err(Errno::AGAIN | Errno::INTR) => {
                wait(
                    serial,
                    PollFlags::IN,
                    end.saturating_duration_since(Instant::now()),
                )?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    bytes.truncate(got);
    Ok(bytes)
}

fn wait(serial: &Serial, flags: PollFlags, at_most: Duration) -> io::Result<()> {
    let timeout = Timespec::try_from(at_most).map_err(io::Error::other)?;
    match rustix::event::poll(&mut [PollFd::new(serial, flags)], Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

impl Outcome {
    fn text(&self) -> String {
        let Self {
            frames,
            bytes,
            whole,
            damaged,
            missing,
            line_us,
            ..
        } = self;
        let times = self.round_trip_us.map_or_else(
            || "none to measure".to_owned(),
            |[min, p50, p99, max]| {
                format!("{min} us at least, {p50} us p50, {p99} us p99, {max} us at most")
            },
        );
        format!(
            "{} at {} bit/s, low latency: {}\n{frames} frames of {bytes} bytes: {whole} came back whole, {damaged} damaged, \
             {missing} not at all\nthere and back: {times}; the line itself needs {line_us} us",
            self.device.display(),
            self.baud,
            self.low_latency
        )
    }
}
