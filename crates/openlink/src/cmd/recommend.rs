//! `openlink recommend`: ranks what was measured for a need.
//!
//! It reads files and prints; the ranking is the `latency` crate's.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use latency::Results;
use latency::recommend::{Fit, Need, rank};

use crate::out;

/// Rows measured by this project on its own machine, so that there is something to rank from the start.
const SHIPPED: &str = include_str!("../../data/measured.json");
const SHIPPED_NAME: &str = "shipped set";

/// Command line of `openlink recommend`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Results files of your own machine. Without any, the shipped set is taken, which only tells an order of magnitude.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Size of a message, bytes.
    #[arg(long, value_name = "N")]
    bytes: usize,
    /// Messages a second.
    #[arg(long, value_name = "HZ", default_value_t = 100.0)]
    rate: f64,
    /// Time a message may take, ms; half a round trip less the relay's time is compared with it.
    #[arg(long, value_name = "MS", default_value_t = 10.0)]
    deadline_ms: f64,
    /// Share of messages that may miss it, 0 to 1.
    #[arg(long, value_name = "SHARE", default_value_t = 0.01)]
    loss: f64,
    /// Only links whose name starts so: dds, prrt, crtp.
    #[arg(long, value_name = "LINK", default_value = "")]
    link: String,
    /// Only this path: same-domain, cross-domain, relay.
    #[arg(long, value_name = "PATH", default_value = "")]
    path: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Args {
    fn need(&self) -> anyhow::Result<Need> {
        if !(0.0..=1.0).contains(&self.loss) {
            bail!("--loss is {}, allowed: 0 to 1", self.loss);
        }
        for (flag, value) in [("--rate", self.rate), ("--deadline-ms", self.deadline_ms)] {
            if !(value > 0.0 && value <= 1e6) {
                bail!("{flag} is {value}, allowed: above 0, at most 1000000");
            }
        }
        Ok(Need {
            bytes: self.bytes,
            rate_hz: self.rate,
            deadline_us: self.deadline_ms * 1e3,
            loss: self.loss,
            link: self.link.clone(),
            path: self.path.clone(),
        })
    }
}

/// Ranks and prints. The exit code says whether anything meets the need.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let need = args.need()?;
    let results = if args.files.is_empty() {
        Results::parse(Path::new(SHIPPED_NAME), SHIPPED)?
    } else {
        Results::read_all(&args.files)?.context("no results file given")?
    };
    let ranked = rank(&results.rows, &need);
    if args.json {
        out::json(&ranked);
    } else {
        let source = if args.files.is_empty() {
            SHIPPED_NAME
        } else {
            "your files"
        };
        let host = &results.host;
        out::line(format!(
            "{} rows of the {source} ({}, {})",
            results.rows.len(),
            host.cpu,
            host.kernel
        ));
        if ranked.is_empty() {
            out::line("nothing was measured at this size or above on that link and path");
        }
        ranked.iter().for_each(|one| out::line(one.sentence()));
    }
    let meets = ranked.iter().any(|one| one.fit == Fit::Meets);
    Ok(if meets {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_set_can_be_ranked() {
        let results = Results::parse(Path::new(SHIPPED_NAME), SHIPPED).unwrap();
        assert!(
            !results.host.cpu.is_empty(),
            "rows without a machine mean nothing"
        );
        let need = Need {
            bytes: 33_000,
            rate_hz: 100.0,
            deadline_us: 20_000.0,
            loss: 0.05,
            link: "dds".into(),
            path: "same-domain".into(),
        };
        let ranked = rank(&results.rows, &need);
        assert!(ranked.iter().any(|one| one.fit == Fit::Meets), "{ranked:?}");
        assert!(ranked.iter().all(|one| !one.rows.is_empty()));
    }
}
