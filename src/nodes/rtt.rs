//! The prober: measures round trips to a relay, size by size, and writes one results file.
//!
//! What leaves when and what an echo means is `latency::Prober`'s business; this module publishes, stamps and
//! waits. It works on the middleware's own message layout, so a payload is never copied in this process' code.

mod settings;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use latency::{Echo, Host, Measurement, MonoNs, Phase, Plan, Probe, Prober, Results};
use rclrs::{IntoPrimitiveOptions as _, Node, Publisher, WorkerSubscription};
use ros_env::crazyflie_openlink::msg::rmw::RttProbe;

pub use settings::Settings;

use crate::ros::args::NodeArgs;
use crate::ros::qos;
use crate::ros::session::Session;
use crate::ros::stop::Stop;

/// Echoes that may wait for the prober; more are dropped and counted.
const QUEUE: usize = 4096;
/// How often the graph and the stop flag are looked at while nothing else happens.
const GLANCE: Duration = Duration::from_millis(50);

/// An echo and when it came in.
type Arrival = (MonoNs, Echo);

/// The two topics and what comes in.
struct Wire {
    node: Node,
    publisher: Publisher<RttProbe>,
    arrivals: Receiver<Arrival>,
    overflow: Arc<AtomicU64>,
    subscription: WorkerSubscription<RttProbe, ()>,
}

impl Wire {
    fn open(node: &Node, settings: &Settings) -> Result<Self> {
        let publisher =
            node.create_publisher::<RttProbe>(settings.probe_topic.as_str().qos(settings.qos))?;
        let (sender, arrivals) = sync_channel(QUEUE);
        let overflow = Arc::new(AtomicU64::new(0));
        let worker = node.create_worker(());
        let subscription = worker.create_subscription::<RttProbe, _>(
            settings.echo_topic.as_str().qos(settings.qos),
            on_echo(sender, Arc::clone(&overflow)),
        )?;
        Ok(Self {
            node: Node::clone(node),
            publisher,
            arrivals,
            overflow,
            subscription,
        })
    }

    /// Waits until a relay listens and speaks, as far as the graph shows.
    fn wait_for_peer(&self, limit: Duration, stop: &Stop) -> Result<()> {
        let end = Instant::now() + limit;
        while !stop.requested() {
            let listens = self.publisher.get_subscription_count()? > 0;
            let speaks = self
                .node
                .count_publishers(&self.subscription.topic_name())?
                > 0;
            if listens && speaks {
                return Ok(());
            }
            if Instant::now() >= end {
                let (probe, echo) = (self.publisher.topic_name(), self.subscription.topic_name());
                bail!(
                    "no relay within {limit:?}: {} on {probe}, {} on {echo}; {}",
                    if listens {
                        "a subscription"
                    } else {
                        "no subscription"
                    },
                    if speaks {
                        "a publisher"
                    } else {
                        "no publisher"
                    },
                    self.why_no_peer(listens)?,
                );
            }
            std::thread::sleep(GLANCE);
        }
        Ok(())
    }

    /// A subscription that is there and does not match can only be of another QoS.
    fn why_no_peer(&self, listens: bool) -> Result<&'static str> {
        let there = self
            .node
            .count_subscriptions(&self.publisher.topic_name())?
            > 0;
        Ok(if there && !listens {
            "a relay is there, but its QoS does not fit ours: a reliable subscription hears no best-effort publisher"
        } else {
            "is one running in a domain that is joined to this one?"
        })
    }

    fn send(&self, message: &mut RttProbe, probe: &Probe) -> Result<(), rclrs::RclrsError> {
        message.run_id = probe.run_id;
        message.sequence = probe.sequence;
        message.intended_ns = probe.intended.0 as i64;
        message.sent_ns = probe.sent.0 as i64;
        self.publisher.publish(&*message)
    }
}

fn on_echo(sender: SyncSender<Arrival>, overflow: Arc<AtomicU64>) -> impl FnMut(RttProbe) + Send {
    move |echo: RttProbe| {
        let now = MonoNs::now();
        let stamp = |ns: i64| MonoNs(ns.unsigned_abs());
        let relay = (echo.relay_received_ns != 0)
            .then(|| (stamp(echo.relay_received_ns), stamp(echo.relay_sent_ns)));
        let bytes = echo.data.len();
        let arrival = (
            now,
            Echo {
                run_id: echo.run_id,
                sequence: echo.sequence,
                relay,
                bytes,
            },
        );
        if sender.try_send(arrival).is_err() {
            overflow.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Runs one plan to its end or to a signal.
fn measure(wire: &Wire, plan: Plan, stop: &Stop) -> Result<Measurement> {
    let mut prober = Prober::new(plan, MonoNs::now())?;
    let mut payload = RttProbe {
        data: vec![0; plan.bytes].into(),
        ..RttProbe::default()
    };
    let mut hello = RttProbe::default();
    while !prober.is_over() && !stop.requested() {
        while let Some(probe) = prober.poll_send(MonoNs::now()) {
            let message = if probe.bytes == plan.bytes {
                &mut payload
            } else {
                &mut hello
            };
            if let Err(error) = wire.send(message, &probe) {
                tracing::warn!(sequence = probe.sequence, %error, "cannot publish");
                prober.handle_unsent(MonoNs::now(), probe.sequence);
            }
        }
        wait(wire, &mut prober)?;
    }
    if prober.phase() == Phase::NoPeer {
        bail!(
            "the relay did not answer within {:?}: do its QoS and ours fit each other?",
            plan.wait
        );
    }
    Ok(prober.finish(MonoNs::now()))
}

/// Waits for an echo, the next timer or a glance at the stop flag, and hands in what happened.
fn wait(wire: &Wire, prober: &mut Prober) -> Result<()> {
    let now = MonoNs::now();
    let until = prober
        .poll_timeout()
        .map_or(GLANCE, |(at, _)| at.after(now))
        .min(GLANCE);
    match wire.arrivals.recv_timeout(until) {
        Ok((at, echo)) => {
            prober.handle_echo(at, &echo);
            while let Ok((at, echo)) = wire.arrivals.try_recv() {
                prober.handle_echo(at, &echo);
            }
        }
        Err(RecvTimeoutError::Timeout) => {}
        Err(RecvTimeoutError::Disconnected) => bail!("the echo subscription is gone"),
    }
    prober.handle_timeout(MonoNs::now());
    Ok(())
}

/// Measures every size and writes the results file.
///
/// # Errors
/// A parameter that is not allowed, no relay, a file that cannot be written, or what rclrs says.
pub fn run(args: &NodeArgs) -> Result<()> {
    let settings = Settings::read(args)?;
    let stop = Stop::install()?;
    let mut session = Session::open(args, settings.domain, "")?;
    session.declare(args)?;
    let wire = Wire::open(session.node(), &settings)?;
    session.start()?;
    tracing::info!(
        domain = settings.domain,
        probe = settings.probe_topic,
        echo = settings.echo_topic,
        qos = qos::describe(&settings.qos),
        "waiting for the relay"
    );
    wire.wait_for_peer(settings.wait, &stop)?;
    let mut rows = Vec::new();
    for bytes in &settings.sizes {
        if stop.requested() {
            break;
        }
        let measurement = measure(&wire, settings.plan(*bytes), &stop)?;
        let row = settings.row(&measurement);
        tracing::info!(
            sent = row.sent,
            received = row.received,
            lost = row.lost,
            late = row.late,
            p50_us = latency::table::us(row.rtt_us.p50),
            "{}",
            row.label()
        );
        rows.push(row);
    }
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
