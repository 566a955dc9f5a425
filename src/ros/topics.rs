//! The topics that a node opens: their QoS with ROS 2's override parameters, and a watch that tells what was matched
//! and what cannot match.
//!
//! `qos_overrides./chatter.publisher.reliability` works as in other ROS 2 nodes; durations there are nanoseconds. The
//! watch looks at the graph once a second, as rclrs does not hand out the middleware's events.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rclrs::{
    Node, QoSDurabilityPolicy, QoSDuration, QoSHistoryPolicy, QoSLivelinessPolicy, QoSProfile,
    QoSReliabilityPolicy, RclrsError, TopicEndpointInfo,
};
use serde_json::Value;

use super::args::{ArgsError, Names, NodeArgs};
use super::qos;

/// Where override parameters live.
const PREFIX: &str = "qos_overrides.";
/// How often the graph is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// The node's end of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// It publishes.
    Publisher,
    /// It subscribes.
    Subscription,
}

/// One policy that a parameter sets.
#[derive(Clone, Copy, Debug)]
enum Policy {
    Reliability(QoSReliabilityPolicy),
    Durability(QoSDurabilityPolicy),
    Liveliness(QoSLivelinessPolicy),
    KeepLast,
    KeepAll,
    Depth(u32),
    Deadline(QoSDuration),
    Lifespan(QoSDuration),
    Lease(QoSDuration),
    PlainName(bool),
}

#[derive(Clone, Debug)]
struct Override {
    topic: String,
    side: Side,
    policy: Policy,
}

#[derive(Clone, Debug)]
struct Opened {
    topic: String,
    side: Side,
    qos: QoSProfile,
}

/// The overrides of a node, and the topics it has opened.
#[derive(Clone, Debug)]
pub struct Topics {
    names: Names,
    overrides: Arc<[Override]>,
    opened: Arc<Mutex<Vec<Opened>>>,
}

impl Topics {
    /// Reads the override parameters.
    ///
    /// # Errors
    /// [`ArgsError::Value`] naming the parameter, its value and what is allowed.
    pub fn read(args: &NodeArgs) -> Result<Self, ArgsError> {
        let mut overrides = Vec::new();
        for (rest, value) in args.below(PREFIX) {
            overrides.push(parse(&rest, &value)?);
            args.took_effect(&format!("{PREFIX}{rest}"), value);
        }
        Ok(Self {
            names: args.names().clone(),
            overrides: overrides.into(),
            opened: Arc::default(),
        })
    }

    /// The QoS of the node's end of `topic`, where the topic's group has `base`. Call once for each end that is opened:
    /// it is watched from then on.
    #[must_use]
    pub fn open(&self, topic: &str, side: Side, base: QoSProfile) -> QoSProfile {
        let topic = self.names.full_topic(topic);
        let mine = self
            .overrides
            .iter()
            .filter(|one| one.topic == topic && one.side == side);
        let qos = mine.fold(base, |qos, one| one.policy.apply(qos));
        self.list().push(Opened { topic, side, qos });
        qos
    }

    fn list(&self) -> std::sync::MutexGuard<'_, Vec<Opened>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts watching what `node` has opened; ends when the watch is dropped.
    ///
    /// # Errors
    /// The thread cannot be made.
    pub fn watch(&self, node: &Node) -> std::io::Result<Watch> {
        self.warn_of_unused();
        let stop = Arc::new(AtomicBool::new(false));
        let mut look = Look {
            node: Node::clone(node),
            topics: self.clone(),
            told: BTreeSet::new(),
        };
        let ends = Arc::clone(&stop);
        let run = move || {
            while !ends.load(Ordering::Acquire) {
                look.once();
                std::thread::park_timeout(LOOK);
            }
        };
        let thread = std::thread::Builder::new()
            .name("matching".into())
            .spawn(run)?;
        Ok(Watch {
            stop,
            thread: Some(thread),
        })
    }

    fn warn_of_unused(&self) {
        let opened = self.list();
        let used = |one: &&Override| {
            opened
                .iter()
                .any(|o| o.topic == one.topic && o.side == one.side)
        };
        for one in self.overrides.iter().filter(|one| !used(one)) {
            let topics: BTreeSet<_> = opened.iter().map(|o| o.topic.as_str()).collect();
            tracing::warn!(topic = one.topic, side = ?one.side, has = ?topics, "qos_overrides for what this node does not open");
        }
    }
}

