//! The paced transport without CRTP: messages of any size, one loop, ended by a signal.
//!
//! It waits and hands over; what the messages mean is the caller's business.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use anyhow::{Context as _, bail};
use link::Uri;
use link::uri::PrrtUri;
use prrt::Config;
use prrt::udp::Driver;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use crate::stop::Stop;

/// A driver, and the signal that ends its loop.
pub(crate) struct Raw {
    pub(crate) driver: Driver,
    pub(crate) stop: Stop,
    wake: UnixStream,
}

impl Raw {
    pub(crate) fn around(driver: Driver) -> anyhow::Result<Self> {
        let (stop, wake) = Stop::with_stream().context("cannot listen for signals")?;
        Ok(Self { driver, stop, wake })
    }

    /// Waits for the socket, a timer, a signal or `until`, and lets the driver work. Returns the time at which
    /// it woke.
    pub(crate) fn turn(&mut self, until: Option<Instant>) -> io::Result<Instant> {
        let timer = self.driver.poll_timeout().map(|(at, _)| at);
        self.wait(timer.into_iter().chain(until).min())?;
        let now = Instant::now();
        self.driver.handle_ready(now);
        if timer.is_some_and(|at| at <= now) {
            self.driver.handle_timeout(now);
        }
        Ok(now)
    }

    fn wait(&self, until: Option<Instant>) -> io::Result<()> {
        let mut events = PollFlags::IN;
        events.set(PollFlags::OUT, self.driver.wants_write());
        let socket = PollFd::from_borrowed_fd(self.driver.as_fd(), events);
        let wake = PollFd::from_borrowed_fd(self.wake.as_fd(), PollFlags::IN);
        let left = until.map(|at| at.saturating_duration_since(Instant::now()));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        match rustix::event::poll(&mut [socket, wake], timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// The transport's part of a `prrt://` URI.
pub(crate) fn prrt_uri(uri: &Uri) -> anyhow::Result<&PrrtUri> {
    match uri {
        Uri::Prrt(prrt) => Ok(prrt),
        Uri::Uart(_) | Uri::Udp(_) | Uri::Tcp(_) | Uri::Radio(_) | Uri::Sim(_) | Uri::Pty(_) => {
            bail!("{uri}: raw messages travel over prrt:// only")
        }
    }
}

/// Where it leads.
pub(crate) fn address(uri: &PrrtUri) -> anyhow::Result<SocketAddr> {
    let host = &uri.net.host;
    let mut addresses = (host.as_str(), uri.net.port)
        .to_socket_addrs()
        .with_context(|| format!("host {host:?} has no address"))?;
    addresses
        .next()
        .with_context(|| format!("host {host:?} has no address"))
}

/// Room for messages of 4 MiB, encrypted where the URI names keys.
pub(crate) fn config(uri: &PrrtUri) -> anyhow::Result<Config> {
    Ok(Config {
        insecure: uri.insecure,
        keys: uri.keys.as_deref().map(link::key_file::read).transpose()?,
        keep_alive: uri
            .keep_alive
            .unwrap_or_else(|| Config::default().keep_alive),
        ..Config::default()
    })
}
