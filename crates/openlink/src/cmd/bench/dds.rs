//! `openlink bench dds`: an experiment from a plan to a report, cell by cell, in processes of their own.
//!
//! It decides the order, keeps what is done and writes the files. The nodes measure; see `measure`.

mod cell;
mod journal;
mod measure;
mod plan;
mod programs;
mod transport;

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use anyhow::{Context as _, bail};
use indicatif::{ProgressBar, ProgressStyle};
use latency::{Host, Results, knee};

use self::cell::Cell;
use self::journal::{Entry, Journal, Outcome};
use self::measure::Bench;
use self::plan::Plan;
use crate::{out, stop};

/// Command line of `openlink bench dds`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A plan file, or a ready-made plan: quick, paper, qos, vendors, knee, domains.
    #[arg(value_name = "PLAN", default_value = "quick")]
    plan: String,
    /// Output folder; what is there of the same plan is kept and completed. Default: out/bench-dds/NAME.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Throw away what is in the output folder.
    #[arg(long)]
    fresh: bool,
    /// Seed of the random order, instead of the plan's.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// How often each cell is measured, instead of the plan's.
    #[arg(long, value_name = "N")]
    restarts: Option<usize>,
    /// Probes of a cell, instead of the plan's.
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Payload sizes in bytes, comma-separated, instead of the plan's.
    #[arg(long, value_name = "N", value_delimiter = ',')]
    sizes: Option<Vec<usize>>,
    /// Domains of prober and relay, comma-separated, instead of the plan's.
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    domains: Option<Vec<u16>>,
    /// Measure the sizes that jump again with the plan's cures, to show that they cure.
    #[arg(long)]
    prove: bool,
    /// Only list the cells.
    #[arg(long)]
    list: bool,
    /// Print the results file's content instead of a table.
    #[arg(long)]
    json: bool,
}

impl Args {
    fn plan(&self) -> anyhow::Result<Plan> {
        let mut plan = Plan::open(&self.plan)?;
        plan.seed = self.seed.unwrap_or(plan.seed);
        plan.restarts = self.restarts.unwrap_or(plan.restarts);
        plan.count = self.count.unwrap_or(plan.count);
        if let Some(sizes) = &self.sizes {
            plan.sizes.clone_from(sizes);
        }
        match self.domains.as_deref() {
            None => {}
            Some([near, far]) => plan.domains = [*near, *far],
            Some(other) => bail!("--domains is {other:?}, allowed: two of 0 to 232, as in 5,10"),
        }
        plan.check("command line")?;
        Ok(plan)
    }
}

/// Measures what is not measured yet, and writes results and report.
pub(super) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let plan = args.plan()?;
    let cells = cell::all(&plan);
    if args.list {
        cells.iter().for_each(|cell| out::line(cell.id()));
        return Ok(ExitCode::SUCCESS);
    }
    let nodes = programs::folder()?;
    let folder = args
        .out
        .clone()
        .unwrap_or_else(|| PathBuf::from("out/bench-dds").join(&plan.name));
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let mut journal = Journal::open(&folder.join("journal.jsonl"), &plan, args.fresh)?;
    let flag = stop::flag()?;
    let bench = Bench {
        plan: &plan,
        nodes,
        out: &folder,
        stopped: &|| flag.load(Ordering::Relaxed),
    };
    let mut finished = measure_all(&bench, &mut journal, &cells, plan.restarts)?;
    if finished && args.prove {
        let cures = cures(&plan, &cells, &journal);
        finished = measure_all(&bench, &mut journal, &cures, plan.restarts)?;
    }
    write(&args, &folder, &journal, finished)
}

