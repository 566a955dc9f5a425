//! Probes as CRTP echo requests, through any link to the drone's own link service.

use std::time::Instant;

use anyhow::{Context as _, bail};
use crtp::{Channel, MAX_DATA, Packet, Port};
use latency::probe::HELLO;
use latency::wire::{TAG_LEN, read_tag, tag};
use latency::{Anchor, Measurement, MonoNs, Phase, Plan, Probe, Prober};
use link::tap::{LinkTap, Moment, Place};
use link::{Class, Event, Link, Outgoing, Reactor, Received, Role, SendOutcome, State, Uri};

use super::progress::Progress;
use crate::record::Recording;
use crate::stop::Stop;
use crate::timer;

/// Header of an echo, reserved bits masked.
const ECHO: u8 = 0xf0;

pub(super) fn run(uri: &Uri, plan: Plan, recording: &Recording) -> anyhow::Result<Measurement> {
    if !(TAG_LEN..=MAX_DATA).contains(&plan.bytes) {
        bail!(
            "--bytes is {}, allowed for the drone's echo: {TAG_LEN} to {MAX_DATA}",
            plan.bytes
        );
    }
    let mut run = Run::open(uri, plan)?;
    run.record(uri, recording);
    run.measure(uri)
}

struct Run {
    reactor: Reactor,
    links: [Box<dyn Link>; 1],
    stop: Stop,
    anchor: Anchor,
    prober: Prober,
    /// What the link said last, for the case that nothing ever answers.
    said: String,
    /// The application's and the library's part of the way.
    tap: LinkTap,
}

impl Run {
    fn open(uri: &Uri, plan: Plan) -> anyhow::Result<Self> {
        timer::make_exact();
        let reactor = Reactor::new().context("cannot set up the loop")?;
        let stop = Stop::install(&reactor.waker()).context("cannot listen for signals")?;
        Ok(Self {
            links: [link::open(Instant::now(), uri, Role::To)?],
            reactor,
            stop,
            anchor: Anchor::now(),
            prober: Prober::new(plan, MonoNs::now())?,
            said: String::new(),
            tap: LinkTap::off(),
        })
    }

    fn record(&mut self, uri: &Uri, recording: &Recording) {
        let place = if uri.faces_drone(Role::To) {
            Place::Drone
        } else {
            Place::Network
        };
        self.links[0].set_tap(recording.tap(0, place));
        self.tap = recording.tap(0, Place::Client);
    }

    fn measure(&mut self, uri: &Uri) -> anyhow::Result<Measurement> {
        let mut progress = Progress::new(Instant::now());
        while !self.prober.is_over() && !self.stop.requested() {
            let now = self.turn()?;
            progress.update(now, &self.prober);
        }
        let hint = self.hint();
        self.close()?;
        if matches!(self.prober.phase(), Phase::NoPeer | Phase::Waiting) {
            bail!(
                "{uri}: no answer from the drone within {:?}; {}",
                self.prober.plan().wait,
                hint
            );
        }
        let unused = Prober::new(*self.prober.plan(), MonoNs::now())?;
        Ok(std::mem::replace(&mut self.prober, unused).finish(MonoNs::now()))
    }

    fn hint(&self) -> String {
        match (self.links[0].state(), self.said.as_str()) {
            (State::Up, _) => "the link is up, but nothing behind it echoes".to_owned(),
            (_, "") => "the link did not come up".to_owned(),
            (_, said) => format!("the link did not come up: {said}"),
        }
    }

    fn turn(&mut self) -> anyhow::Result<Instant> {
        let until = self
            .prober
            .poll_timeout()
            .map(|(at, _)| self.anchor.instant(at));
        let now = self.reactor.turn(&mut self.links, until)?;
        self.take_events();
        while let Some(received) = self.links[0].recv(now) {
            self.handle_packet(&received);
        }
        self.prober.handle_timeout(MonoNs::now());
        while let Some(probe) = self.prober.poll_send(MonoNs::now()) {
            self.send(&probe)?;
        }
        Ok(now)
    }

    fn take_events(&mut self) {
        while let Some(event) = self.links[0].poll_event() {
            match event {
                Event::Up(text) => tracing::debug!("{text}"),
                Event::Down(text) | Event::Notice(text) => {
                    tracing::debug!("{text}");
                    self.said = text;
                }
            }
        }
    }

    fn handle_packet(&mut self, received: &Received) {
        if received.packet.kind() != ECHO {
            return;
        }
        if let Some(echo) = read_tag(received.packet.data(), self.prober.plan().run_id) {
            self.prober.handle_echo(MonoNs::now(), &echo);
            if let Some(now) = self.tap.now() {
                self.tap.pass(Moment::Sending, now, &received.packet);
            }
        }
    }

    fn send(&mut self, probe: &Probe) -> anyhow::Result<()> {
        let packet = packet(probe)?;
        if let Some(now) = self.tap.now() {
            self.tap.pass(Moment::Received, now, &packet);
        }
        let outgoing = Outgoing {
            packet,
            class: Class::Ordered,
            expires: None,
        };
        let outcome = self.links[0].send(Instant::now(), &outgoing);
        if outcome != SendOutcome::Accepted && probe.sequence < HELLO {
            self.prober.handle_unsent(MonoNs::now(), probe.sequence);
        }
        Ok(())
    }

    /// Says goodbye to the peer and gives it the time that takes.
    fn close(&mut self) -> anyhow::Result<()> {
        let now = Instant::now();
        self.links[0].close(now);
        let end = now + std::time::Duration::from_millis(300);
        while self.links[0].state() != State::Closed
            && self.reactor.turn(&mut self.links, Some(end))? < end
        {}
        Ok(())
    }
}

/// An echo request: the tag, then zeros.
fn packet(probe: &Probe) -> anyhow::Result<Packet> {
    let mut data = [0; MAX_DATA];
    data[..TAG_LEN].copy_from_slice(&tag(probe));
    let length = probe.bytes.clamp(TAG_LEN, MAX_DATA);
    Ok(Packet::new(Port::LINK, Channel::C0, &data[..length])?)
}
