//! Serves a drone on a pseudo-terminal (CPX or syslink, as over the UART) and on UDP (one packet a datagram), on the calling
//! thread. Requests are answered in the wake-up that brought them; it waits for descriptors and timers only.

mod tap;
mod tty;
mod udp;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use arrayvec::ArrayVec;
use crtp_uart::{Gone, PtyError};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use self::tap::DroneTap;
use crate::Drone;
use tty::Tty;
use udp::Udp;

pub use tty::Framing;

/// Where a drone can be reached; either or both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerConfig {
    /// Becomes a symbolic link to the drone's end of a pseudo-terminal.
    pub uart: Option<PathBuf>,
    /// What is spoken there.
    pub framing: Framing,
    /// What the drone takes for each CPX frame before it clears the next one to send: a slow line, or a busy drone.
    pub frame_time: Duration,
    /// Address to listen on; port 0 takes any free one.
    pub udp: Option<SocketAddr>,
}

/// Why a drone cannot be served (any more).
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Neither a pseudo-terminal nor an address was given.
    #[error("nothing to serve on: give a path for the pseudo-terminal, a UDP address, or both")]
    Nowhere,
    /// There is no pseudo-terminal.
    #[error(transparent)]
    Pty(#[from] PtyError),
    /// The pseudo-terminal is of no more use.
    #[error("pseudo-terminal: {0}")]
    Uart(Gone),
    /// The address cannot be listened on.
    #[error("cannot listen on udp {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// Receiving failed.
    #[error("udp: {0}")]
    Udp(io::Error),
    /// Waiting failed.
    #[error("cannot wait: {0}")]
    Wait(Errno),
}

/// Which side the downlink goes to: the one that was heard last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Uart,
    Udp,
}

/// What woke the loop.
#[derive(Clone, Copy, Debug, Default)]
struct Ready {
    stop: bool,
    uart: bool,
    udp: bool,
}

/// The open ends.
#[derive(Debug)]
pub struct Server {
    uart: Option<Box<dyn Tty>>,
    udp: Option<Udp>,
    side: Option<Side>,
}

impl Server {
    /// Opens the ends.
    ///
    /// # Errors
    /// [`ServeError`], naming the path or address.
    pub fn open(config: &ServerConfig, now: Instant) -> Result<Self, ServeError> {
        if config.uart.is_none() && config.udp.is_none() {
            return Err(ServeError::Nowhere);
        }
        Ok(Self {
            uart: config
                .uart
                .as_deref()
                .map(|path| tty::open(path, config.framing, config.frame_time, now))
                .transpose()?,
            udp: config.udp.map(Udp::bind).transpose()?,
            side: None,
        })
    }

    /// Records from now on what reaches the drone and what leaves it. `tap` is asked once for each end.
    pub fn set_tap(&mut self, mut tap: impl FnMut() -> ::tap::Tap) {
        if let Some(uart) = &mut self.uart {
            uart.set_tap(DroneTap::new(tap()));
        }
        if let Some(udp) = &mut self.udp {
            udp.set_tap(DroneTap::new(tap()));
        }
    }

    /// The path a host opens.
    #[must_use]
    pub fn uart_path(&self) -> Option<&Path> {
        self.uart.as_ref().map(|uart| uart.path())
    }

    /// The address it listens on.
    #[must_use]
    pub fn udp_address(&self) -> Option<SocketAddr> {
        self.udp.as_ref().map(Udp::address)
    }

    /// Serves until `stop` is readable.
    ///
    /// # Errors
    /// [`ServeError`] if an end fails for good.
    pub fn run(&mut self, drone: &mut Drone, stop: impl AsFd) -> Result<(), ServeError> {
        drone.set_connected(Instant::now(), false);
        loop {
            let ready = self.wait(drone, stop.as_fd())?;
            if ready.stop {
                return Ok(());
            }
            self.turn(Instant::now(), drone, ready)?;
        }
    }

