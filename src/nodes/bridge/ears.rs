//! The threads that hear the topics of all robots. They call back, and know nothing of messages.

use std::fmt;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::sync::{Arc, OnceLock};

use rclrs::{Node, Worker, WorkerSubscription};

/// A subscription that is heard by one of [`Ears`].
pub(super) type Heard<T> = WorkerSubscription<T, ()>;

/// Threads that share the subscriptions. rclrs looks at everything a thread waits for whenever one message comes; a thread for the whole
/// fleet, services included, would spend more time on that than on messages. Each calls back itself.
#[derive(Clone, Default)]
pub(super) struct Ears(Arc<OnceLock<Vec<Worker<()>>>>);

impl Ears {
    /// Enough for few topics each with 50 robots.
    const COUNT: usize = 8;

    /// The one for `topic`; all topics of a robot have the same, so that they stay in order.
    pub(super) fn of(&self, node: &Node, topic: &str) -> &Worker<()> {
        let workers = self
            .0
            .get_or_init(|| (0..Self::COUNT).map(|_| node.create_worker(())).collect());
        let robot = topic
            .trim_start_matches('/')
            .split('/')
            .next()
            .unwrap_or_default();
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(robot);
        &workers[hash as usize % workers.len()]
    }
}

impl fmt::Debug for Ears {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ears({})", self.0.get().map_or(0, Vec::len))
    }
}
