//! `openlink relay`: echoes raw messages with the times it received and sent them.

use std::process::ExitCode;
use std::time::Instant;

use latency::MonoNs;
use latency::wire::{read_header, stamp_echo};
use link::{Role, Uri};
use prrt::udp::Driver;
use prrt::{Event, Message, Mode, PeerId};
use tap::{Direction, Stage};

use crate::out;
use crate::raw::{self, Raw};
use crate::record::{self, Messages};

/// Command line of `openlink relay`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where to wait for probers (or, with listen=0, whom to call): prrt://host:port.
    uri: Uri,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    record: record::Args,
}

/// What happened to the messages.
#[derive(Debug, Default, serde::Serialize)]
struct Summary {
    echoed: u64,
    not_probes: u64,
    not_taken: u64,
}

/// Echoes until SIGINT or SIGTERM.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut relay = Relay::open(&args.uri)?;
    let recording = args.record.start("relay", &[&args.uri.to_string()]);
    relay.messages = Messages::new(recording.raw_tap());
    tracing::info!(uri = %args.uri, "echoing");
    while !relay.raw.stop.requested() {
        let now = relay.raw.turn(None)?;
        relay.log_events();
        relay.echo_all(now);
    }
    relay.say_goodbye();
    recording.finish();
    relay.print(args.json);
    Ok(ExitCode::SUCCESS)
}

struct Relay {
    raw: Raw,
    peers: Vec<PeerId>,
    summary: Summary,
    messages: Messages,
}

impl Relay {
    fn open(uri: &Uri) -> anyhow::Result<Self> {
        let prrt = raw::prrt_uri(uri)?;
        let (now, address, config) = (Instant::now(), raw::address(prrt)?, raw::config(prrt)?);
        let driver = if uri.listens(Role::From) {
            Driver::listen(now, address, config)?
        } else {
            Driver::connect(now, address, config)?.0
        };
        Ok(Self {
            raw: Raw::around(driver)?,
            peers: Vec::new(),
            summary: Summary::default(),
            messages: Messages::default(),
        })
    }

    fn log_events(&mut self) {
        while let Some(event) = self.raw.driver.poll_event() {
            match event {
                Event::Connected { addr, .. } => tracing::info!("peer {addr} connected"),
                Event::Disconnected { reason, .. } => {
                    tracing::info!("peer lost: {}", reason.text())
                }
                Event::Moved { addr, .. } => tracing::info!("peer moved to {addr}"),
            }
        }
        while let Some(notice) = self.raw.driver.poll_notice() {
            tracing::warn!("{notice}");
        }
    }

    fn echo_all(&mut self, now: Instant) {
        self.peers.clear();
        self.peers.extend(self.raw.driver.connected());
        for at in 0..self.peers.len() {
            let peer = self.peers[at];
            while let Some(message) = self.raw.driver.recv(now, peer, Mode::Asap) {
                self.echo(peer, message);
            }
        }
    }

    fn echo(&mut self, peer: PeerId, message: Message) {
        let (stream, life, received) = (message.stream, message.remaining, MonoNs::now());
        let sequence = read_header(&message.data).map_or(0, |probe| probe.sequence);
        self.messages
            .note(Stage::B1, Direction::Up, sequence, &message.data);
        let mut payload = message.data.into_vec();
        if !stamp_echo(&mut payload, received, MonoNs::now()) {
            self.summary.not_probes += 1;
            return;
        }
        self.messages
            .note(Stage::B3, Direction::Down, sequence, &payload);
        match self
            .raw
            .driver
            .send(Instant::now(), peer, stream, life, &payload)
        {
            Ok(_) => self.summary.echoed += 1,
            Err(error) => {
                self.summary.not_taken += 1;
                tracing::debug!("echo not sent: {error}");
            }
        }
    }

    fn say_goodbye(&mut self) {
        let peers: Vec<_> = self.raw.driver.connected().collect();
        for peer in peers {
            self.raw.driver.close(Instant::now(), peer);
        }
    }

    fn print(&self, json: bool) {
        if json {
            return out::json(&self.summary);
        }
        let Summary {
            echoed,
            not_probes,
            not_taken,
        } = self.summary;
        out::line(format!(
            "{echoed} echoed; {not_probes} dropped as no probes, {not_taken} not taken by the transport"
        ));
    }
}
