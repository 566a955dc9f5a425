//! What ROS asks for, on its way to the thread that drives the links.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use bridge_core::command::{Request, Setpoint};
use link::Waker;
use tokio::sync::oneshot;

/// Inputs that may wait for the driver; more are refused and counted.
const QUEUE: usize = 4096;

/// What became of a request, in words where it failed.
pub(super) type Outcome = Result<(), String>;

/// One thing to do with one robot.
#[derive(Debug)]
pub(super) enum Input {
    /// Newest wins.
    Setpoint(Setpoint),
    /// Carried out once.
    Request(Request, Option<oneshot::Sender<Outcome>>),
}

/// The way to the driver, for one robot.
#[derive(Clone, Debug)]
pub(super) struct Inbox {
    robot: usize,
    sender: SyncSender<(usize, Input)>,
    waker: Waker,
    refused: Arc<AtomicU64>,
}

/// The driver's end.
#[derive(Debug)]
pub(super) struct Inputs {
    receiver: Receiver<(usize, Input)>,
    refused: Arc<AtomicU64>,
}

/// Both ends; the inbox is for robot 0.
pub(super) fn channel(waker: Waker) -> (Inbox, Inputs) {
    let (sender, receiver) = sync_channel(QUEUE);
    let refused = Arc::new(AtomicU64::new(0));
    (
        Inbox {
            robot: 0,
            sender,
            waker,
            refused: Arc::clone(&refused),
        },
        Inputs { receiver, refused },
    )
}

impl Inbox {
    /// The same for another robot.
    pub(super) fn of_robot(&self, robot: usize) -> Self {
        Self {
            robot,
            ..self.clone()
        }
    }

    /// Hands in and wakes the driver. A full queue refuses and counts; the caller of a request is told.
    pub(super) fn push(&self, input: Input) {
        match self.sender.try_send((self.robot, input)) {
            Ok(()) => self.waker.wake(),
            // Dropping a request drops its sender, which its caller sees as a failure.
            Err(_) => drop(self.refused.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// Hands in a request and waits for what becomes of it.
    pub(super) async fn ask(&self, request: Request) -> Outcome {
        let (sender, answer) = oneshot::channel();
        self.push(Input::Request(request, Some(sender)));
        answer
            .await
            .unwrap_or_else(|_| Err("the bridge is too busy or ends".into()))
    }
}

impl Inputs {
    /// The next input, if there is one.
    pub(super) fn next(&self) -> Option<(usize, Input)> {
        self.receiver.try_recv().ok()
    }

    /// How many inputs a full queue refused since the last call.
    pub(super) fn take_refused(&self) -> u64 {
        self.refused.swap(0, Ordering::Relaxed)
    }
}
