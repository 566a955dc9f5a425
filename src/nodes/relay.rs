//! The relay: echoes every probe with the times it arrived and left, in the same domain or in another one.
//!
//! It works on the middleware's own message layout, so a payload is never copied in this process' code.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use latency::MonoNs;
use latency::probe::HELLO;
use rclrs::{IntoPrimitiveOptions as _, Node, QoSProfile, WorkerSubscription};
use ros_env::crazyflie_openlink::msg::rmw::{RttImage, RttImu, RttProbe, RttText};

use super::probe_message::{KINDS, ProbeMessage};
use crate::ros::args::{ArgsError, NodeArgs};
use crate::ros::domain;
use crate::ros::qos;
use crate::ros::session::Session;
use crate::ros::stop::Waiter;

/// Longest time a probe may be held back, ms.
const MAX_HOLD_MS: f64 = 10_000.0;

/// What the relay's parameters say.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Domain where probes come in.
    pub domain: usize,
    /// Domain where echoes go out; another one makes the process a member of both.
    pub echo_domain: usize,
    /// Where probes come in.
    pub probe_topic: String,
    /// Where echoes go out.
    pub echo_topic: String,
    /// Kind of the payload, one of [`KINDS`].
    pub payload: String,
    /// QoS of both topics.
    pub qos: QoSProfile,
    /// For how long each probe is held back before it is echoed, to test the subtraction of processing time.
    pub hold: Duration,
    /// Probes with a lower number, the warm-up, are in no count.
    pub skip: u64,
    /// Where the counts are written at the end; empty: nowhere.
    pub counts: PathBuf,
}

impl Settings {
    /// Reads and checks the parameters.
    ///
    /// # Errors
    /// The first parameter that is not allowed.
    pub fn read(args: &NodeArgs) -> Result<Self, ArgsError> {
        let domain = domain::of(args, "domain_id")?;
        let settings = Self {
            domain,
            echo_domain: super::echo_domain(args, domain)?,
            probe_topic: args.text("probe_topic", "rtt/probe")?,
            echo_topic: args.text("echo_topic", "rtt/echo")?,
            payload: args.word("payload", KINDS[0], &KINDS)?,
            qos: qos::profile(args, "rtt", "default")?,
            hold: Duration::from_secs_f64(args.float("hold_ms", 0.0, 0.0..=MAX_HOLD_MS)? / 1e3),
            skip: args.int("skip", 0, 0..=latency::probe::MAX_PROBES as i64)? as u64,
            counts: args.text("counts", "")?.into(),
        };
        args.refuse_unknown()?;
        super::refuse_equal_topics(&settings.probe_topic, &settings.echo_topic)?;
        Ok(settings)
    }
}

/// Probes that counted, without those that look for the relay.
#[derive(Debug, Default)]
pub struct Counts {
    /// Came in.
    pub received: AtomicU64,
    /// Left again.
    pub echoed: AtomicU64,
}

impl Counts {
    /// As a JSON object.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        serde_json::json!({"received": read(&self.received), "echoed": read(&self.echoed)})
    }
}

/// Starts echoing from `node` to `echo_node`.
///
/// # Errors
/// What rclrs says.
fn start<M: ProbeMessage>(
    node: &Node,
    echo_node: &Node,
    settings: &Settings,
    counts: &Arc<Counts>,
) -> Result<WorkerSubscription<M, ()>> {
    let publisher =
        echo_node.create_publisher::<M>(settings.echo_topic.as_str().qos(settings.qos))?;
    let (counts, hold, skip) = (Arc::clone(counts), settings.hold, settings.skip);
    let echo = move |mut probe: M| {
        let mut head = probe.head();
        head.relay_received_ns = MonoNs::now().0 as i64;
        let counted = u64::from((skip..HELLO).contains(&head.sequence));
        counts.received.fetch_add(counted, Ordering::Relaxed);
        if !hold.is_zero() {
            std::thread::sleep(hold);
        }
        head.relay_sent_ns = MonoNs::now().0 as i64;
        probe.set_head(&head);
        match publisher.publish(&probe) {
            Ok(()) => drop(counts.echoed.fetch_add(counted, Ordering::Relaxed)),
            Err(error) => tracing::warn!(sequence = head.sequence, %error, "cannot echo"),
        }
    };
    let worker = node.create_worker(());
    Ok(
        worker
            .create_subscription::<M, _>(settings.probe_topic.as_str().qos(settings.qos), echo)?,
    )
}

/// Runs the relay until SIGINT or SIGTERM.
///
/// # Errors
/// A parameter that is not allowed, a file that cannot be written, or what rclrs says.
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
    let signal = Waiter::install()?;
    let mut session = Session::open(args, settings.domain, "")?;
    session.declare(args)?;
    let mut second = super::second_session(args, settings.domain, settings.echo_domain)?;
    let echo_node = second.as_ref().unwrap_or(&session).node();
    let counts = Arc::new(Counts::default());
    let _subscription = start::<M>(session.node(), echo_node, settings, &counts)?;
    session.start()?;
    if let Some(second) = &mut second {
        second.start()?;
    }
    tracing::info!(
        domain = settings.domain,
        echo_domain = settings.echo_domain,
        probe = settings.probe_topic,
        echo = settings.echo_topic,
        payload = settings.payload,
        qos = qos::describe(&settings.qos),
        "relay is up"
    );
    signal.wait();
    session.stop();
    let echoed = counts.echoed.load(Ordering::Relaxed);
    tracing::info!(echoed, "relay ends");
    if !settings.counts.as_os_str().is_empty() {
        let path = &settings.counts;
        std::fs::write(path, counts.json().to_string())
            .with_context(|| format!("counts: {}", path.display()))?;
    }
    Ok(())
}