/// Ends the watch when dropped.
#[derive(Debug)]
pub struct Watch {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            if thread.join().is_err() {
                tracing::error!("the matching thread panicked");
            }
        }
    }
}

/// A peer's end of a topic that was told of: topic, our side, node, and the policy that does not match.
type Told = (String, Side, String, Option<&'static str>);

struct Look {
    node: Node,
    topics: Topics,
    told: BTreeSet<Told>,
}

impl Look {
    fn once(&mut self) {
        let opened = self.topics.list().clone();
        for end in &opened {
            if let Err(error) = self.compare(end) {
                tracing::debug!(topic = end.topic, %error, "cannot look for peers");
            }
        }
    }

    fn compare(&mut self, end: &Opened) -> Result<(), RclrsError> {
        let peers = match end.side {
            Side::Publisher => self.node.get_subscriptions_info_by_topic(&end.topic)?,
            Side::Subscription => self.node.get_publishers_info_by_topic(&end.topic)?,
        };
        let own = (self.node.name(), self.node.namespace());
        for peer in peers {
            if (&peer.node_name, &peer.node_namespace) != (&own.0, &own.1) {
                self.tell(end, &peer);
            }
        }
        Ok(())
    }

    fn tell(&mut self, end: &Opened, peer: &TopicEndpointInfo) {
        let theirs = &peer.qos_profile;
        let policy = match end.side {
            Side::Publisher => mismatch(&end.qos, theirs),
            Side::Subscription => mismatch(theirs, &end.qos),
        };
        let name = format!(
            "{}/{}",
            peer.node_namespace.trim_end_matches('/'),
            peer.node_name
        );
        if !self
            .told
            .insert((end.topic.clone(), end.side, name.clone(), policy))
        {
            return;
        }
        let (ours, theirs) = (qos::describe(&end.qos), qos::describe(theirs));
        match policy {
            Some(policy) => {
                tracing::warn!(
                    topic = end.topic,
                    policy,
                    peer = name,
                    ours,
                    theirs,
                    "incompatible QoS: no message will pass"
                );
            }
            None => {
                tracing::info!(topic = end.topic, side = ?end.side, peer = name, ours, theirs, "matched")
            }
        }
    }
}

/// The first policy for which an offer does not meet a request, as DDS matches them; what is left to the middleware is
/// not judged.
#[must_use]
pub fn mismatch(offer: &QoSProfile, request: &QoSProfile) -> Option<&'static str> {
    use QoSDurabilityPolicy::{TransientLocal, Volatile};
    use QoSLivelinessPolicy::{Automatic, ManualByTopic};
    use QoSReliabilityPolicy::{BestEffort, Reliable};
    if (offer.reliability, request.reliability) == (BestEffort, Reliable) {
        Some("reliability")
    } else if (offer.durability, request.durability) == (Volatile, TransientLocal) {
        Some("durability")
    } else if longer(offer.deadline, request.deadline) {
        Some("deadline")
    } else if (offer.liveliness, request.liveliness) == (Automatic, ManualByTopic) {
        Some("liveliness")
    } else if longer(offer.liveliness_lease, request.liveliness_lease) {
        Some("liveliness_lease_duration")
    } else {
        None
    }
}

/// Whether what is offered is longer than the finite time that is asked for.
fn longer(offer: QoSDuration, request: QoSDuration) -> bool {
    match (offer, request) {
        (QoSDuration::Custom(offer), QoSDuration::Custom(request)) => offer > request,
        (QoSDuration::Infinite, QoSDuration::Custom(_)) => true,
        _ => false,
    }
}

impl Policy {
    fn apply(self, mut qos: QoSProfile) -> QoSProfile {
        let depth_now = match qos.history {
            QoSHistoryPolicy::KeepLast { depth } | QoSHistoryPolicy::SystemDefault { depth } => {
                depth.max(1)
            }
            QoSHistoryPolicy::KeepAll => 1,
        };
        match self {
            Self::Reliability(value) => qos.reliability = value,
            Self::Durability(value) => qos.durability = value,
            Self::Liveliness(value) => qos.liveliness = value,
            Self::KeepAll => qos.history = QoSHistoryPolicy::KeepAll,
            Self::KeepLast => qos.history = QoSHistoryPolicy::KeepLast { depth: depth_now },
            // A parameter's keys come in order of the alphabet, so that depth is applied before history.
            Self::Depth(depth) => qos.history = QoSHistoryPolicy::KeepLast { depth },
            Self::Deadline(value) => qos.deadline = value,
            Self::Lifespan(value) => qos.lifespan = value,
            Self::Lease(value) => qos.liveliness_lease = value,
            Self::PlainName(value) => qos.avoid_ros_namespace_conventions = value,
        }
        qos
    }
}

