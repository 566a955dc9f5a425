//! One cell: starts its processes, waits for the prober, and completes the row with what the runner knows.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use latency::{Results, Row};
use rustix::process::Signal;

use super::cell::Cell;
use super::journal::Outcome;
use super::plan::{Plan, Route, Security};
use super::programs::{self, Program};
use super::transport::TransportKind;

/// How long a node may take to come up.
const START: Duration = Duration::from_secs(30);
/// How often the prober is looked at.
const GLANCE: Duration = Duration::from_millis(20);

/// What all cells share.
pub(super) struct Bench<'a> {
    pub(super) plan: &'a Plan,
    /// The folder with the nodes.
    pub(super) nodes: PathBuf,
    /// Where everything is written.
    pub(super) out: &'a Path,
    /// Whether to finish now.
    pub(super) stopped: &'a dyn Fn() -> bool,
}

impl Bench<'_> {
    /// Measures a cell once. `None` when the user stopped it.
    pub(super) fn measure(&self, cell: &Cell, restart: usize) -> anyhow::Result<Option<Outcome>> {
        if let Some(reason) = self.missing(cell) {
            return Ok(Some(Outcome::NotAvailable(reason)));
        }
        let folder = self
            .out
            .join("cells")
            .join(format!("{}_{restart}", cell.id()));
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let environment = match self.environments(cell) {
            Ok(environment) => environment,
            Err(reason) => return Ok(Some(Outcome::NotAvailable(reason))),
        };
        Ok(match self.row(cell, &environment, &folder) {
            Ok(None) => None,
            Ok(Some(row)) => Some(self.judge(cell, restart, row)),
            Err(error) => Some(Outcome::Failed(format!("{error:#}"))),
        })
    }

    /// Why a cell cannot be measured on this machine.
    fn missing(&self, cell: &Cell) -> Option<String> {
        let absent = cell
            .rmw
            .iter()
            .find(|rmw| *rmw != "default" && !programs::has_library(rmw));
        if let Some(rmw) = absent {
            return Some(format!(
                "lib{rmw}.so is in no folder of this ROS environment"
            ));
        }
        if cell.security == Security::Off {
            return None;
        }
        if !has_security() {
            return Some("this build of Fast DDS has no security plug-ins".to_owned());
        }
        self.plan.keystore.is_none().then(|| {
            "the plan names no keystore; make one with `ros2 security create_keystore DIR` and \
             `ros2 security create_enclave DIR /openlink`"
                .to_owned()
        })
    }

    /// Variables of prober and relay.
    fn environments(&self, cell: &Cell) -> Result<[Vec<(String, String)>; 2], String> {
        let one = |rmw: &String| -> Result<_, String> {
            let mut environment = cell
                .transport
                .environment(rmw, &self.out.join("transports"))?;
            let mut set =
                |key: &str, value: &str| environment.push((key.to_owned(), value.to_owned()));
            if rmw != "default" {
                set("RMW_IMPLEMENTATION", rmw);
            }
            if cell.transport.kind == TransportKind::Environment {
                set("OPENLINK_KEEP_TRANSPORT", "1");
            }
            if let (Security::On, Some(keystore)) = (cell.security, &self.plan.keystore) {
                set("ROS_SECURITY_ENABLE", "true");
                set("ROS_SECURITY_STRATEGY", "Enforce");
                set("ROS_SECURITY_KEYSTORE", &keystore.to_string_lossy());
                set("ROS_SECURITY_ENCLAVE_OVERRIDE", "/openlink");
            }
            Ok(environment)
        };
        Ok([one(&cell.rmw[0])?, one(&cell.rmw[1])?])
    }

    fn row(
        &self,
        cell: &Cell,
        environment: &[Vec<(String, String)>; 2],
        folder: &Path,
    ) -> anyhow::Result<Option<Row>> {
        let counts = folder.join("relay.json");
        let mut relay = self.start(
            "relay",
            &self.relay_parameters(cell, &counts),
            &environment[1],
            folder,
        )?;
        relay.wait_for("relay is up", START)?;
        let mut bridge = self.bridge(cell, &environment[0], folder)?;
        let output = folder.join("row.json");
        let watched: Vec<String> = std::iter::once(("relay", &relay))
            .chain(bridge.as_ref().map(|bridge| ("bridge", bridge)))
            .map(|(name, program)| format!("{name}={}", program.pid()))
            .collect();
        let parameters = self.prober_parameters(cell, &output, &watched.join(","));
        let mut prober = self.start("rtt", &parameters, &environment[0], folder)?;
        let finished = self.wait(&mut prober)?;
        if let Some(bridge) = &mut bridge {
            bridge.stop()?;
        }
        relay.stop()?;
        if !finished {
            return Ok(None);
        }
        let mut rows = Results::read(&output)?.rows;
        let mut row = rows.pop().context("the prober wrote no row")?;
        add_counts(&mut row, &counts);
        Ok(Some(row))
    }

    fn start(
        &self,
        name: &str,
        parameters: &[(String, String)],
        environment: &[(String, String)],
        folder: &Path,
    ) -> anyhow::Result<Program> {
        let mut arguments = vec!["--ros-args".to_owned()];
        for (key, value) in parameters {
            arguments.extend(["-p".to_owned(), format!("{key}:={value}")]);
        }
        Program::start(
            &self.nodes.join(name),
            &arguments,
            environment,
            folder,
            name,
        )
    }

    /// Waits for the prober; false when the user stopped the run. A cell that takes too long is cut short.
    fn wait(&self, prober: &mut Program) -> anyhow::Result<bool> {
        let end = Instant::now() + Duration::from_secs_f64(self.plan.cell_limit_s);
        loop {
            if let Some(status) = prober.poll()? {
                if !status.success() {
                    bail!("rtt: {}", prober.last_words());
                }
                return Ok(true);
            }
            if (self.stopped)() {
                prober.signal(Signal::INT);
                prober.stop()?;
                return Ok(false);
            }
            if Instant::now() >= end {
                if !prober.stop()?.success() {
                    bail!(
                        "rtt, cut short after {} s: {}",
                        self.plan.cell_limit_s,
                        prober.last_words()
                    );
                }
                return Ok(true);
            }
            std::thread::sleep(GLANCE);
        }
    }

    fn domains(&self, cell: &Cell) -> [u16; 2] {
        let [near, far] = self.plan.domains;
        if cell.route == Route::SameDomain {
            [near, near]
        } else {
            [near, far]
        }
    }

    fn common(&self, cell: &Cell) -> Vec<(String, String)> {
        let set = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let [probe, echo] = &self.plan.topics;
        let mut parameters = vec![
            set("probe_topic", probe),
            set("echo_topic", echo),
            set("payload", cell.kind.names().0),
        ];
        parameters.extend(cell.qos.parameters());
        parameters
    }

    fn relay_parameters(&self, cell: &Cell, counts: &Path) -> Vec<(String, String)> {
        let [near, far] = self.domains(cell);
        let mut parameters = self.common(cell);
        let mut set = |key: &str, value: String| parameters.push((key.to_owned(), value));
        if cell.route == Route::TwoContexts {
            set("domain_id", near.to_string());
            set("echo_domain_id", far.to_string());
        } else {
            set("domain_id", far.to_string());
        }
        set("skip", self.plan.warmup.to_string());
        set("counts", counts.to_string_lossy().into_owned());
        parameters
    }

    fn prober_parameters(&self, cell: &Cell, output: &Path, watch: &str) -> Vec<(String, String)> {
        let plan = self.plan;
        let [near, far] = self.domains(cell);
        let mut parameters = self.common(cell);
        let mut set = |key: &str, value: String| parameters.push((key.to_owned(), value));
        set("domain_id", near.to_string());
        let far_key = if cell.route == Route::TwoContexts {
            "echo_domain_id"
        } else {
            "relay_domain_id"
        };
        set(far_key, far.to_string());
        if let Some(bytes) = cell.bytes {
            set("sizes", format!("[{bytes}]"));
        }
        set("rate_hz", format!("{:?}", cell.hz));
        set("gap_ms", format!("{:?}", plan.gap_ms));
        set("count", plan.count.to_string());
        set("warmup", plan.warmup.to_string());
        set("timeout_s", format!("{:?}", plan.timeout_s));
        set("verify", plan.verify.to_string());
        set("shared_clock", "true".to_owned());
        set("watch", watch.to_owned());
        set("output", output.to_string_lossy().into_owned());
        if cell.rmw[1] != "default" {
            set("relay_rmw", cell.rmw[1].clone());
        }
        parameters
    }

    /// The bridge of a path that has one.
    fn bridge(
        &self,
        cell: &Cell,
        environment: &[(String, String)],
        folder: &Path,
    ) -> anyhow::Result<Option<Program>> {
        let external = cell.route == Route::ExternalBridge;
        if !external && cell.route != Route::CrossDomain {
            return Ok(None);
        }
        let rules = folder.join("rules.yaml");
        std::fs::write(&rules, self.rules(cell)).with_context(|| rules.display().to_string())?;
        if !external {
            let parameters = [("config".to_owned(), rules.to_string_lossy().into_owned())];
            return self
                .start("domain_bridge", &parameters, environment, folder)
                .map(Some);
        }
        let Some((program, arguments)) = self.plan.external_bridge.split_first() else {
            return Ok(None);
        };
        let [from, to] = self.plan.domains.map(|id| id.to_string());
        let fill = |text: &String| {
            text.replace("{rules}", &rules.to_string_lossy())
                .replace("{from}", &from)
                .replace("{to}", &to)
        };
        let arguments: Vec<String> = arguments.iter().map(fill).collect();
        Program::start(
            Path::new(program),
            &arguments,
            environment,
            folder,
            "bridge",
        )
        .map(Some)
    }

    /// Rules in ros2/domain_bridge's format.
    fn rules(&self, cell: &Cell) -> String {
        let [from, to] = self.plan.domains;
        let [probe, echo] = &self.plan.topics;
        let message = cell.kind.names().1;
        format!(
            "name: bench_bridge\nfrom_domain: {from}\nto_domain: {to}\ntopics:\n  {probe}:\n    type: {message}\n  \
             {echo}:\n    type: {message}\n    reversed: true\n"
        )
    }

    /// Completes the row, and takes it only if the middleware is the one that was asked for.
    fn judge(&self, cell: &Cell, restart: usize, mut row: Row) -> Outcome {
        let own = row
            .identity
            .rmw
            .as_ref()
            .map(|[own, _]| own.clone())
            .unwrap_or_default();
        let asked = &cell.rmw[0];
        if asked != "default" && *asked != own {
            return Outcome::NotAvailable(format!(
                "asked for {asked}, but this ROS environment runs {own} whatever RMW_IMPLEMENTATION says"
            ));
        }
        row.identity.path = cell.route.name().to_owned();
        let settings = &mut row.identity.settings;
        let mut set = |key: &str, value: serde_json::Value| settings.insert(key.to_owned(), value);
        set("plan", self.plan.name.clone().into());
        set("cell", cell.id().into());
        set("restart", restart.into());
        set("transport", cell.transport.label().into());
        set("security", (cell.security == Security::On).into());
        set("gap_ms", self.plan.gap_ms.into());
        Outcome::Measured(Box::new(row))
    }
}

/// What the relay counted tells on which way probes were lost.
fn add_counts(row: &mut Row, path: &Path) {
    #[derive(serde::Deserialize)]
    struct Counts {
        received: u64,
        echoed: u64,
    }
    let Some(counts) = std::fs::read(path)
        .ok()
        .and_then(|bytes| serde_json::from_slice::<Counts>(&bytes).ok())
    else {
        return;
    };
    if let Some(causes) = &mut row.causes {
        let arrived = row.received + row.late + row.damaged;
        causes.lost_on_the_way_out = Some(row.sent.saturating_sub(counts.received));
        causes.lost_on_the_way_back = Some(counts.echoed.saturating_sub(arrived));
    }
}

/// Whether the Fast DDS library of this environment was built with the authentication plug-in.
fn has_security() -> bool {
    let names = ["fastdds", "fastrtps"];
    let file = names.iter().find_map(|name| programs::library(name));
    let bytes = file
        .and_then(|path| std::fs::read(path).ok())
        .unwrap_or_default();
    let mark = b"builtin.PKI-DH";
    bytes.windows(mark.len()).any(|window| window == mark)
}
