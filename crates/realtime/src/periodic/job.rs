//! What the loop does each cycle: a computation over a working set, or one exchange over a UART or UDP.
//!
//! Every job ends in bounded time; an exchange that stays unanswered is counted.

use std::hint::black_box;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use serde::{Deserialize, Serialize};

use super::runner::Job;

/// Bytes of one exchange: a full CRTP packet in CPX framing.
pub const FRAME: usize = 36;
const PEER_TICK: Duration = Duration::from_millis(100);

/// Where the exchanges go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Io {
    /// No exchange: a computation.
    #[default]
    None,
    /// A pseudo-terminal with an echoing thread behind it.
    Pty,
    /// A serial device whose far end echoes, and its baud rate.
    Uart(PathBuf, u32),
    /// UDP: an echoing thread on the loopback address, or an echo service.
    Udp(Option<SocketAddr>),
}

impl Io {
    /// The name in tables and files.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::None => "none".to_owned(),
            Self::Pty => "pty".to_owned(),
            Self::Uart(path, baud) => format!("uart {} {baud}", path.display()),
            Self::Udp(None) => "udp loopback".to_owned(),
            Self::Udp(Some(peer)) => format!("udp {peer}"),
        }
    }
}

/// How the exchanges went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchanges {
    /// Answered in time.
    pub answered: u64,
    /// Not answered before the time-out.
    pub unanswered: u64,
    /// Failed system calls.
    pub errors: u64,
}

/// The computation: a sweep over the working set with one multiplication and addition per number, like a filter
/// bank or a gain matrix.
#[derive(Debug)]
pub struct Compute {
    state: Vec<f32>,
}

impl Compute {
    /// A working set of `bytes`.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self {
            state: vec![0.5; bytes.div_ceil(4)],
        }
    }
}

impl Job for Compute {
    fn run(&mut self, index: u64) {
        let input = (index % 1000) as f32 * 1e-3;
        for value in &mut self.state {
            *value = value.mul_add(0.995, input * 0.005);
        }
        black_box(&self.state);
    }
}

/// An exchange of one frame each way.
#[derive(Debug)]
pub struct Exchange {
    link: OwnedFd,
    time_out: Duration,
    /// How it went.
    pub counts: Exchanges,
    _peer: Option<Peer>,
}

/// A thread that echoes, and ends when dropped.
#[derive(Debug)]
struct Peer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Exchange {
    /// Opens the path for `io`; `None` for no exchange. An exchange waits at most `time_out` for its answer.
    ///
    /// # Errors
    /// When the device or socket cannot be opened.
    pub fn open(io: &Io, time_out: Duration) -> io::Result<Option<Self>> {
        let (link, peer) = match io {
            Io::None => return Ok(None),
            Io::Pty => pty_pair()?,
            Io::Uart(path, baud) => (open_serial(path, Some(*baud))?, None),
            Io::Udp(peer) => udp(*peer)?,
        };
        Ok(Some(Self {
            link,
            time_out,
            counts: Exchanges::default(),
            _peer: peer.map(Peer::start),
        }))
    }

    /// An answer that came too late must not be taken for the next one.
    fn drain(&self) -> io::Result<()> {
        let mut stale = [0u8; 256];
        for _ in 0..16 {
            if !readable(&self.link, Duration::ZERO)? {
                break;
            }
            rustix::io::read(&self.link, &mut stale)?;
        }
        Ok(())
    }

    fn exchange(&self, index: u64) -> io::Result<bool> {
        self.drain()?;
        let mut frame = [0u8; FRAME];
        frame[..8].copy_from_slice(&index.to_le_bytes());
        rustix::io::write(&self.link, &frame)?;
        let mut answer = [0u8; FRAME];
        let mut have = 0;
        while have < FRAME {
            if !readable(&self.link, self.time_out)? {
                return Ok(false);
            }
            have += rustix::io::read(&self.link, &mut answer[have..])?;
        }
        Ok(answer == frame)
    }
}

