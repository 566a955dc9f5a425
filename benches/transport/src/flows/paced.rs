//! The paced transport in the event loop of its user, encrypted.

use std::time::Instant;

use anyhow::{Context as _, bail};
use prrt::udp::Driver;
use prrt::{Config, Keys, Mode, PeerId, Repair, Stream};
use rustix::event::PollFlags;
use std::time::Duration;

use super::udp::wait;
use crate::clock::now_ns;
use crate::flow::{Class, Flow, Open, Received, Role};

/// A video frame that is older than this is not shown.
const FRAME_LIFE: Duration = Duration::from_millis(100);
/// How long the handshake may take.
const CONNECT: Duration = Duration::from_secs(20);

/// `redundancy`: most datagrams per message; `repair`: `spread` or `never`; `sparse`: 1 or 0; `stream`: `ordered` repairs
/// each message until it expires (and is read as soon as it is there), `latest` only until the next one is sent.
pub(crate) struct Paced {
    driver: Driver,
    peer: PeerId,
    deadline: Duration,
    control: Stream,
}

impl Paced {
    pub(crate) fn open(how: &Open<'_>) -> anyhow::Result<Self> {
        let config = config(how)?;
        let control = match how.text("stream").unwrap_or("ordered") {
            "ordered" => Stream::Ordered(0),
            "latest" => Stream::Latest(0),
            other => bail!("setting stream is {other:?}; allowed: ordered, latest"),
        };
        let now = Instant::now();
        let (mut driver, peer) = match how.role {
            Role::Server => (Driver::listen(now, how.addr, config)?, None),
            Role::Client => {
                let (driver, peer) = Driver::connect(now, how.addr, config)?;
                (driver, Some(peer))
            }
        };
        while driver.connected().next().is_none() {
            step(&mut driver, Instant::now() + Duration::from_millis(100))?;
            if how.role == Role::Client && now.elapsed() > CONNECT {
                bail!("{} does not answer", how.addr);
            }
        }
        let peer = peer
            .or_else(|| driver.connected().next())
            .context("the peer is gone")?;
        Ok(Self {
            driver,
            peer,
            deadline: how.deadline,
            control,
        })
    }
}

fn config(how: &Open<'_>) -> anyhow::Result<Config> {
    let (secret, public) = how.keys.context("prrt needs --secret and --peer")?;
    let repair = match how.text("repair").unwrap_or("spread") {
        "spread" => Repair::Spread,
        "never" => Repair::Never,
        other => bail!("setting repair is {other:?}; allowed: spread, never"),
    };
    Ok(Config {
        keys: Some(Keys {
            secret: secret.parse()?,
            peers: vec![public.parse()?],
            shared: None,
        }),
        max_redundancy: how.number("redundancy", 2.5)?,
        sparse_feedback: how.number("sparse", 1_u8)? == 1,
        repair,
        ..Config::default()
    })
}

/// Waits for the network or a timer, and serves both.
fn step(driver: &mut Driver, until: Instant) -> anyhow::Result<()> {
    let due = driver.poll_timeout().map(|(at, _)| at);
    let flags = if driver.wants_write() {
        PollFlags::IN | PollFlags::OUT
    } else {
        PollFlags::IN
    };
    wait(driver, flags, due.map_or(until, |at| at.min(until)))?;
    let now = Instant::now();
    driver.handle_ready(now);
    if due.is_some_and(|at| at <= now) {
        driver.handle_timeout(now);
    }
    while driver.poll_event().is_some() {}
    Ok(())
}

impl Flow for Paced {
    fn send(&mut self, class: Class, data: &[u8]) -> anyhow::Result<bool> {
        let (stream, life) = match class {
            Class::Control => (self.control, self.deadline),
            Class::Video => (Stream::Frame(0), FRAME_LIFE),
        };
        Ok(self
            .driver
            .send(Instant::now(), self.peer, stream, Some(life), data)
            .is_ok())
    }

    fn recv(&mut self, until: Instant) -> anyhow::Result<Option<Received>> {
        loop {
            if let Some(message) = self.driver.recv(Instant::now(), self.peer, Mode::Asap) {
                let at_ns = now_ns();
                return Ok(Some(Received {
                    at_ns,
                    data: message.data.to_vec(),
                }));
            }
            if Instant::now() >= until {
                return Ok(None);
            }
            step(&mut self.driver, until)?;
            if self.driver.addr(self.peer).is_none() {
                // After a long silence the peer comes back as a new one.
                if let Some(peer) = self.driver.connected().next() {
                    self.peer = peer;
                }
            }
        }
    }

    fn takes_frames(&self) -> bool {
        true
    }
}
