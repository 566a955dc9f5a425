//! The simulated drone behind a line with a speed: two threads of their own, away from the driver under test.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use crtp_uart::{Pty, Serial};
use link::uri::Framing;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use simulator::{Config, Drone, Server, ServerConfig};
use tap::Tap;

use super::line::Line;
use crate::timer;

/// A drone to talk to.
pub(super) struct Rig {
    /// What a driver opens.
    pub(super) port: PathBuf,
    stop: Vec<UnixStream>,
    threads: Vec<JoinHandle<anyhow::Result<()>>>,
}

/// What the drone and its line are like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wiring {
    /// Speed, bit/s.
    pub(super) baud: u32,
    /// Time the drone takes before its first byte.
    pub(super) answer: Duration,
}

impl Rig {
    /// Switches the drone on; its own end is linked in `folder`.
    pub(super) fn start(
        folder: &Path,
        framing: Framing,
        wiring: Wiring,
        tap: impl FnMut() -> Tap,
    ) -> anyhow::Result<Self> {
        let path = folder.join(format!("drone-{}", std::process::id()));
        let config = ServerConfig {
            uart: Some(path.clone()),
            framing: match framing {
                Framing::Cpx => simulator::Framing::Cpx,
                Framing::Syslink => simulator::Framing::Syslink,
            },
            udp: None,
            ..ServerConfig::default()
        };
        let mut server = Server::open(&config, Instant::now())?;
        server.set_tap(tap);
        let far = Serial::open(&path, wiring.baud)?;
        let near = Pty::open(None)?;
        let mut rig = Self {
            port: near.host_path().to_owned(),
            stop: Vec::new(),
            threads: Vec::new(),
        };
        rig.spawn("drone", move |stop| {
            let mut drone = Drone::new(Config::default(), Instant::now());
            Ok(server.run(&mut drone, stop)?)
        })?;
        rig.spawn("line", move |stop| carry(&near, &far, wiring, &stop))?;
        Ok(rig)
    }

    fn spawn(
        &mut self,
        name: &str,
        work: impl FnOnce(UnixStream) -> anyhow::Result<()> + Send + 'static,
    ) -> anyhow::Result<()> {
        let (near, far) = UnixStream::pair()?;
        let thread = std::thread::Builder::new().name(name.to_owned());
        self.threads.push(thread.spawn(move || {
            timer::make_exact();
            work(far)
        })?);
        self.stop.push(near);
        Ok(())
    }

    /// Switches it off; what went wrong in it is an error.
    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        self.stop.clear();
        for thread in self.threads.drain(..) {
            let done = thread.join().map_err(|_| anyhow!("a thread panicked"))?;
            done.context("the simulated drone or its line")?;
        }
        Ok(())
    }
}

/// Carries bytes both ways until `stop` is readable.
fn carry(near: &Pty, far: &Serial, wiring: Wiring, stop: &UnixStream) -> anyhow::Result<()> {
    let mut up = Line::new(wiring.baud, Duration::ZERO);
    let mut down = Line::new(wiring.baud, wiring.answer);
    loop {
        let due = [up.due(), down.due()].into_iter().flatten().min();
        let pause = due.map(|due| due.saturating_duration_since(Instant::now()));
        let pause = pause.map(Timespec::try_from).transpose()?;
        let mut fds = [
            PollFd::new(stop, PollFlags::IN),
            PollFd::new(near, PollFlags::IN),
            PollFd::new(far, PollFlags::IN),
        ];
        match poll(&mut fds, pause.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if !fds[0].revents().is_empty() {
            return Ok(());
        }
        take(near, &mut up)?;
        take(far, &mut down)?;
        give(far, &mut up)?;
        give(near, &mut down)?;
    }
}

fn take(from: impl AsFd, line: &mut Line) -> anyhow::Result<()> {
    let mut bytes = [0; 512];
    match rustix::io::read(from, &mut bytes) {
        Ok(count) => line.push(Instant::now(), &bytes[..count]),
        // The last is a pseudo-terminal whose driver has gone: the measurement is over.
        Err(Errno::AGAIN | Errno::INTR | Errno::IO) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Everything whose time has come, in one write.
fn give(to: impl AsFd, line: &mut Line) -> anyhow::Result<()> {
    let now = Instant::now();
    let bytes: Vec<u8> = std::iter::from_fn(|| line.pop(now)).collect();
    if bytes.is_empty() {
        return Ok(());
    }
    match rustix::io::write(to, &bytes) {
        Ok(written) => anyhow::ensure!(written == bytes.len(), "a full pseudo-terminal lost bytes"),
        // The driver has gone before the drone's last bytes.
        Err(Errno::IO) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