impl Job for Exchange {
    fn run(&mut self, index: u64) {
        match self.exchange(index) {
            Ok(true) => self.counts.answered += 1,
            Ok(false) => self.counts.unanswered += 1,
            Err(_counted) => self.counts.errors += 1,
        }
    }
}

impl Peer {
    fn start(far_end: OwnedFd) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread =
            thread::spawn(
                move || while !seen.load(Ordering::Relaxed) && echo_once(&far_end).is_ok() {},
            );
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A peer that panicked shows as unanswered exchanges.
        let _panic = self.thread.take().map(JoinHandle::join);
    }
}

fn echo_once(far_end: &OwnedFd) -> io::Result<()> {
    if !readable(far_end, PEER_TICK)? {
        return Ok(());
    }
    let mut bytes = [0u8; 256];
    let length = rustix::io::read(far_end, &mut bytes)?;
    rustix::io::write(far_end, &bytes[..length])?;
    Ok(())
}

fn readable(fd: &impl AsFd, time_out: Duration) -> io::Result<bool> {
    let wait = Timespec::try_from(time_out).map_err(io::Error::other)?;
    let ready = poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&wait))?;
    Ok(ready > 0)
}

fn pty_pair() -> io::Result<(OwnedFd, Option<OwnedFd>)> {
    let far_end = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    grantpt(&far_end)?;
    unlockpt(&far_end)?;
    let name = ptsname(&far_end, Vec::new())?;
    let path = Path::new(name.to_str().map_err(io::Error::other)?);
    Ok((open_serial(path, None)?, Some(far_end)))
}

fn open_serial(path: &Path, baud: Option<u32>) -> io::Result<OwnedFd> {
    let port = rustix::fs::open(
        path,
        OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let mut settings = tcgetattr(&port)?;
    settings.make_raw();
    if let Some(baud) = baud {
        settings.set_speed(baud)?;
    }
    tcsetattr(&port, OptionalActions::Flush, &settings)?;
    Ok(port)
}

fn udp(peer: Option<SocketAddr>) -> io::Result<(OwnedFd, Option<OwnedFd>)> {
    let any = if peer.is_some_and(|peer| peer.is_ipv6()) {
        "[::]:0"
    } else {
        "0.0.0.0:0"
    };
    let Some(address) = peer else {
        let far_end = UdpSocket::bind("127.0.0.1:0")?;
        let near = UdpSocket::bind("127.0.0.1:0")?;
        near.connect(far_end.local_addr()?)?;
        far_end.connect(near.local_addr()?)?;
        return Ok((near.into(), Some(far_end.into())));
    };
    let near = UdpSocket::bind(any)?;
    near.connect(address)?;
    Ok((near.into(), None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exchanges_over_a_pty_and_udp_are_answered() {
        for io in [Io::Pty, Io::Udp(None)] {
            let mut job = Exchange::open(&io, Duration::from_secs(5))
                .unwrap()
                .unwrap();
            (0..50).for_each(|index| job.run(index));
            assert_eq!(
                job.counts,
                Exchanges {
                    answered: 50,
                    ..Exchanges::default()
                },
                "{}",
                io.name()
            );
        }
    }

    #[test]
    fn a_silent_peer_is_counted_and_does_not_hang() {
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let io = Io::Udp(Some(silent.local_addr().unwrap()));
        let mut job = Exchange::open(&io, Duration::from_millis(1))
            .unwrap()
            .unwrap();
        (0..3).for_each(|index| job.run(index));
        assert_eq!(
            job.counts,
            Exchanges {
                unanswered: 3,
                ..Exchanges::default()
            }
        );
    }

    #[test]
    fn a_missing_device_is_an_error() {
        let io = Io::Uart("/nonexistent/tty".into(), 576_000);
        assert!(Exchange::open(&io, Duration::from_millis(1)).is_err());
    }
}
