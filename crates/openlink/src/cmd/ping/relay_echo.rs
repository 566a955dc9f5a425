//! Probes as raw messages of the paced transport, echoed by `openlink relay`.

use std::time::Instant;

use anyhow::bail;
use latency::probe::{HELLO, MAX_BYTES};
use latency::wire::{HEADER_LEN, read_header, write_header};
use latency::{Anchor, Measurement, MonoNs, Phase, Plan, Probe, Prober};
use link::Uri;
use prrt::udp::Driver;
use prrt::{Mode, PeerId, Stream};
use tap::{Direction, Stage};

use super::progress::Progress;
use crate::raw::{self, Raw};
use crate::record::{Messages, Recording};
use crate::timer;

/// The stream that probes and echoes use; each dies with the plan's time-out.
const STREAM: Stream = Stream::Ordered(0);

pub(super) fn run(uri: &Uri, plan: Plan, recording: &Recording) -> anyhow::Result<Measurement> {
    if !(HEADER_LEN..=MAX_BYTES).contains(&plan.bytes) {
        bail!(
            "--bytes is {}, allowed for a relay's echo: {HEADER_LEN} to {MAX_BYTES}",
            plan.bytes
        );
    }
    let mut run = Run::open(uri, plan)?;
    run.messages = Messages::new(recording.raw_tap());
    run.measure(uri)
}

struct Run {
    raw: Raw,
    peer: PeerId,
    anchor: Anchor,
    prober: Prober,
    payload: Vec<u8>,
    messages: Messages,
}

impl Run {
    fn open(uri: &Uri, plan: Plan) -> anyhow::Result<Self> {
        timer::make_exact();
        let prrt = raw::prrt_uri(uri)?;
        let (driver, peer) =
            Driver::connect(Instant::now(), raw::address(prrt)?, raw::config(prrt)?)?;
        Ok(Self {
            raw: Raw::around(driver)?,
            peer,
            anchor: Anchor::now(),
            payload: vec![0; plan.bytes],
            messages: Messages::default(),
            prober: Prober::new(plan, MonoNs::now())?,
        })
    }

    fn measure(&mut self, uri: &Uri) -> anyhow::Result<Measurement> {
        let mut progress = Progress::new(Instant::now());
        while !self.prober.is_over() && !self.raw.stop.requested() {
            let now = self.turn()?;
            progress.update(now, &self.prober);
        }
        let connected = self.raw.driver.is_connected(self.peer);
        self.raw.driver.close(Instant::now(), self.peer);
        if matches!(self.prober.phase(), Phase::NoPeer | Phase::Waiting) {
            let hint = if connected {
                "a peer is there, but it does not echo"
            } else {
                "nobody answers"
            };
            bail!(
                "{uri}: no relay within {:?}: {hint}",
                self.prober.plan().wait
            );
        }
        let unused = Prober::new(*self.prober.plan(), MonoNs::now())?;
        Ok(std::mem::replace(&mut self.prober, unused).finish(MonoNs::now()))
    }

    fn turn(&mut self) -> anyhow::Result<Instant> {
        let until = self
            .prober
            .poll_timeout()
            .map(|(at, _)| self.anchor.instant(at));
        let now = self.raw.turn(until)?;
        self.log_events();
        while let Some(message) = self.raw.driver.recv(now, self.peer, Mode::Asap) {
            if let Some(echo) = read_header(&message.data) {
                self.messages
                    .note(Stage::G6, Direction::Down, echo.sequence, &message.data);
                self.prober.handle_echo(MonoNs::now(), &echo);
            }
        }
        self.prober.handle_timeout(MonoNs::now());
        while let Some(probe) = self.prober.poll_send(MonoNs::now()) {
            self.send(&probe);
        }
        Ok(now)
    }

    fn log_events(&mut self) {
        while let Some(event) = self.raw.driver.poll_event() {
            tracing::debug!("{event:?}");
        }
        while let Some(notice) = self.raw.driver.poll_notice() {
            tracing::debug!("{notice}");
        }
    }

    fn send(&mut self, probe: &Probe) {
        let length = probe.bytes.max(HEADER_LEN);
        let life = Some(self.prober.plan().timeout);
        let fits = write_header(&mut self.payload, probe);
        self.messages.note(
            Stage::G2,
            Direction::Up,
            probe.sequence,
            &self.payload[..length],
        );
        let sent = self.raw.driver.send(
            Instant::now(),
            self.peer,
            STREAM,
            life,
            &self.payload[..length],
        );
        if (sent.is_err() || !fits) && probe.sequence < HELLO {
            self.prober.handle_unsent(MonoNs::now(), probe.sequence);
        }
    }
}
