//! `openlink ping`: measures the way to a drone and back, or to a relay and back.
//!
//! It opens the link, drives the prober and writes the row; what counts as received, late or lost is decided
//! by the `latency` crate.

mod crtp_echo;
mod progress;
mod relay_echo;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use latency::results::size;
use latency::{Host, Identity, Measurement, Mode, Payload, Plan, Results, Row, Summary};
use link::Uri;

use crate::out;
use crate::record;

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Echo {
    /// The link service of the drone itself, through everything that lies before it.
    Crtp,
    /// `openlink relay` at the other end of a prrt:// link.
    Relay,
}

/// Command line of `openlink ping`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The link: uart://, prrt://, udp:// or sim://.
    uri: Uri,
    /// Payload, bytes: 8 to 30 for the drone's echo, 52 to 4194304 for a relay's.
    #[arg(long, value_name = "N", default_value_t = 16)]
    bytes: usize,
    /// Probes a second; without it each probe leaves when the last one is answered.
    #[arg(long, value_name = "HZ")]
    rate: Option<f64>,
    /// Probes that count.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    count: u64,
    /// Probes before them that do not.
    #[arg(long, value_name = "N", default_value_t = 50)]
    warmup: u64,
    /// An answer after this many ms is late.
    #[arg(long, value_name = "MS", default_value_t = 1000)]
    timeout_ms: u64,
    /// How long to wait for the link and the first answer, s.
    #[arg(long, value_name = "S", default_value_t = 10.0)]
    wait_s: f64,
    /// Who answers.
    #[arg(long, value_enum, default_value_t = Echo::Crtp)]
    echo: Echo,
    /// Write a results file.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print the results file's content instead of a summary.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    record: record::Args,
}

impl Args {
    fn plan(&self) -> anyhow::Result<Plan> {
        let Ok(wait) = Duration::try_from_secs_f64(self.wait_s) else {
            bail!("--wait-s is {}, allowed: 0 to 600 s", self.wait_s);
        };
        let plan = Plan {
            run_id: rand::random(),
            mode: self.rate.map_or(
                Mode::PingPong {
                    gap: Duration::ZERO,
                },
                |hz| Mode::Rate { hz },
            ),
            bytes: self.bytes,
            count: self.count,
            warmup: self.warmup,
            timeout: Duration::from_millis(self.timeout_ms),
            wait,
            ..Plan::default()
        };
        plan.check()?;
        Ok(plan)
    }

    fn identity(&self) -> Identity {
        let (link, path, payload) = match self.echo {
            Echo::Crtp => (
                format!("crtp-{}", scheme(&self.uri)),
                "drone-echo",
                Payload::Crtp,
            ),
            Echo::Relay => (scheme(&self.uri).to_owned(), "relay", Payload::Binary),
        };
        Identity {
            link,
            path: path.to_owned(),
            domains: None,
            rmw: None,
            qos: None,
            payload,
            settings: BTreeMap::from([("uri".to_owned(), self.uri.to_string().into())]),
        }
    }
}

fn scheme(uri: &Uri) -> &'static str {
    match uri {
        Uri::Uart(_) => "uart",
        Uri::Prrt(_) => "prrt",
        Uri::Udp(_) => "udp",
        Uri::Tcp(_) => "tcp",
        Uri::Radio(_) => "radio",
        Uri::Sim(_) => "sim",
        Uri::Pty(_) => "pty",
    }
}

/// Measures and reports. The exit code says whether anything was received.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let plan = args.plan()?;
    let recording = args.record.start("ping", &[&args.uri.to_string()]);
    let measurement = match args.echo {
        Echo::Crtp => crtp_echo::run(&args.uri, plan, &recording),
        Echo::Relay => relay_echo::run(&args.uri, plan, &recording),
    };
    recording.finish();
    let measurement = measurement?;
    report(&args, &measurement)
}

fn report(args: &Args, measurement: &Measurement) -> anyhow::Result<ExitCode> {
    let row = Row::new(args.identity(), measurement);
    let received = row.received;
    let lines = lines(&row);
    let results = Results::new(Host::read(), vec![row]);
    if args.json {
        out::json(&results);
    } else {
        lines.into_iter().for_each(out::line);
    }
    if let Some(path) = &args.output {
        results.write(path)?;
    }
    Ok(if received > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn lines(row: &Row) -> Vec<String> {
    let uri = row
        .identity
        .settings
        .get("uri")
        .and_then(|uri| uri.as_str())
        .unwrap_or_default();
    let partial = if row.partial { " (ended early)" } else { "" };
    vec![
        format!(
            "{uri}: {} sent{partial}, {} received, {} lost, {} late, {} unsent, {} foreign; {}",
            row.sent,
            row.received,
            row.lost,
            row.late,
            row.unsent,
            row.foreign,
            size(row.bytes)
        ),
        format!("round trip  {}", quantiles(&row.rtt_us)),
        format!("half of it  {}", quantiles(&row.latency_us)),
    ]
}

fn quantiles(summary: &Summary) -> String {
    let us = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |us| format!("{us:.1}"));
    format!(
        "min {}  p50 {}  p90 {}  p99 {}  p99.9 {}  max {} us",
        us(summary.min),
        us(summary.p50),
        us(summary.p90),
        us(summary.p99),
        us(summary.p999),
        us(summary.max)
    )
}
