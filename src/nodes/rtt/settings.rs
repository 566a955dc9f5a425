//! What the prober's parameters say.

use std::path::PathBuf;
use std::time::Duration;

use latency::{Identity, Measurement, Mode, Payload, Plan, Row, Watched};
use rclrs::QoSProfile;

use crate::nodes::probe_message::{IMU_BYTES, KINDS};
use crate::rcl_raw;
use crate::ros::args::{ArgsError, NodeArgs};
use crate::ros::{domain, qos};

/// Sizes measured unless told otherwise, bytes.
const SIZES: [i64; 3] = [64, 1024, 33_000];
/// Longest wait, s.
const MAX_WAIT_S: f64 = 600.0;

/// Everything the prober needs to know.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Domain of the prober.
    pub domain: usize,
    /// Domain of the relay; another one if a bridge lies between.
    pub relay_domain: usize,
    /// Domain where echoes come in; another one makes the process a member of both.
    pub echo_domain: usize,
    /// Where probes go out.
    pub probe_topic: String,
    /// Where echoes come in.
    pub echo_topic: String,
    /// QoS of both topics.
    pub qos: QoSProfile,
    /// Name of the QoS profile that the fields were applied to.
    pub qos_name: String,
    /// Kind of the payload, one of [`KINDS`].
    pub payload: String,
    /// Fill and check every payload.
    pub verify: bool,
    /// The relay runs on this machine, so that its clocks are ours.
    pub shared_clock: bool,
    /// Other processes whose use of the machine stands beside each row.
    pub watched: Vec<Watched>,
    /// Payload sizes, bytes.
    pub sizes: Vec<usize>,
    /// Middleware of the relay, if it is another one.
    pub relay_rmw: String,
    /// For how long to look for the relay.
    pub wait: Duration,
    /// Results file.
    pub output: PathBuf,
    /// When probes leave; the size is filled in for each row.
    base: Plan,
}

impl Settings {
    /// Reads and checks the parameters.
    ///
    /// # Errors
    /// The first parameter that is not allowed.
    pub fn read(args: &NodeArgs) -> Result<Self, ArgsError> {
        let domain = domain::of(args, "domain_id")?;
        let relay_domain = args.int("relay_domain_id", domain as i64, 0..=domain::MAX)? as usize;
        let payload = args.word("payload", KINDS[0], &KINDS)?;
        let sizes = sizes(args, &payload)?;
        let wait = seconds(args, "wait_s", 20.0, 0.1)?;
        let settings = Self {
            domain,
            relay_domain,
            echo_domain: crate::nodes::echo_domain(args, domain)?,
            payload,
            verify: args.bool("verify", false)?,
            shared_clock: args.bool("shared_clock", false)?,
            watched: watched(args)?,
            probe_topic: args.text("probe_topic", "rtt/probe")?,
            echo_topic: args.text("echo_topic", "rtt/echo")?,
            qos: qos::profile(args, "rtt", "default")?,
            qos_name: args.word("qos.rtt.profile", "default", &qos::PROFILES)?,
            sizes,
            relay_rmw: args.text("relay_rmw", "")?,
            wait,
            output: args.text("output", "results.json")?.into(),
            base: base_plan(args, wait)?,
        };
        args.refuse_unknown()?;
        crate::nodes::refuse_equal_topics(&settings.probe_topic, &settings.echo_topic)?;
        Ok(settings)
    }

    /// The plan for one size, under a run id of its own.
    #[must_use]
    pub fn plan(&self, bytes: usize) -> Plan {
        Plan {
            run_id: run_id(),
            bytes,
            ..self.base
        }
    }

    /// `same-domain`, `cross-domain`, or `two-contexts` when both processes are members of two domains.
    #[must_use]
    pub const fn path(&self) -> &'static str {
        if self.echo_domain != self.domain {
            "two-contexts"
        } else if self.domain == self.relay_domain {
            "same-domain"
        } else {
            "cross-domain"
        }
    }
}

