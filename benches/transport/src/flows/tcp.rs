//! TCP without Nagle's algorithm; `congestion` names the algorithm of the kernel.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

use anyhow::{Context as _, bail};
use rustix::event::PollFlags;
use socket2::SockRef;

use super::udp::wait;
use crate::clock::now_ns;
use crate::flow::{Class, Flow, Open, Received, Role, frame, unframe};

/// Bytes that wait for the socket; beyond it messages are refused.
const QUEUE: usize = 4 << 20;

/// Messages with a length before each.
pub(crate) struct Tcp {
    stream: TcpStream,
    out: Vec<u8>,
    input: Vec<u8>,
    arrived: VecDeque<Received>,
}

impl Tcp {
    pub(crate) fn open(how: &Open<'_>) -> anyhow::Result<Self> {
        let stream = match how.role {
            Role::Server => TcpListener::bind(how.addr)?.accept()?.0,
            Role::Client => TcpStream::connect(how.addr)?,
        };
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        if let Some(name) = how.text("congestion") {
            let set = SockRef::from(&stream).set_tcp_congestion(name.as_bytes());
            set.with_context(|| format!("congestion control {name:?}"))?;
        }
        Ok(Self {
            stream,
            out: Vec::new(),
            input: Vec::new(),
            arrived: VecDeque::new(),
        })
    }

    fn write(&mut self) -> anyhow::Result<()> {
        while !self.out.is_empty() {
            match self.stream.write(&self.out) {
                Ok(count) => drop(self.out.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn read(&mut self) -> anyhow::Result<()> {
        let mut buffer = [0; 65_536];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => bail!("the connection is closed"),
                Ok(count) => self.input.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        let at_ns = now_ns();
        unframe(&mut self.input, |data| {
            self.arrived.push_back(Received { at_ns, data })
        });
        Ok(())
    }
}

impl Flow for Tcp {
    fn send(&mut self, _class: Class, data: &[u8]) -> anyhow::Result<bool> {
        if self.out.len() > QUEUE {
            return Ok(false);
        }
        frame(&mut self.out, data);
        self.write()?;
        Ok(true)
    }

    fn recv(&mut self, until: Instant) -> anyhow::Result<Option<Received>> {
        loop {
            if let Some(received) = self.arrived.pop_front() {
                return Ok(Some(received));
            }
            let stuck = !self.out.is_empty();
            let flags = if stuck {
                PollFlags::IN | PollFlags::OUT
            } else {
                PollFlags::IN
            };
            wait(&self.stream, flags, until)?;
            self.write()?;
            self.read()?;
            if self.arrived.is_empty() && Instant::now() >= until {
                return Ok(None);
            }
        }
    }
}
