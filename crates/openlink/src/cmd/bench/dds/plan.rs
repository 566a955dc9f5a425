//! A plan: the matrix of an experiment as a file says it, checked before anything starts.
//!
//! It starts nothing and knows no programs; see `cell` for what a matrix unfolds to.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::transport::Transport;

/// Highest domain id: above it, a UDP port of the domain would exceed 65535.
const MAX_DOMAIN: u16 = 232;
/// Longest datagram that Fast DDS sends unless told otherwise; its sockets must hold one, bytes.
const LONGEST_DATAGRAM: u32 = 65_500;
/// Most cells of a matrix, restarts included.
const MAX_CELLS: usize = 20_000;

/// Plans that come with the program.
const READY_MADE: [(&str, &str); 6] = [
    (
        "quick",
        include_str!("../../../../../../config/plans/quick.yaml"),
    ),
    (
        "paper",
        include_str!("../../../../../../config/plans/paper.yaml"),
    ),
    (
        "qos",
        include_str!("../../../../../../config/plans/qos.yaml"),
    ),
    (
        "vendors",
        include_str!("../../../../../../config/plans/vendors.yaml"),
    ),
    (
        "knee",
        include_str!("../../../../../../config/plans/knee.yaml"),
    ),
    (
        "domains",
        include_str!("../../../../../../config/plans/domains.yaml"),
    ),
];

/// Why a plan cannot be followed.
#[derive(Debug, thiserror::Error)]
pub(super) enum PlanError {
    /// Neither a ready-made plan nor a file.
    #[error("{0}: no such file, and no ready-made plan; there are: {names}", names = names())]
    Unknown(String),
    /// It cannot be read.
    #[error("{path}: {source}")]
    Io {
        path: PathBuf,
        source: std::io::Error,
    },
    /// It is no plan.
    #[error("{path}: {why}")]
    Format { path: String, why: String },
    /// A value that is not allowed.
    #[error("{path}: {key} is {value}, allowed: {allowed}")]
    Value {
        path: String,
        key: &'static str,
        value: String,
        allowed: String,
    },
}

fn names() -> String {
    READY_MADE.map(|(name, _)| name).join(", ")
}

/// How a probe gets to the relay and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Route {
    /// Prober and relay in one domain.
    SameDomain,
    /// The relay in another domain, our `domain_bridge` between them.
    CrossDomain,
    /// The same with a bridge that the plan names or the user runs.
    ExternalBridge,
    /// Both processes are members of both domains: probes in the first, echoes in the second, no bridge.
    TwoContexts,
}

impl Route {
    /// As in a results file.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::SameDomain => "same-domain",
            Self::CrossDomain => "cross-domain",
            Self::ExternalBridge => "external-bridge",
            Self::TwoContexts => "two-contexts",
        }
    }
}

/// Kind of the payload, as the nodes' parameter `payload` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// Raw bytes.
    Binary,
    /// A camera image and a time.
    Image,
    /// Text.
    String,
    /// An IMU record, whose size is fixed.
    Imu,
}

impl Kind {
    /// As the nodes' parameter has it, and the message that carries it.
    pub(super) const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Binary => ("binary", "crazyflie_openlink/msg/RttProbe"),
            Self::Image => ("image", "crazyflie_openlink/msg/RttImage"),
            Self::String => ("string", "crazyflie_openlink/msg/RttText"),
            Self::Imu => ("imu", "crazyflie_openlink/msg/RttImu"),
        }
    }
}

/// A profile and the policies that differ from it; see the nodes' parameters `qos.rtt.*`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Qos {
    pub(super) profile: Option<String>,
    pub(super) reliability: Option<String>,
    pub(super) durability: Option<String>,
    pub(super) history: Option<String>,
    pub(super) depth: Option<u32>,
    /// Seconds.
    pub(super) deadline: Option<f64>,
    /// Seconds.
    pub(super) lifespan: Option<f64>,
}