    fn turn(&mut self, now: Instant, drone: &mut Drone, ready: Ready) -> Result<(), ServeError> {
        if ready.uart {
            self.receive_uart(now, drone)?;
        }
        if ready.udp {
            self.receive_udp(now, drone)?;
        }
        self.flush(now, drone)?;
        if drone.poll_timeout().is_some_and(|(due, _)| due <= now) {
            drone.handle_timeout(now);
        }
        self.handle_timeout(now, drone);
        self.flush(now, drone)
    }

    fn receive_uart(&mut self, now: Instant, drone: &mut Drone) -> Result<(), ServeError> {
        let Some(uart) = &mut self.uart else {
            return Ok(());
        };
        let heard = uart.receive(now, drone).map_err(ServeError::Uart)?;
        if heard {
            self.side = Some(Side::Uart);
        }
        self.settle(now, drone);
        Ok(())
    }

    fn receive_udp(&mut self, now: Instant, drone: &mut Drone) -> Result<(), ServeError> {
        let Some(udp) = &mut self.udp else {
            return Ok(());
        };
        let heard = udp.receive(now, drone).map_err(ServeError::Udp)?;
        if heard {
            self.side = Some(Side::Udp);
        }
        self.settle(now, drone);
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant, drone: &mut Drone) {
        if let Some(uart) = &mut self.uart {
            uart.handle_timeout(now, drone);
        }
        if let Some(udp) = &mut self.udp {
            udp.handle_timeout(now);
        }
        self.settle(now, drone);
    }

    /// Tells the drone whether a client is there on the side that counts.
    fn settle(&self, now: Instant, drone: &mut Drone) {
        let connected = match self.side {
            Some(Side::Uart) => self.uart.as_ref().is_some_and(|uart| uart.has_client(now)),
            Some(Side::Udp) => self.udp.as_ref().is_some_and(Udp::has_client),
            None => false,
        };
        drone.set_connected(now, connected);
    }

    /// Writes what the drone has to say to the side that counts, and what the UART owes in any case.
    fn flush(&mut self, now: Instant, drone: &mut Drone) -> Result<(), ServeError> {
        if let Some(udp) = self.udp.as_mut().filter(|_| self.side == Some(Side::Udp)) {
            udp.transmit(drone);
        }
        let counts = self.side == Some(Side::Uart);
        match &mut self.uart {
            Some(uart) => uart.transmit(now, drone, counts).map_err(ServeError::Uart),
            None => Ok(()),
        }
    }

    fn wait(&self, drone: &Drone, stop: BorrowedFd<'_>) -> Result<Ready, ServeError> {
        let timers = [
            drone.poll_timeout().map(|(due, _)| due),
            self.uart.as_ref().and_then(|uart| uart.poll_timeout()),
            self.udp.as_ref().and_then(Udp::poll_timeout),
        ];
        let due = timers.into_iter().flatten().min();
        let mut fds = ArrayVec::<PollFd<'_>, 3>::new();
        fds.push(PollFd::from_borrowed_fd(stop, PollFlags::IN));
        let uart = self
            .uart
            .as_ref()
            .map(|uart| push(&mut fds, uart.as_fd(), uart.wants_write()));
        let udp = self
            .udp
            .as_ref()
            .map(|udp| push(&mut fds, udp.as_fd(), false));
        let timeout = due.map(|due| timespec(due.saturating_duration_since(Instant::now())));
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(ServeError::Wait(error)),
        }
        let is_ready = |at: Option<usize>| {
            at.and_then(|at| fds.get(at))
                .is_some_and(|fd| !fd.revents().is_empty())
        };
        Ok(Ready {
            stop: is_ready(Some(0)),
            uart: is_ready(uart),
            udp: is_ready(udp),
        })
    }
}

/// Adds a descriptor; its place.
fn push<'a>(fds: &mut ArrayVec<PollFd<'a>, 3>, fd: BorrowedFd<'a>, write: bool) -> usize {
    let flags = if write {
        PollFlags::IN | PollFlags::OUT
    } else {
        PollFlags::IN
    };
    fds.push(PollFd::from_borrowed_fd(fd, flags));
    fds.len() - 1
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: duration.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}