/// Reads `<topic>.<publisher or subscription>.<policy>`, where an entity may have an identity behind `_`.
fn parse(rest: &str, value: &Value) -> Result<Override, ArgsError> {
    let key = format!("{PREFIX}{rest}");
    let form = || {
        let allowed =
            format!("{PREFIX}/topic.publisher.policy or {PREFIX}/topic.subscription.policy");
        ArgsError::value(&key, value, allowed)
    };
    let (front, policy) = rest.rsplit_once('.').ok_or_else(form)?;
    let (topic, entity) = front.rsplit_once('.').ok_or_else(form)?;
    let side = match entity.split('_').next() {
        Some("publisher") => Side::Publisher,
        Some("subscription") => Side::Subscription,
        _ => return Err(form()),
    };
    if !topic.starts_with('/') {
        return Err(form());
    }
    let policy =
        policy_of(policy, value).map_err(|allowed| ArgsError::value(&key, value, allowed))?;
    Ok(Override {
        topic: topic.to_owned(),
        side,
        policy,
    })
}

/// The policy, or what would be allowed.
fn policy_of(name: &str, value: &Value) -> Result<Policy, String> {
    let word = |words: &[&'static str]| {
        let found = words.iter().find(|word| value.as_str() == Some(**word));
        found.copied().ok_or_else(|| words.join(", "))
    };
    let time = || {
        duration(value)
            .ok_or_else(|| "nanoseconds above 0, a negative number for infinite".to_owned())
    };
    Ok(match name {
        "reliability" => Policy::Reliability(qos::reliability(word(&[
            "reliable",
            "best_effort",
            "system_default",
        ])?)),
        "durability" => Policy::Durability(qos::durability(word(&[
            "volatile",
            "transient_local",
            "system_default",
        ])?)),
        "liveliness" => Policy::Liveliness(qos::liveliness(word(&[
            "automatic",
            "manual_by_topic",
            "system_default",
        ])?)),
        "history" => match word(&["keep_last", "keep_all"])? {
            "keep_all" => Policy::KeepAll,
            _ => Policy::KeepLast,
        },
        "depth" => {
            let depth = value
                .as_i64()
                .filter(|depth| (1..=qos::MAX_DEPTH).contains(depth));
            Policy::Depth(
                depth.ok_or_else(|| format!("a whole number from 1 to {}", qos::MAX_DEPTH))? as u32,
            )
        }
        "deadline" => Policy::Deadline(time()?),
        "lifespan" => Policy::Lifespan(time()?),
        "liveliness_lease_duration" => Policy::Lease(time()?),
        "avoid_ros_namespace_conventions" => {
            Policy::PlainName(value.as_bool().ok_or_else(|| "true or false".to_owned())?)
        }
        _ => {
            return Err("a policy: reliability, durability, liveliness, history, depth, deadline, lifespan, liveliness_lease_duration, avoid_ros_namespace_conventions".into());
        }
    })
}