impl Qos {
    /// Parameters and their values, in order.
    pub(super) fn parameters(&self) -> Vec<(String, String)> {
        let texts = [
            ("profile", self.profile.clone()),
            ("reliability", self.reliability.clone()),
            ("durability", self.durability.clone()),
            ("history", self.history.clone()),
            ("depth", self.depth.map(|depth| depth.to_string())),
            ("deadline", self.deadline.map(|s| format!("{s:?}"))),
            ("lifespan", self.lifespan.map(|s| format!("{s:?}"))),
        ];
        let set = texts
            .into_iter()
            .filter_map(|(key, value)| Some((key, value?)));
        set.map(|(key, value)| (format!("qos.rtt.{key}"), value))
            .collect()
    }

    /// A short name.
    pub(super) fn label(&self) -> String {
        let values: Vec<String> = self
            .parameters()
            .into_iter()
            .map(|(_, value)| value)
            .collect();
        if values.is_empty() {
            "default".to_owned()
        } else {
            values.join("-")
        }
    }
}

/// DDS Security on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Security {
    Off,
    On,
}

/// The matrix. Every list is one axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    /// Names the output folder.
    pub(super) name: String,
    /// Of the random order.
    #[serde(default = "one_u64")]
    pub(super) seed: u64,
    /// How often each cell is measured, each time by new processes.
    #[serde(default = "one_usize")]
    pub(super) restarts: usize,
    /// Probes of a cell that count.
    pub(super) count: u64,
    /// Probes before those.
    #[serde(default = "default_warmup")]
    pub(super) warmup: u64,
    /// An answer after this long is late, seconds.
    #[serde(default = "one_f64")]
    pub(super) timeout_s: f64,
    /// Pause between an answer and the next probe when no rate is set, ms.
    #[serde(default)]
    pub(super) gap_ms: f64,
    /// A cell that takes longer is cut short, seconds.
    #[serde(default = "default_limit")]
    pub(super) cell_limit_s: f64,
    /// Of prober and relay.
    #[serde(default = "default_domains")]
    pub(super) domains: [u16; 2],
    /// Of probes and echoes.
    #[serde(default = "default_topics")]
    pub(super) topics: [String; 2],
    pub(super) paths: Vec<Route>,
    #[serde(default = "default_payloads")]
    pub(super) payloads: Vec<Kind>,
    /// Bytes; ignored for IMU records.
    pub(super) sizes: Vec<usize>,
    /// Probes a second; 0: the next one when the last is answered.
    #[serde(default = "default_rates")]
    pub(super) rates_hz: Vec<f64>,
    #[serde(default = "default_qos")]
    pub(super) qos: Vec<Qos>,
    #[serde(default = "default_transports")]
    pub(super) transports: Vec<Transport>,
    /// Middleware of prober and relay; a bridge takes the prober's. `default`: whatever the environment has.
    #[serde(default = "default_rmw")]
    pub(super) rmw: Vec<[String; 2]>,
    #[serde(default = "default_security")]
    pub(super) security: Vec<Security>,
    /// Folder of the keys, for cells with security.
    #[serde(default)]
    pub(super) keystore: Option<PathBuf>,
    /// Fill and check every payload.
    #[serde(default)]
    pub(super) verify: bool,
    /// Command line of an external bridge; `{rules}`, `{from}` and `{to}` are replaced. Empty: the user runs it.
    #[serde(default)]
    pub(super) external_bridge: Vec<String>,
    /// Transports that `--prove` measures the affected sizes with.
    #[serde(default)]
    pub(super) cures: Vec<Transport>,
}

const fn one_u64() -> u64 {
    1
}
const fn one_usize() -> usize {
    1
}
const fn one_f64() -> f64 {
    1.0
}
const fn default_warmup() -> u64 {
    20
}
const fn default_limit() -> f64 {
    60.0
}
const fn default_domains() -> [u16; 2] {
    [5, 10]
}
fn default_topics() -> [String; 2] {
    ["rtt/probe".to_owned(), "rtt/echo".to_owned()]
}
fn default_payloads() -> Vec<Kind> {
    vec![Kind::Binary]
}
fn default_rates() -> Vec<f64> {
    vec![0.0]
}
fn default_qos() -> Vec<Qos> {
    vec![Qos::default()]
}
fn default_transports() -> Vec<Transport> {
    vec![Transport::default()]
}
fn default_rmw() -> Vec<[String; 2]> {
    vec![["default".to_owned(), "default".to_owned()]]
}
fn default_security() -> Vec<Security> {
    vec![Security::Off]
}

