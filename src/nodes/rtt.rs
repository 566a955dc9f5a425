//! The prober: measures round trips to a relay, size by size, and writes one results file.
//!
//! What leaves when and what an echo means is `latency::Prober`'s business; this module publishes, stamps and
//! waits. It works on the middleware's own message layout, so a payload is never copied in this process' code.

mod settings;
mod stamps;
mod wire;

use std::sync::atomic::Ordering;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use anyhow::{Result, bail};
use latency::{
    Host, Measurement, MonoNs, Phase, Plan, Prober, Results, Row, Snapshot, Stamps, Verdict,
    Watched,
};
use ros_env::crazyflie_openlink::msg::rmw::{RttImage, RttImu, RttProbe, RttText};

pub use settings::Settings;

use super::probe_message::ProbeMessage;
use crate::ros::args::NodeArgs;
use crate::ros::qos;
use crate::ros::session::Session;
use crate::ros::stop::Stop;
use stamps::Recorder;
use wire::{Arrival, Wire};

/// How often the graph and the stop flag are looked at while nothing else happens.
const GLANCE: Duration = Duration::from_millis(50);

/// One run: the prober and what is recorded beside it.
struct Run<'a, M: ProbeMessage> {
    wire: &'a Wire<M>,
    prober: Prober,
    stamps: Recorder,
    /// Fill and check each payload.
    verify: bool,
}

impl<M: ProbeMessage> Run<'_, M> {
    /// Follows the plan to its end or to a signal.
    fn measure(mut self, plan: &Plan, stop: &Stop) -> Result<(Measurement, Stamps)> {
        let mut payload = M::with_size(plan.bytes);
        let mut hello = M::with_size(0);
        while !self.prober.is_over() && !stop.requested() {
            while let Some(probe) = self.prober.poll_send(MonoNs::now()) {
                let is_hello = probe.sequence >= latency::probe::HELLO;
                let message = if is_hello { &mut hello } else { &mut payload };
                let verify = self.verify && !is_hello;
                if let Err(error) = self.wire.send(message, &probe, verify) {
                    tracing::warn!(sequence = probe.sequence, %error, "cannot publish");
                    self.prober.handle_unsent(MonoNs::now(), probe.sequence);
                }
            }
            self.wait()?;
        }
        if self.prober.phase() == Phase::NoPeer {
            bail!(
                "the relay did not answer within {:?}: do its QoS and ours fit each other?",
                plan.wait
            );
        }
        Ok((self.prober.finish(MonoNs::now()), self.stamps.summary()))
    }

    /// Waits for an echo, the next timer or a glance at the stop flag, and hands in what happened.
    fn wait(&mut self) -> Result<()> {
        let now = MonoNs::now();
        let until = self
            .prober
            .poll_timeout()
            .map_or(GLANCE, |(at, _)| at.after(now))
            .min(GLANCE);
        match self.wire.arrivals.recv_timeout(until) {
            Ok(arrival) => {
                self.handle(&arrival);
                while let Ok(arrival) = self.wire.arrivals.try_recv() {
                    self.handle(&arrival);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => bail!("the echo subscription is gone"),
        }
        self.prober.handle_timeout(MonoNs::now());
        Ok(())
    }

    fn handle(&mut self, arrival: &Arrival) {
        let verdict = if arrival.intact {
            self.prober.handle_echo(arrival.at, &arrival.echo)
        } else {
            self.prober.handle_damaged(arrival.at, &arrival.echo)
        };
        if let Verdict::Received(_) = verdict {
            self.stamps.record(arrival);
        }
    }
}

/// Measures every size and writes the results file.
///
/// # Errors
/// A parameter that is not allowed, no relay, a file that cannot be written, or what rclrs says.
pub fn run(args: &NodeArgs) -> Result<()> {
    let settings = Settings::read(args)?;
    match settings.payload.as_str() {
        "image" => run_with::<RttImage>(args, &settings),
        "string" => run_with::<RttText>(args, &settings),
        "imu" => run_with::<RttImu>(args, &settings),
        _ => run_with::<RttProbe>(args, &settings),
    }
}

fn run_with<M: ProbeMessage>(args: &NodeArgs, settings: &Settings) -> Result<()> {
    let stop = Stop::install()?;
    let mut session = Session::open(args, settings.domain, "")?;
    session.declare(args)?;
    let mut second = super::second_session(args, settings.domain, settings.echo_domain)?;
    let echo_node = second.as_ref().unwrap_or(&session).node();
    let wire = Wire::<M>::open(session.node(), echo_node, settings)?;
    session.start()?;
    if let Some(second) = &mut second {
        second.start()?;
    }
    tracing::info!(
        domain = settings.domain,
        probe = settings.probe_topic,
        echo = settings.echo_topic,
        payload = settings.payload,
        qos = qos::describe(&settings.qos),
        "waiting for the relay"
    );
    wire.wait_for_peer(settings.wait, &stop)?;
    let rows = measure_all(&wire, settings, &stop)?;
    let overflow = wire.overflow.load(Ordering::Relaxed);
    if overflow > 0 {
        tracing::warn!(
            overflow,
            "echoes were dropped because the prober fell behind; they count as lost"
        );
    }
    session.stop();
    if rows.is_empty() {
        let output = settings.output.display();
        bail!("stopped before anything was measured; {output} is left as it was");
    }
    let host = Host::read().with_version("rmw", &crate::rcl_raw::rmw_name());
    Results::new(host, rows).write(&settings.output)?;
    tracing::info!(file = %settings.output.display(), "results written");
    Ok(())
}

fn measure_all<M: ProbeMessage>(
    wire: &Wire<M>,
    settings: &Settings,
    stop: &Stop,
) -> Result<Vec<Row>> {
    let own = Watched {
        name: "prober".to_owned(),
        pid: std::process::id(),
    };
    let watched: Vec<Watched> = std::iter::once(own)
        .chain(settings.watched.iter().cloned())
        .collect();
    let mut rows = Vec::new();
    for bytes in &settings.sizes {
        if stop.requested() {
            break;
        }
        let row = measure_one(wire, settings, *bytes, &watched, stop)?;
        tracing::info!(
            sent = row.sent,
            received = row.received,
            lost = row.lost,
            late = row.late,
            damaged = row.damaged,
            p50_us = latency::table::us(row.rtt_us.p50),
            "{}",
            row.label()
        );
        rows.push(row);
    }
    Ok(rows)
}

fn measure_one<M: ProbeMessage>(
    wire: &Wire<M>,
    settings: &Settings,
    bytes: usize,
    watched: &[Watched],
    stop: &Stop,
) -> Result<Row> {
    let plan = settings.plan(bytes);
    let before = Snapshot::read(watched);
    let run = Run {
        wire,
        prober: Prober::new(plan, MonoNs::now())?,
        stamps: Recorder::new(settings.shared_clock),
        verify: settings.verify,
    };
    let (measurement, stamps) = run.measure(&plan, stop)?;
    let causes = Snapshot::read(watched).since(&before);
    let mut row = settings.row(&measurement);
    let probes = row.received + row.warmup;
    let seen = causes.transport_seen(probes, bytes);
    let settings = &mut row.identity.settings;
    settings.insert("transport_seen".to_owned(), seen.into());
    settings.insert("qos_negotiated".to_owned(), wire.negotiated_qos()?.into());
    row.stamps = Some(stamps);
    row.causes = Some(causes);
    Ok(row)
}