impl Settings {
    const fn far_domain(&self) -> usize {
        if self.echo_domain == self.domain {
            self.relay_domain
        } else {
            self.echo_domain
        }
    }

    fn kind(&self) -> Payload {
        match self.payload.as_str() {
            "image" => Payload::Image,
            "string" => Payload::String,
            "imu" => Payload::Imu,
            _ => Payload::Binary,
        }
    }

    /// What was measured, as a row of a results file.
    #[must_use]
    pub fn row(&self, measurement: &Measurement) -> Row {
        let own = rcl_raw::rmw_name();
        let relay = if self.relay_rmw.is_empty() {
            own.clone()
        } else {
            self.relay_rmw.clone()
        };
        let settings = [
            ("probe_topic", self.probe_topic.clone()),
            ("echo_topic", self.echo_topic.clone()),
            ("qos_profile", self.qos_name.clone()),
            (
                "transports",
                std::env::var("FASTDDS_BUILTIN_TRANSPORTS").unwrap_or_else(|_| "default".into()),
            ),
            ("verify", self.verify.to_string()),
            ("executor", "one worker thread for each subscription".into()),
            (
                "ros_distro",
                std::env::var("ROS_DISTRO").unwrap_or_default(),
            ),
        ];
        let identity = Identity {
            link: "dds".into(),
            path: self.path().into(),
            domains: Some([self.domain as u16, self.far_domain() as u16]),
            rmw: Some([own, relay]),
            qos: Some(qos::describe(&self.qos)),
            payload: self.kind(),
            settings: settings
                .map(|(key, value)| (key.to_owned(), value.into()))
                .into(),
        };
        Row::new(identity, measurement)
    }
}

fn base_plan(args: &NodeArgs, wait: Duration) -> Result<Plan, ArgsError> {
    let hz = args.float("rate_hz", 0.0, 0.0..=100_000.0)?;
    let gap = Duration::from_secs_f64(args.float("gap_ms", 0.0, 0.0..=10_000.0)? / 1e3);
    Ok(Plan {
        mode: if hz > 0.0 {
            Mode::Rate { hz }
        } else {
            Mode::PingPong { gap }
        },
        count: args.int("count", 500, 1..=4_000_000)? as u64,
        warmup: args.int("warmup", 50, 0..=1_000_000)? as u64,
        timeout: seconds(args, "timeout_s", 1.0, 0.001)?,
        wait,
        ..Plan::default()
    })
}

/// An IMU record has one size.
fn sizes(args: &NodeArgs, payload: &str) -> Result<Vec<usize>, ArgsError> {
    let imu = [IMU_BYTES as i64];
    let sizes = if payload == "imu" {
        args.ints("sizes", &imu, imu[0]..=imu[0])?
    } else {
        args.ints("sizes", &SIZES, 0..=latency::probe::MAX_BYTES as i64)?
    };
    Ok(sizes.iter().map(|size| *size as usize).collect())
}

/// `relay=123,bridge=456`.
fn watched(args: &NodeArgs) -> Result<Vec<Watched>, ArgsError> {
    let text = args.text("watch", "")?;
    let entries = text.split(',').filter(|entry| !entry.is_empty());
    let read = |entry: &str| {
        let (name, pid) = entry.split_once('=')?;
        Some(Watched {
            name: name.to_owned(),
            pid: pid.parse().ok()?,
        })
    };
    entries
        .map(|entry| {
            read(entry).ok_or_else(|| {
                ArgsError::value(
                    "watch",
                    format!("{entry:?}"),
                    "NAME=PROCESS_ID, comma-separated",
                )
            })
        })
        .collect()
}

fn seconds(args: &NodeArgs, key: &str, default: f64, least: f64) -> Result<Duration, ArgsError> {
    args.float(key, default, least..=MAX_WAIT_S)
        .map(Duration::from_secs_f64)
}

/// Different for every run of every prober on one network: the random hash keys of the process.
fn run_id() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _, RandomState};
    RandomState::new().build_hasher().finish()
}