/// Measures every cell that the journal lacks; false when the user stopped it.
fn measure_all(
    bench: &Bench<'_>,
    journal: &mut Journal,
    cells: &[Cell],
    restarts: usize,
) -> anyhow::Result<bool> {
    let done = journal.done();
    let mut todo = cell::schedule(cells, restarts, bench.plan.seed);
    todo.retain(|(restart, cell)| !done.contains(&(cell.id(), *restart)));
    let bar = progress(todo.len() as u64);
    for (restart, cell) in &todo {
        bar.set_message(cell.id());
        let Some(outcome) = bench.measure(cell, *restart)? else {
            bar.finish_and_clear();
            return Ok(false);
        };
        tell(&bar, cell, *restart, &outcome);
        journal.add(Entry {
            cell: cell.id(),
            restart: *restart,
            outcome,
        })?;
        bar.inc(1);
        if (bench.stopped)() {
            bar.finish_and_clear();
            return Ok(false);
        }
    }
    bar.finish_and_clear();
    Ok(true)
}

fn progress(cells: u64) -> ProgressBar {
    if cells == 0 || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(cells);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {eta} {msg}") {
        bar.set_style(style);
    }
    bar
}

fn tell(bar: &ProgressBar, cell: &Cell, restart: usize, outcome: &Outcome) {
    let text = match outcome {
        Outcome::Measured(row) => format!(
            "p50 {} p99 {} us, {} of {} lost or late",
            latency::table::us(row.rtt_us.p50),
            latency::table::us(row.rtt_us.p99),
            row.lost + row.late,
            row.sent
        ),
        Outcome::NotAvailable(why) => format!("not available: {why}"),
        Outcome::Failed(why) => format!("failed: {why}"),
    };
    bar.suspend(|| tracing::info!("{} run {restart}: {text}", cell.id()));
}

/// Cells that measure the sizes from the last good one on with each cure.
fn cures(plan: &Plan, cells: &[Cell], journal: &Journal) -> Vec<Cell> {
    let knees = knee::find(&journal.rows());
    let from = knees.iter().map(|knee| knee.last_good).min();
    let Some(from) = from else {
        return Vec::new();
    };
    let affected = cells
        .iter()
        .filter(|cell| cell.bytes.is_some_and(|bytes| bytes >= from));
    let cured = affected.flat_map(|cell| {
        plan.cures.iter().map(|transport| Cell {
            transport: *transport,
            ..cell.clone()
        })
    });
    cured.collect()
}

fn write(
    args: &Args,
    folder: &std::path::Path,
    journal: &Journal,
    finished: bool,
) -> anyhow::Result<ExitCode> {
    let rows = journal.rows();
    let knees = knee::find(&rows);
    let results = Results::new(Host::read(), rows);
    results.write(&folder.join("results.json"))?;
    latency::report::write(&results, &folder.join("report.html"))?;
    if args.json {
        out::json(&results);
    } else {
        out::line(latency::table::render(
            &results.rows,
            latency::table::terminal_width(),
        ));
        missing(journal).into_iter().for_each(out::line);
        latency::compare::ratios(&results.rows)
            .iter()
            .for_each(|ratio| out::line(ratio.sentence()));
        knees.iter().for_each(|knee| out::line(knee.sentence()));
    }
    let failed = journal
        .latest()
        .any(|entry| matches!(entry.outcome, Outcome::Failed(_)));
    if !finished {
        tracing::warn!("stopped; the same command goes on where it was left");
    }
    tracing::info!(
        rows = results.rows.len(),
        "wrote {}",
        folder.join("report.html").display()
    );
    Ok(if failed || !finished || results.rows.is_empty() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// What has no row, once for each cell.
fn missing(journal: &Journal) -> Vec<String> {
    let lines = journal.latest().filter_map(|entry| match &entry.outcome {
        Outcome::Measured(_) => None,
        Outcome::NotAvailable(why) => Some(format!("{}: not available: {why}", entry.cell)),
        Outcome::Failed(why) => Some(format!("{}: failed: {why}", entry.cell)),
    });
    let mut lines: Vec<String> = lines.collect();
    lines.sort();
    lines.dedup();
    lines
}
