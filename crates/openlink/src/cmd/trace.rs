//! `openlink trace`: what packet logs say about a run, and the same for other tools.
//!
//! It reads logs and writes answers; the analysis is the `latency` crate's.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use latency::Stage;
use latency::trace::export::{self, Header};
use latency::trace::{
    Age, DEFAULT_STAGES, Ipt, Offset, Rtt, StagePlan, Stages, Trace, compare, page,
};

mod show;

/// Command line of `openlink trace`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Times between packets to the drone.
    Ipt {
        #[command(flatten)]
        input: Input,
        /// Where packets are stamped (G0, G2, U0, …); the place where they leave first unless given.
        #[arg(long, value_parser = stage)]
        stage: Option<Stage>,
    },
    /// Round trips of requests, losses and resends.
    Rtt {
        #[command(flatten)]
        input: Input,
    },
    /// Where the time of a round trip goes.
    Stages {
        #[command(flatten)]
        input: Input,
        /// YAML file that declares the durations.
        #[arg(long, value_name = "FILE")]
        stages: Option<PathBuf>,
    },
    /// How old the newest is that the drone and the application know.
    Age {
        #[command(flatten)]
        input: Input,
    },
    /// What became of packets, place by place: passed, superseded, expired, dropped and why.
    Fates {
        #[command(flatten)]
        input: Input,
    },
    /// One run against another, with 95 % intervals.
    Compare {
        /// Packet logs of the run to compare with.
        #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
        base: Vec<PathBuf>,
        /// Packet logs of the other run.
        #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
        other: Vec<PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// The records for other tools.
    Export {
        /// Packet logs of one run, one for each host.
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
        /// Format.
        #[arg(long, value_enum)]
        to: Format,
        /// Where to; standard output unless given.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Only this stage (pcapng).
        #[arg(long, value_parser = stage)]
        stage: Option<Stage>,
    },
}

#[derive(Debug, clap::Args)]
struct Input {
    /// Packet logs of one run, one for each host.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Also write a page with charts.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    /// A table, one line for each record.
    Csv,
    /// For Wireshark, with the header that the dissector of the Python library reads (9 bytes).
    Pcapng,
    /// For Wireshark, with the header that the Rust link library captures (41 bytes).
    PcapngCapture,
    /// For Perfetto: a track for each stage, a flow for each packet.
    Perfetto,
}

fn stage(name: &str) -> Result<Stage, String> {
    Stage::from_name(name)
        .ok_or_else(|| "G0 to G7, B0 to B4, UQ, U0, UC, U1 to U5, D0 or D1".to_owned())
}

/// Answers. Exits with 1 when the logs hold nothing to answer from.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.what {
        What::Ipt { input, stage } => {
            let trace = open(&input.files)?;
            let ipt = Ipt::of(&trace, stage)?;
            chart(&input, &trace, Some(&ipt), None, None)?;
            show::ipt(&ipt, input.json);
        }
        What::Rtt { input } => {
            let trace = open(&input.files)?;
            let rtt = Rtt::of(&trace)?;
            chart(&input, &trace, None, Some(&rtt), None)?;
            show::rtt(&rtt, input.json);
        }
        What::Stages { input, stages } => {
            let trace = open(&input.files)?;
            let stages = Stages::of(&trace, &plan(stages.as_deref())?)?;
            chart(&input, &trace, None, None, Some(&stages))?;
            show::stages(&stages, Offset::of(&trace), input.json);
        }
        What::Age { input } => {
            let ages = Age::of(&open(&input.files)?);
            if ages.is_empty() {
                anyhow::bail!("no stream was recorded at both ends of the way");
            }
            show::ages(&ages, input.json);
        }
        What::Fates { input } => show::fates(&open(&input.files)?, input.json),
        What::Compare { base, other, json } => compare_runs(&open(&base)?, &open(&other)?, json)?,
        What::Export {
            files,
            to,
            output,
            stage,
        } => export_to(&open(&files)?, to, output.as_deref(), stage)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn open(files: &[PathBuf]) -> anyhow::Result<Trace> {
    let trace = Trace::read(files)?;
    for warning in trace.warnings() {
        tracing::warn!("{warning}");
    }
    Ok(trace)
}

fn compare_runs(base: &Trace, other: &Trace, json: bool) -> anyhow::Result<()> {
    let (rtt, other_rtt) = (Rtt::of(base)?, Rtt::of(other)?);
    let (ipt, other_ipt) = (Ipt::of(base, None)?, Ipt::of(other, None)?);
    let parts = [
        ("round trip", compare(&rtt.samples, &other_rtt.samples)),
        ("between packets", compare(&ipt.samples, &other_ipt.samples)),
    ];
    show::comparison(&parts, json);
    Ok(())
}

fn plan(path: Option<&Path>) -> anyhow::Result<StagePlan> {
    let Some(path) = path else {
        return Ok(StagePlan::parse(DEFAULT_STAGES)?);
    };
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    StagePlan::parse(&text).with_context(|| path.display().to_string())
}

fn chart(
    input: &Input,
    trace: &Trace,
    ipt: Option<&Ipt>,
    rtt: Option<&Rtt>,
    stages: Option<&Stages>,
) -> anyhow::Result<()> {
    if let Some(path) = &input.output {
        let page = page(trace, ipt, rtt, stages)?;
        std::fs::write(path, page).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

fn export_to(
    trace: &Trace,
    format: Format,
    output: Option<&Path>,
    stage: Option<Stage>,
) -> anyhow::Result<()> {
    let to: Box<dyn Write> = match output {
        Some(path) => Box::new(File::create(path).with_context(|| path.display().to_string())?),
        None => Box::new(io::stdout().lock()),
    };
    let to = BufWriter::new(to);
    let done = match format {
        Format::Csv => export::csv(trace, to),
        Format::Pcapng => export::pcapng(trace, Header::Dissector, stage, to),
        Format::PcapngCapture => export::pcapng(trace, Header::Capture, stage, to),
        Format::Perfetto => export::perfetto(trace, to),
    };
    match done {
        // A reader that went away ends the output, not the program.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => Ok(done?),
    }
}
