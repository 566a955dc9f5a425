//! What a robot has to say.

use std::time::Duration;

use crtp::{Kind, Packet, ProtocolVersion, Value};

use crate::drone_side::Reason;
use crate::fleet::ParamSetting;
use crate::health::{Change, Manoeuvre};
use crate::telemetry::{BatteryState, Imu, Odometry, Pose, Scan, Status};

/// Names one request, for its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub(super) u64);

/// Something a robot has to say.
#[derive(Clone, Debug, PartialEq)]
pub enum DroneEvent {
    /// `pose`.
    Pose(Pose),
    /// `odom`.
    Odometry(Odometry),
    /// `imu`.
    Imu(Imu),
    /// `battery`.
    Battery(BatteryState),
    /// `status`.
    Status(Status),
    /// `scan`.
    Scan(Scan),
    /// A topic of the user's own.
    Custom {
        /// Its name.
        topic: String,
        /// The drone's clock, ms; does not wrap.
        drone_ms: u64,
        /// In the order of the topic's variables, in the firmware's units.
        values: Vec<f64>,
    },
    /// The drone's parameters, with every connection.
    Params(Vec<ParamInfo>),
    /// A parameter has this value: read, written or changed by the drone.
    Param {
        /// `group.name`.
        name: String,
        /// The value.
        value: Value,
    },
    /// A parameter could not be written.
    ParamRefused {
        /// `group.name`.
        name: String,
        /// The value that it still has, where it is known.
        value: Option<Value>,
        /// Why.
        why: String,
    },
    /// A line of the drone's console.
    Console(String),
    /// A packet from the drone, as it is.
    Raw(Packet),
    /// Commands are taken, topics are being started.
    Connected(ProtocolVersion),
    /// The connection ended or an attempt failed; the text says why. It is tried again.
    Disconnected(String),
    /// A topic cannot be published on this drone; all others go on.
    TopicDisabled {
        /// The topic.
        topic: String,
        /// Why.
        why: String,
    },
    /// What became of a request: done, or why not, in words.
    Reply {
        /// The request.
        ticket: Ticket,
        /// Done, or why not.
        outcome: Result<(), String>,
    },
    /// A safety rule acted.
    Safety(Reason),
    /// The link stands on another rung of the ladder.
    LinkHealth(Change),
    /// The link does badly, so the bridge flies this by itself.
    Manoeuvre(Manoeuvre),
    /// The link does well enough again: commands are taken.
    ManoeuvreEnds(Manoeuvre),
    /// The link has something to say.
    Link(link::Event),
    /// Worth one line in a log.
    Notice(String),
}

impl DroneEvent {
    /// The heading in it, rad, where there is one.
    pub(super) fn heading(&self) -> Option<f64> {
        match self {
            Self::Pose(pose) => Some(pose.heading()),
            Self::Odometry(odometry) => Some(odometry.pose.heading()),
            _ => None,
        }
    }
}

/// One firmware parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamInfo {
    /// `group.name`.
    pub name: String,
    /// Its type.
    pub kind: Kind,
    /// It cannot be written.
    pub read_only: bool,
}

impl ParamInfo {
    /// Whether the parameter takes this number.
    ///
    /// # Errors
    /// In words: the parameter, the number and what is allowed.
    pub fn check(&self, number: ParamSetting) -> Result<(), String> {
        let (name, kind) = (&self.name, self.kind);
        if self.read_only {
            return Err(format!("parameter {name} is read-only"));
        }
        let fits = match number {
            ParamSetting::Flag(flag) => Value::from_integer(kind, flag.into()),
            ParamSetting::Whole(whole) => Value::from_integer(kind, whole),
            ParamSetting::Float(float) => Value::from_float(kind, float),
        };
        if fits.is_some() {
            return Ok(());
        }
        let allowed = match kind.range() {
            Some((min, max)) => format!("a whole number from {min} to {max}"),
            None => format!("a finite {}", kind.name()),
        };
        Err(format!("parameter {name} is {number}, allowed: {allowed}"))
    }
}

/// How well the link to a robot does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Health {
    /// Commands are taken.
    pub connected: bool,
    /// The last round trip of an echo through the drone.
    pub round_trip: Option<Duration>,
    /// Telemetry samples so far.
    pub samples: u64,
    /// Events that nobody took in time.
    pub events_dropped: u64,
    /// The client's counters.
    pub client: crtp_client::Stats,
}