impl Plan {
    /// A ready-made plan by name, else a file.
    pub(super) fn open(name: &str) -> Result<Self, PlanError> {
        if let Some((_, text)) = READY_MADE.iter().find(|(known, _)| *known == name) {
            return Self::parse(name, text);
        }
        let path = Path::new(name);
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(name, &text),
            Err(source) if source.kind() == std::io::ErrorKind::NotFound => {
                Err(PlanError::Unknown(name.to_owned()))
            }
            Err(source) => Err(PlanError::Io {
                path: path.to_owned(),
                source,
            }),
        }
    }

    /// Reads `text`; `path` is for the errors alone.
    pub(super) fn parse(path: &str, text: &str) -> Result<Self, PlanError> {
        let plan: Self = serde_saphyr::from_str(text).map_err(|error| PlanError::Format {
            path: path.to_owned(),
            why: error.to_string(),
        })?;
        plan.check(path)?;
        Ok(plan)
    }

    /// Checks every value.
    pub(super) fn check(&self, path: &str) -> Result<(), PlanError> {
        let refuse = |key, value: String, allowed: &str| {
            Err(PlanError::Value {
                path: path.to_owned(),
                key,
                value,
                allowed: allowed.to_owned(),
            })
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if self.name.is_empty() || !self.name.chars().all(plain) {
            return refuse(
                "name",
                format!("{:?}", self.name),
                "letters, digits, -, _ and .",
            );
        }
        if let Some(domain) = self.domains.iter().find(|id| **id > MAX_DOMAIN) {
            return refuse("domains", domain.to_string(), "0 to 232");
        }
        let crosses = self.paths.iter().any(|route| *route != Route::SameDomain);
        if crosses && self.domains[0] == self.domains[1] {
            return refuse(
                "domains",
                format!("{:?}", self.domains),
                "two different ones for these paths",
            );
        }
        self.check_numbers(refuse)?;
        for (key, length) in self.axes() {
            if length == 0 {
                return refuse(key, "empty".to_owned(), "at least one");
            }
        }
        let cells: usize = self.axes().iter().map(|(_, length)| length).product();
        if cells * self.restarts > MAX_CELLS {
            return refuse(
                "restarts",
                format!("{cells} cells, {} times", self.restarts),
                "20000 measurements",
            );
        }
        Ok(())
    }

    fn check_numbers(
        &self,
        refuse: impl Fn(&'static str, String, &str) -> Result<(), PlanError>,
    ) -> Result<(), PlanError> {
        let most = latency::probe::MAX_BYTES;
        if let Some(bytes) = self.sizes.iter().find(|bytes| **bytes > most) {
            return refuse("sizes", bytes.to_string(), &format!("0 to {most} bytes"));
        }
        let all = self.transports.iter().chain(&self.cures);
        let mut small = all.filter_map(|one| {
            Some((
                one.socket_buffer?,
                one.max_message.unwrap_or(LONGEST_DATAGRAM),
            ))
        });
        if let Some((buffer, message)) = small.find(|(buffer, message)| buffer < message) {
            let allowed = format!("at least the longest datagram, {message} bytes");
            return refuse("socket_buffer", buffer.to_string(), &allowed);
        }
        let rate = |hz: &&f64| **hz != 0.0 && !(0.001..=100_000.0).contains(*hz);
        if let Some(hz) = self.rates_hz.iter().find(rate) {
            return refuse("rates_hz", hz.to_string(), "0, or 0.001 to 100000");
        }
        if self.restarts == 0 {
            return refuse("restarts", "0".to_owned(), "at least 1");
        }
        if self.count == 0 || self.count.saturating_add(self.warmup) > latency::probe::MAX_PROBES {
            return refuse(
                "count",
                self.count.to_string(),
                "at least 1, with warmup at most 5000000",
            );
        }
        for (key, value, range) in [
            ("timeout_s", self.timeout_s, 0.001..=600.0),
            ("gap_ms", self.gap_ms, 0.0..=10_000.0),
            ("cell_limit_s", self.cell_limit_s, 1.0..=3600.0),
        ] {
            if !range.contains(&value) {
                return refuse(
                    key,
                    value.to_string(),
                    &format!("{} to {}", range.start(), range.end()),
                );
            }
        }
        Ok(())
    }

    fn axes(&self) -> [(&'static str, usize); 8] {
        [
            ("paths", self.paths.len()),
            ("payloads", self.payloads.len()),
            ("sizes", self.sizes.len()),
            ("rates_hz", self.rates_hz.len()),
            ("qos", self.qos.len()),
            ("transports", self.transports.len()),
            ("rmw", self.rmw.len()),
            ("security", self.security.len()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = "name: x\ncount: 10\npaths: [same-domain]\nsizes: [64]\n";

    #[test]
    fn every_ready_made_plan_is_legal_and_named_as_it_is_called() {
        for (name, _) in READY_MADE {
            assert_eq!(Plan::open(name).unwrap().name, name);
        }
    }

    #[test]
    fn the_paper_plan_has_the_papers_domains_topics_and_sizes() {
        let plan = Plan::open("paper").unwrap();
        assert_eq!(plan.domains, [5, 10]);
        assert_eq!(plan.topics, ["binary_image", "binary_image_relay"]);
        for bytes in [33_000, 87_000, 145_000, 502_000, 1_000_000, 4_000_000] {
            assert!(plan.sizes.contains(&bytes));
        }
        assert!(plan.restarts >= 5);
    }

    #[test]
    fn slips_name_file_key_and_what_is_allowed() {
        for (slip, parts) in [
            ("sices: [1]", ["x.yaml", "sices"]),
            ("domains: [5, 233]", ["233", "0 to 232"]),
            (
                "domains: [5, 5]\npaths: [cross-domain]",
                ["domains", "different"],
            ),
            ("paths: [sideways]", ["sideways", "same-domain"]),
            ("payloads: [video]", ["video", "binary"]),
            ("sizes: [5000000]", ["5000000", "4194304"]),
            ("sizes: []", ["sizes", "at least one"]),
            ("rates_hz: [-1]", ["rates_hz", "0.001"]),
            ("restarts: 0", ["restarts", "at least 1"]),
            ("count: 0", ["count", "at least 1"]),
            ("timeout_s: 0", ["timeout_s", "600"]),
            (
                "qos: [{relaibility: reliable}]",
                ["relaibility", "reliability"],
            ),
            ("transports: [{kind: pigeon}]", ["pigeon", "udp"]),
            ("name: ../x", ["name", "letters"]),
        ] {
            let key = slip.split(':').next().unwrap();
            let kept: Vec<&str> = LEAST
                .lines()
                .filter(|line| {
                    !slip
                        .lines()
                        .any(|s| line.split(':').next() == s.split(':').next())
                })
                .collect();
            let text = format!("{}\n{slip}\n", kept.join("\n"));
            let error = Plan::parse("x.yaml", &text).unwrap_err().to_string();
            for part in parts {
                assert!(error.contains(part), "{key}: {error}");
            }
        }
    }

    #[test]
    fn a_plan_nobody_has_names_the_ready_made_ones() {
        let error = Plan::open("no/such/plan").unwrap_err().to_string();
        assert!(
            error.contains("no/such/plan") && error.contains("quick, paper, qos, vendors, knee")
        );
    }

    #[test]
    fn qos_becomes_parameters_of_the_nodes() {
        let qos = Qos {
            profile: Some("sensor_data".into()),
            depth: Some(1),
            deadline: Some(2.0),
            ..Qos::default()
        };
        let set: Vec<String> = qos
            .parameters()
            .into_iter()
            .map(|(key, value)| format!("{key}:={value}"))
            .collect();
        assert_eq!(
            set,
            [
                "qos.rtt.profile:=sensor_data",
                "qos.rtt.depth:=1",
                "qos.rtt.deadline:=2.0"
            ]
        );
        assert_eq!(qos.label(), "sensor_data-1-2.0");
    }
}
