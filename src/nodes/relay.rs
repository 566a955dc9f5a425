//! The relay: echoes every probe with the times it arrived and left.
//!
//! It works on the middleware's own message layout, so a payload is never copied in this process' code.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use rclrs::{IntoPrimitiveOptions as _, Node, QoSProfile, WorkerSubscription};
use ros_env::crazyflie_openlink::msg::rmw::RttProbe;

use crate::ros::args::{ArgsError, NodeArgs};
use crate::ros::domain;
use crate::ros::qos;
use crate::ros::session::Session;
use crate::ros::stop::Waiter;
use latency::MonoNs;

/// Longest time a probe may be held back, ms.
const MAX_HOLD_MS: f64 = 10_000.0;

/// What the relay's parameters say.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Domain of both topics.
    pub domain: usize,
    /// Where probes come in.
    pub probe_topic: String,
    /// Where echoes go out.
    pub echo_topic: String,
    /// QoS of both topics.
    pub qos: QoSProfile,
    /// For how long each probe is held back before it is echoed, to test the subtraction of processing time.
    pub hold: Duration,
}

impl Settings {
    /// Reads and checks the parameters.
    ///
    /// # Errors
    /// The first parameter that is not allowed.
    pub fn read(args: &NodeArgs) -> Result<Self, ArgsError> {
        let settings = Self {
            domain: domain::of(args, "domain_id")?,
            probe_topic: args.text("probe_topic", "rtt/probe")?,
            echo_topic: args.text("echo_topic", "rtt/echo")?,
            qos: qos::profile(args, "rtt", "default")?,
            hold: Duration::from_secs_f64(args.float("hold_ms", 0.0, 0.0..=MAX_HOLD_MS)? / 1e3),
        };
        args.refuse_unknown()?;
        super::refuse_equal_topics(&settings.probe_topic, &settings.echo_topic)?;
        Ok(settings)
    }
}

/// Starts echoing on `node`. The count is of echoed probes.
///
/// # Errors
/// What rclrs says.
pub fn start(
    node: &Node,
    settings: &Settings,
) -> Result<(WorkerSubscription<RttProbe, ()>, Arc<AtomicU64>)> {
    let publisher =
        node.create_publisher::<RttProbe>(settings.echo_topic.as_str().qos(settings.qos))?;
    let echoed = Arc::new(AtomicU64::new(0));
    let (count, hold) = (Arc::clone(&echoed), settings.hold);
    let echo = move |mut probe: RttProbe| {
        probe.relay_received_ns = MonoNs::now().0 as i64;
        if !hold.is_zero() {
            std::thread::sleep(hold);
        }
        probe.relay_sent_ns = MonoNs::now().0 as i64;
        match publisher.publish(&probe) {
            Ok(()) => drop(count.fetch_add(1, Ordering::Relaxed)),
            Err(error) => tracing::warn!(sequence = probe.sequence, %error, "cannot echo"),
        }
    };
    let worker = node.create_worker(());
    let subscription = worker.create_subscription::<RttProbe, _>(
        settings.probe_topic.as_str().qos(settings.qos),
        echo,
    )?;
    Ok((subscription, echoed))
}

/// Runs the relay until SIGINT or SIGTERM.
///
/// # Errors
/// A parameter that is not allowed, or what rclrs says.
pub fn run(args: &NodeArgs) -> Result<()> {
    let settings = Settings::read(args)?;
    let signal = Waiter::install()?;
    let mut session = Session::open(args, settings.domain, "")?;
    session.declare(args)?;
    let (_subscription, echoed) = start(session.node(), &settings)?;
    session.start()?;
    tracing::info!(
        domain = settings.domain,
        probe = settings.probe_topic,
        echo = settings.echo_topic,
        qos = qos::describe(&settings.qos),
        "relay is up"
    );
    signal.wait();
    session.stop();
    tracing::info!(echoed = echoed.load(Ordering::Relaxed), "relay ends");
    Ok(())
}
