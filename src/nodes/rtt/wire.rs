//! The two topics of a prober: publishing, receiving, and what the graph says about the other end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Result, bail};
use latency::{Echo, MonoNs, Probe};
use rclrs::{
    IntoPrimitiveOptions as _, MessageInfo, Node, Publisher, QoSDurabilityPolicy, QoSProfile,
    QoSReliabilityPolicy, WorkerSubscription,
};

use super::{GLANCE, Settings};
use crate::nodes::probe_message::{Head, ProbeMessage};
use crate::ros::stop::Stop;

/// Echoes that may wait for the prober; more are dropped and counted.
const QUEUE: usize = 4096;

/// An echo and when it came in.
pub(super) struct Arrival {
    pub(super) at: MonoNs,
    pub(super) echo: Echo,
    /// When the probe left, by its own stamp.
    pub(super) sent: MonoNs,
    /// From the middleware's reception to the callback.
    pub(super) wake_ns: Option<u64>,
    /// From the publisher's middleware to ours; means something only if both have one clock.
    pub(super) transit_ns: Option<u64>,
    /// The payload is what was sent, as far as that was checked.
    pub(super) intact: bool,
}

/// The two topics and what comes in.
pub(super) struct Wire<M: ProbeMessage> {
    node: Node,
    echo_node: Node,
    publisher: Publisher<M>,
    qos: QoSProfile,
    pub(super) arrivals: Receiver<Arrival>,
    pub(super) overflow: Arc<AtomicU64>,
    subscription: WorkerSubscription<M, ()>,
}

impl<M: ProbeMessage> Wire<M> {
    pub(super) fn open(node: &Node, echo_node: &Node, settings: &Settings) -> Result<Self> {
        let publisher =
            node.create_publisher::<M>(settings.probe_topic.as_str().qos(settings.qos))?;
        let (sender, arrivals) = sync_channel(QUEUE);
        let overflow = Arc::new(AtomicU64::new(0));
        let worker = echo_node.create_worker(());
        let subscription = worker.create_subscription::<M, _>(
            settings.echo_topic.as_str().qos(settings.qos),
            on_echo::<M>(sender, Arc::clone(&overflow), settings.verify),
        )?;
        Ok(Self {
            node: Node::clone(node),
            echo_node: Node::clone(echo_node),
            publisher,
            qos: settings.qos,
            arrivals,
            overflow,
            subscription,
        })
    }

    /// Waits until a relay listens and speaks, as far as the graph shows.
    pub(super) fn wait_for_peer(&self, limit: Duration, stop: &Stop) -> Result<()> {
        let end = Instant::now() + limit;
        while !stop.requested() {
            let listens = self.publisher.get_subscription_count()? > 0;
            let speaks = self
                .echo_node
                .count_publishers(&self.subscription.topic_name())?
                > 0;
            if listens && speaks {
                return Ok(());
            }
            if Instant::now() >= end {
                bail!("{}", self.no_peer(limit, listens, speaks)?);
            }
            std::thread::sleep(GLANCE);
        }
        Ok(())
    }

    fn no_peer(&self, limit: Duration, listens: bool, speaks: bool) -> Result<String> {
        let (probe, echo) = (self.publisher.topic_name(), self.subscription.topic_name());
        let some = |there: bool, what: &str| format!("{} {what}", if there { "a" } else { "no" });
        Ok(format!(
            "no relay within {limit:?}: {} on {probe}, {} on {echo}; {}",
            some(listens, "subscription"),
            some(speaks, "publisher"),
            self.why_no_peer(listens)?,
        ))
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

    /// Publishes a probe; with `verify` its payload is that of its number.
    pub(super) fn send(
        &self,
        message: &mut M,
        probe: &Probe,
        verify: bool,
    ) -> Result<(), rclrs::RclrsError> {
        if verify {
            message.fill(probe.sequence);
        }
        message.set_head(&Head {
            run_id: probe.run_id,
            sequence: probe.sequence,
            intended_ns: probe.intended.0 as i64,
            sent_ns: probe.sent.0 as i64,
            ..Head::default()
        });
        self.publisher.publish(&*message)
    }

    /// What each topic's two ends agreed on, as far as the graph tells: `probe: reliable, volatile; echo: …`.
    pub(super) fn negotiated_qos(&self) -> Result<String> {
        let probe = self.publisher.topic_name();
        let echo = self.subscription.topic_name();
        let readers = self.node.get_subscriptions_info_by_topic(&probe)?;
        let writers = self.echo_node.get_publishers_info_by_topic(&echo)?;
        let out = readers.iter().map(|end| (&self.qos, &end.qos_profile));
        let back = writers.iter().map(|end| (&end.qos_profile, &self.qos));
        Ok(format!("probe: {}; echo: {}", all(out), all(back)))
    }
}

/// What each pair of writer and reader agreed on, each wording once.
fn all<'a>(pairs: impl Iterator<Item = (&'a QoSProfile, &'a QoSProfile)>) -> String {
    let mut words: Vec<String> = pairs
        .map(|(writer, reader)| agreed(writer, reader))
        .collect();
    words.sort();
    words.dedup();
    if words.is_empty() {
        "nobody".to_owned()
    } else {
        words.join(" and ")
    }
}