fn duration(value: &Value) -> Option<QoSDuration> {
    match value.as_i64()? {
        0 => None,
        ns if ns < 0 || ns == i64::MAX => Some(QoSDuration::Infinite),
        ns => Some(QoSDuration::Custom(Duration::from_nanos(ns.unsigned_abs()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topics(parameters: &str) -> Result<Topics, ArgsError> {
        let flags = parameters
            .split_whitespace()
            .flat_map(|p| ["-p".to_owned(), p.to_owned()]);
        let args = NodeArgs::parse(
            ["bridge".to_owned(), "--ros-args".to_owned()]
                .into_iter()
                .chain(flags),
            "bridge",
        )?;
        let topics = Topics::read(&args)?;
        args.refuse_unknown()?;
        Ok(topics)
    }

    #[test]
    fn an_override_reaches_its_end_of_its_topic_and_no_other() {
        let topics = topics("qos_overrides./cf1/pose.publisher.reliability:=best_effort qos_overrides./cf1/pose.publisher.depth:=3 qos_overrides./cf1/pose.publisher.deadline:=20000000").unwrap();
        let base = QoSProfile::topics_default();
        let text = |topic, side| qos::describe(&topics.open(topic, side, base));
        assert_eq!(
            text("/cf1/pose", Side::Publisher),
            "best_effort, volatile, keep_last 3, deadline 0.02 s"
        );
        assert_eq!(text("/cf1/pose", Side::Subscription), qos::describe(&base));
        assert_eq!(text("/cf2/pose", Side::Publisher), qos::describe(&base));
    }

    #[test]
    fn every_policy_can_be_overridden() {
        let topics = topics("qos_overrides./a.subscription_b.history:=keep_all qos_overrides./a.subscription_b.durability:=transient_local qos_overrides./a.subscription_b.liveliness:=manual_by_topic qos_overrides./a.subscription_b.liveliness_lease_duration:=5 qos_overrides./a.subscription_b.lifespan:=-1 qos_overrides./a.subscription_b.avoid_ros_namespace_conventions:=true").unwrap();
        let qos = topics.open("/a", Side::Subscription, QoSProfile::topics_default());
        assert_eq!(qos.history, QoSHistoryPolicy::KeepAll);
        assert_eq!(qos.durability, QoSDurabilityPolicy::TransientLocal);
        assert_eq!(qos.liveliness, QoSLivelinessPolicy::ManualByTopic);
        assert_eq!(
            qos.liveliness_lease,
            QoSDuration::Custom(Duration::from_nanos(5))
        );
        assert_eq!(qos.lifespan, QoSDuration::Infinite);
        assert!(qos.avoid_ros_namespace_conventions);
    }

    #[test]
    fn slips_name_the_parameter_and_what_is_allowed() {
        for (slip, part) in [
            (
                "qos_overrides./a.publisher.reliability:=relaible",
                "reliable, best_effort",
            ),
            ("qos_overrides./a.publisher.depth:=0", "from 1 to 100000"),
            (
                "qos_overrides./a.publisher.deadline:=0",
                "nanoseconds above 0",
            ),
            (
                "qos_overrides./a.publisher.lifespan:=0.5",
                "nanoseconds above 0",
            ),
            (
                "qos_overrides./a.publisher.colour:=red",
                "a policy: reliability",
            ),
            (
                "qos_overrides./a.listener.depth:=3",
                "/topic.publisher.policy",
            ),
            (
                "qos_overrides.a.publisher.depth:=3",
                "/topic.publisher.policy",
            ),
            ("qos_overrides.depth:=3", "/topic.publisher.policy"),
        ] {
            let text = topics(slip).expect_err(slip).to_string();
            let key = slip.split(":=").next().unwrap();
            assert!(text.contains(part) && text.contains(key), "{slip}: {text}");
        }
    }

    #[test]
    fn offers_are_compared_with_requests_as_dds_does() {
        let base = QoSProfile::topics_default().reliable().volatile();
        let soon = |ms| QoSDuration::Custom(Duration::from_millis(ms));
        assert_eq!(mismatch(&base, &base), None);
        assert_eq!(mismatch(&base.best_effort(), &base), Some("reliability"));
        assert_eq!(mismatch(&base, &base.best_effort()), None);
        assert_eq!(mismatch(&base, &base.transient_local()), Some("durability"));
        let due = QoSProfile {
            deadline: soon(10),
            ..base
        };
        let late = QoSProfile {
            deadline: soon(20),
            ..base
        };
        assert_eq!(mismatch(&late, &due), Some("deadline"));
        assert_eq!(mismatch(&due, &late), None);
        let never = QoSProfile {
            deadline: QoSDuration::Infinite,
            ..base
        };
        assert_eq!(mismatch(&never, &due), Some("deadline"));
        let lease = QoSProfile {
            liveliness_lease: soon(10),
            ..base
        };
        let loose = QoSProfile {
            liveliness_lease: QoSDuration::Infinite,
            ..base
        };
        assert_eq!(mismatch(&loose, &lease), Some("liveliness_lease_duration"));
        let manual = QoSProfile {
            liveliness: QoSLivelinessPolicy::ManualByTopic,
            ..base
        };
        let automatic = QoSProfile {
            liveliness: QoSLivelinessPolicy::Automatic,
            ..base
        };
        assert_eq!(mismatch(&automatic, &manual), Some("liveliness"));
    }

    #[test]
    fn the_listener_profile_hears_publishers_of_either_kind() {
        let listener = qos::named("listener").unwrap();
        let base = QoSProfile::topics_default();
        for offer in [
            base,
            base.best_effort(),
            base.transient_local(),
            QoSProfile::sensor_data_default(),
        ] {
            assert_eq!(mismatch(&offer, &listener), None);
        }
    }
}
