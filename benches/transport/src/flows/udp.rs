//! Plain UDP, UDP with a second copy some time later, and UDP that carries older payloads along.

use std::collections::VecDeque;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::clock::now_ns;
use crate::flow::{Class, Flow, Open, Received, Role, frame, unframe};

/// `copy_ms`: every message leaves again after that time. `back`: how many times ago the payloads are that ride along, `1+3+6`.
pub(crate) struct Udp {
    socket: UdpSocket,
    connected: bool,
    copy_after: Option<Duration>,
    copies: VecDeque<(Instant, Vec<u8>)>,
    back: Vec<usize>,
    history: VecDeque<Vec<u8>>,
    arrived: VecDeque<Received>,
}

impl Udp {
    pub(crate) fn open(how: &Open<'_>) -> anyhow::Result<Self> {
        let socket = match how.role {
            Role::Server => UdpSocket::bind(how.addr)?,
            Role::Client => {
                let socket = UdpSocket::bind("0.0.0.0:0")?;
                socket.connect(how.addr)?;
                socket
            }
        };
        socket.set_nonblocking(true)?;
        let copy_ms: f64 = how.number("copy_ms", 0.0)?;
        let back = how.text("back").unwrap_or_default().split('+');
        let back = back
            .filter(|text| !text.is_empty())
            .map(|text| text.parse().context("setting back"));
        Ok(Self {
            socket,
            connected: how.role == Role::Client,
            copy_after: (copy_ms > 0.0).then(|| Duration::from_secs_f64(copy_ms / 1e3)),
            copies: VecDeque::new(),
            back: back.collect::<anyhow::Result<_>>()?,
            history: VecDeque::new(),
            arrived: VecDeque::new(),
        })
    }

    fn write(&self, data: &[u8]) -> bool {
        self.connected && self.socket.send(data).is_ok()
    }

    /// The payload, and older ones behind it.
    fn with_riders(&mut self, data: &[u8]) -> Vec<u8> {
        let mut datagram = Vec::new();
        frame(&mut datagram, data);
        for older in self
            .back
            .iter()
            .filter_map(|back| self.history.get(back - 1))
        {
            frame(&mut datagram, older);
        }
        self.history.push_front(data.to_vec());
        self.history.truncate(16);
        datagram
    }

    fn read(&mut self) -> anyhow::Result<()> {
        let mut buffer = [0; 65_536];
        while let Ok((length, from)) = self.socket.recv_from(&mut buffer) {
            if !self.connected {
                self.socket.connect(from)?;
                self.connected = true;
            }
            let at_ns = now_ns();
            let mut data = buffer[..length].to_vec();
            if self.back.is_empty() {
                self.arrived.push_back(Received { at_ns, data });
            } else {
                unframe(&mut data, |data| {
                    self.arrived.push_back(Received { at_ns, data })
                });
            }
        }
        Ok(())
    }

    fn send_copies(&mut self) {
        while self
            .copies
            .front()
            .is_some_and(|(at, _)| *at <= Instant::now())
        {
            if let Some((_, copy)) = self.copies.pop_front() {
                self.write(&copy);
            }
        }
    }
}

impl Flow for Udp {
    fn send(&mut self, class: Class, data: &[u8]) -> anyhow::Result<bool> {
        let rides = class == Class::Control && !self.back.is_empty();
        let mut datagram = if rides {
            self.with_riders(data)
        } else {
            data.to_vec()
        };
        if !rides && !self.back.is_empty() {
            datagram.clear();
            frame(&mut datagram, data);
        }
        let sent = self.write(&datagram);
        if let Some(after) = self.copy_after.filter(|_| class == Class::Control) {
            self.copies.push_back((Instant::now() + after, datagram));
        }
        Ok(sent)
    }

    fn recv(&mut self, until: Instant) -> anyhow::Result<Option<Received>> {
        loop {
            self.send_copies();
            if let Some(received) = self.arrived.pop_front() {
                return Ok(Some(received));
            }
            let wake = self.copies.front().map_or(until, |(at, _)| until.min(*at));
            wait(&self.socket, PollFlags::IN, wake)?;
            self.read()?;
            if self.arrived.is_empty() && Instant::now() >= until {
                return Ok(None);
            }
        }
    }
}

/// Waits for a socket, to the nanosecond.
pub(crate) fn wait(socket: &impl AsFd, flags: PollFlags, until: Instant) -> anyhow::Result<()> {
    let left = until.saturating_duration_since(Instant::now());
    let left = Timespec::try_from(left)?;
    match poll(&mut [PollFd::new(socket, flags)], Some(&left)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
