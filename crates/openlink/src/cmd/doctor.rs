//! `openlink doctor`: examines this machine, or a recorded one, and says what to do.
//!
//! Reads only, except for `doctor uart`; the exit code is that of the worst verdict.

mod dds;
mod uart;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use realtime::doctor::report::Document;
use realtime::doctor::{Machine, Profile, examine, self_test};

use crate::out;

/// Command line of `openlink doctor`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    part: Option<Part>,
    /// What the machine shall be good for: bridge-on-pi, ground-station, 1khz-controller or ci.
    #[arg(long, value_name = "PROFILE", default_value = "bridge-on-pi")]
    profile: Profile,
    /// Examine the machine recorded in this folder instead of this one.
    #[arg(long, value_name = "FOLDER", conflicts_with = "record")]
    root: Option<PathBuf>,
    /// Also write everything that was read into this new folder, for --root elsewhere.
    #[arg(long, value_name = "FOLDER")]
    record: Option<PathBuf>,
    /// Leave out the two seconds of measuring.
    #[arg(long)]
    no_self_test: bool,
    /// Show what passed, does not apply or cannot be told as well.
    #[arg(long, short)]
    all: bool,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

/// One part of it alone.
#[derive(Debug, clap::Subcommand)]
enum Part {
    /// Count the DDS participants on this host and those that there is room for.
    Dds(dds::Args),
    /// Test a serial port whose TX and RX are joined, with no drone on it.
    Uart(uart::Args),
}

/// Examines and reports. Exit code 0: nothing wrong, 1: warnings, 2: something that makes the job impossible.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.part {
        Some(Part::Dds(args)) => return dds::run(args),
        Some(Part::Uart(args)) => return uart::run(&args),
        None => {}
    }
    let machine = machine(&args)?;
    let mut findings = examine(&machine, args.profile);
    if machine.is_live() && !args.no_self_test {
        findings.extend(self_test::run(args.profile));
    }
    if let Some(folder) = &args.record {
        let files = machine
            .record(folder)
            .with_context(|| format!("cannot record into {}", folder.display()))?;
        tracing::info!("{files} files recorded in {}", folder.display());
    }
    let document = Document::new(args.profile, findings);
    if args.json {
        out::line(serde_json::to_string_pretty(&document)?);
    } else {
        out::line(document.text(args.all));
    }
    Ok(ExitCode::from(document.worst.exit_code()))
}

fn machine(args: &Args) -> anyhow::Result<Machine> {
    let Some(root) = &args.root else {
        return Ok(Machine::live());
    };
    if !root.is_dir() {
        bail!("--root {} is no folder", root.display());
    }
    Ok(Machine::recorded(root))
}
