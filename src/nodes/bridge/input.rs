//! What ROS asks for, on its way to the thread that drives the links.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use bridge_core::command::{Request, Setpoint, Trajectory};
use bridge_core::fleet::ParamSetting;
use link::{Link, Waker};
use tokio::sync::oneshot;

use super::robot::Robot;
use super::topics::CustomPublisher;

/// Inputs that may wait for the driver; more are refused and counted.
const QUEUE: usize = 4096;

/// What became of a request, in words where it failed.
pub(super) type Outcome = Result<(), String>;
/// Who waits for it.
pub(super) type Reply = oneshot::Sender<Outcome>;
/// Outcomes that are still to come, by robot.
pub(super) type Outcomes = Vec<(String, oneshot::Receiver<Outcome>)>;

/// One thing to do with one robot.
pub(super) enum Input {
    /// Newest wins. With the wall clock at which it was made, ns since 1970; 0 if the message does not tell.
    Setpoint(Setpoint, i64),
    /// Carried out once.
    Request(Request, Option<Reply>),
    /// To the drone's memory.
    Upload(Trajectory, Reply),
    /// A topic more; a publisher where it is one of the user's own.
    AddTopic {
        topic: String,
        log: (Duration, Vec<String>),
        publisher: Option<CustomPublisher>,
        reply: Reply,
    },
    /// A topic less.
    RemoveTopic(String, Reply),
    /// A firmware parameter.
    Param(String, ParamSetting),
}

/// One thing to do.
pub(super) enum Command {
    /// With one robot.
    One(u64, Input),
    /// A setpoint for each robot.
    EachSetpoint(Setpoint, i64),
    /// A request for each robot; who gets the outcomes.
    EachRequest(Request, oneshot::Sender<Outcomes>),
    /// A parameter of each robot that has it.
    EachParam(String, ParamSetting),
    /// Where robots are, by name, measured from outside.
    Poses(Vec<(String, Setpoint)>),
    /// A robot more.
    Add(Box<Robot>, Box<dyn Link>),
    /// A robot less; its outcome comes when its link is closed.
    Remove(u64, Reply),
}

/// The way to the driver.
#[derive(Clone)]
pub(super) struct Inbox {
    sender: SyncSender<Command>,
    waker: Waker,
    refused: Arc<AtomicU64>,
}

/// The driver's end.
pub(super) struct Inputs {
    receiver: Receiver<Command>,
    refused: Arc<AtomicU64>,
}

/// Both ends.
pub(super) fn channel(waker: Waker) -> (Inbox, Inputs) {
    let (sender, receiver) = sync_channel(QUEUE);
    let refused = Arc::new(AtomicU64::new(0));
    let inbox = Inbox {
        sender,
        waker,
        refused: Arc::clone(&refused),
    };
    (inbox, Inputs { receiver, refused })
}

impl Inbox {
    /// Hands in and wakes the driver. A full queue refuses and counts; the caller of a request is told.
    pub(super) fn push(&self, command: Command) {
        match self.sender.try_send(command) {
            Ok(()) => self.waker.wake(),
            // Dropping a request drops its sender, which its caller sees as a failure.
            Err(_) => drop(self.refused.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// Hands something in and waits for what becomes of it.
    pub(super) async fn ask(&self, make: impl FnOnce(Reply) -> Command) -> Outcome {
        let (sender, answer) = oneshot::channel();
        self.push(make(sender));
        answer.await.unwrap_or_else(|_| Err(TOO_BUSY.into()))
    }

    /// Hands in a request for every robot and waits for all outcomes; those that failed.
    pub(super) async fn ask_all(&self, request: Request) -> Vec<(String, String)> {
        let (sender, answer) = oneshot::channel();
        self.push(Command::EachRequest(request, sender));
        let Ok(outcomes) = answer.await else {
            return vec![("all".into(), TOO_BUSY.into())];
        };
        let mut failed = Vec::new();
        for (robot, outcome) in outcomes {
            let outcome = outcome.await.unwrap_or_else(|_| Err(TOO_BUSY.into()));
            failed.extend(outcome.err().map(|why| (robot, why)));
        }
        failed
    }
}

const TOO_BUSY: &str = "the bridge is too busy or ends";

/// The way to one robot.
#[derive(Clone)]
pub(super) struct RobotInbox {
    pub(super) robot: u64,
    pub(super) inbox: Inbox,
}

impl RobotInbox {
    /// See [`Inbox::push`].
    pub(super) fn push(&self, input: Input) {
        self.inbox.push(Command::One(self.robot, input));
    }

    /// See [`Inbox::ask`].
    pub(super) async fn ask(&self, make: impl FnOnce(Reply) -> Input) -> Outcome {
        let robot = self.robot;
        self.inbox
            .ask(|reply| Command::One(robot, make(reply)))
            .await
    }
}

impl Inputs {
    /// The next input, if there is one.
    pub(super) fn next(&self) -> Option<Command> {
        self.receiver.try_recv().ok()
    }

    /// How many inputs a full queue refused since the last call.
    pub(super) fn take_refused(&self) -> u64 {
        self.refused.swap(0, Ordering::Relaxed)
    }
}