/// A connection is what the weaker side asks for; a reader that asks for more than the writer offers gets nothing
/// (OMG DDS 1.4, section 2.2.3, requested against offered).
fn agreed(writer: &QoSProfile, reader: &QoSProfile) -> String {
    let reliability = match (writer.reliability, reader.reliability) {
        (QoSReliabilityPolicy::BestEffort, QoSReliabilityPolicy::Reliable) => "no match",
        (_, QoSReliabilityPolicy::BestEffort) => "best_effort",
        _ => "reliable",
    };
    let durability = match (writer.durability, reader.durability) {
        (QoSDurabilityPolicy::Volatile, QoSDurabilityPolicy::TransientLocal) => "no match",
        (_, QoSDurabilityPolicy::TransientLocal) => "transient_local",
        _ => "volatile",
    };
    format!("{reliability}, {durability}")
}

fn on_echo<M: ProbeMessage>(
    sender: SyncSender<Arrival>,
    overflow: Arc<AtomicU64>,
    verify: bool,
) -> impl FnMut(M, MessageInfo) + Send {
    move |message: M, info: MessageInfo| {
        let at = MonoNs::now();
        let wake_ns = since(SystemTime::now(), info.received_timestamp);
        let transit_ns = info
            .received_timestamp
            .and_then(|received| since(received, info.source_timestamp));
        let head = message.head();
        let stamp = |ns: i64| MonoNs(ns.unsigned_abs());
        let relay = (head.relay_received_ns != 0)
            .then(|| (stamp(head.relay_received_ns), stamp(head.relay_sent_ns)));
        let is_hello = head.sequence >= latency::probe::HELLO;
        let arrival = Arrival {
            at,
            echo: Echo {
                run_id: head.run_id,
                sequence: head.sequence,
                relay,
                bytes: message.size(),
            },
            sent: stamp(head.sent_ns),
            wake_ns,
            transit_ns,
            intact: !verify || is_hello || message.is_intact(head.sequence),
        };
        if sender.try_send(arrival).is_err() {
            overflow.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Nanoseconds between two wall-clock times; `None` when one is missing or the clock was set back.
fn since(later: SystemTime, earlier: Option<SystemTime>) -> Option<u64> {
    let gap = later.duration_since(earlier?).ok()?;
    u64::try_from(gap.as_nanos()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_what_the_weaker_side_asks_for() {
        let reliable = QoSProfile::topics_default();
        let best_effort = reliable.best_effort();
        let latched = reliable.transient_local();
        assert_eq!(agreed(&reliable, &reliable), "reliable, volatile");
        assert_eq!(agreed(&reliable, &best_effort), "best_effort, volatile");
        assert_eq!(agreed(&best_effort, &reliable), "no match, volatile");
        assert_eq!(agreed(&latched, &reliable), "reliable, volatile");
        assert_eq!(agreed(&latched, &latched), "reliable, transient_local");
        let pairs = [
            (&reliable, &reliable),
            (&reliable, &best_effort),
            (&reliable, &reliable),
        ];
        assert_eq!(
            all(pairs.into_iter()),
            "best_effort, volatile and reliable, volatile"
        );
        assert_eq!(all([].into_iter()), "nobody");
    }
}
