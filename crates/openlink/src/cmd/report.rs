//! `openlink report`: results files as one HTML page.
//!
//! It reads, merges and writes files; figures and drawing are the `latency` crate's.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use latency::Results;

use crate::out;

/// Command line of `openlink report`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Results files, in the order their rows are to appear.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The page to write.
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
    /// Also write all rows into one results file.
    #[arg(long, value_name = "FILE")]
    merged: Option<PathBuf>,
    /// Also print the table to standard output.
    #[arg(long)]
    table: bool,
}

/// Writes the page and says where.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let results = Results::read_all(&args.files)?.context("no results file given")?;
    latency::report::write(&results, &args.output)?;
    if let Some(path) = &args.merged {
        results.write(path)?;
    }
    if args.table {
        let width = latency::table::terminal_width();
        out::line(latency::table::render(&results.rows, width));
    }
    tracing::info!(rows = results.rows.len(), "wrote {}", args.output.display());
    Ok(ExitCode::SUCCESS)
}
