//! `openlink loop`: measures a periodic control loop over policies, loads and pins.
//!
//! Parses, runs the cells one after the other, prints and writes the result. The measuring is `realtime`'s.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail};
use realtime::mono::SystemClock;
use realtime::periodic::cell::{Cell, CellResult, Plan, expected_time};
use realtime::periodic::export;
use realtime::periodic::job::Io;
use realtime::periodic::load::LoadProfile;
use realtime::periodic::report::{Document, Method};
use realtime::periodic::runner::Timing;
use realtime::periodic::spin::{HoleFinder, RtLimit, spin};
use realtime::periodic::surroundings::{Host, cpus_online};
use realtime::periodic::verdict::danger;
use realtime::thread::policy::parse_duration;
use realtime::thread::process::{DEFAULT_PREFAULT, WakeLatency, lock_memory};
use realtime::{CpuList, Policy, ThreadPolicy};

use crate::{out, stop};

const SPIN_THRESHOLD: Duration = Duration::from_millis(1);

/// Command line of `openlink loop`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Cycles a second.
    #[arg(long, value_name = "HZ", default_value_t = 250, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rate: u32,
    /// Measured time of each row, e.g. 10s.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    duration: Duration,
    /// Time before it that is left out, at least one cycle.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    warmup: Duration,
    /// Policies of the loop, or `all`: `other`, `other:SLICE`, `fifo[:P]`, `rr[:P]`, `deadline[:RUNTIME/DEADLINE/PERIOD]`.
    #[arg(
        long,
        value_name = "POLICY",
        value_delimiter = ',',
        default_value = "all"
    )]
    policy: Vec<String>,
    /// Background loads, or `matrix` for every one: none, cpu, memory, kernel, all.
    #[arg(
        long,
        value_name = "LOAD",
        value_delimiter = ',',
        default_value = "none"
    )]
    load: Vec<String>,
    /// CPUs the loop is confined to (`none`, `1`, `2-3`); several values give several rows.
    #[arg(long, value_name = "CPUS", default_value = "none")]
    pin: Vec<String>,
    /// An exchange in the loop in place of the computation: `none`, `pty`, `uart:PATH[@BAUD]`, `udp[:HOST:PORT]`.
    #[arg(long, value_name = "IO", default_value = "none", value_parser = parse_io)]
    io: Io,
    /// Working set of the computation, KiB.
    #[arg(long, value_name = "KIB", default_value_t = 64, value_parser = clap::value_parser!(u32).range(0..=65_536))]
    state_kib: u32,
    /// Timer slack of the time-sharing rows, nanoseconds; 0 = the kernel's default.
    #[arg(long, value_name = "NS", default_value_t = 1)]
    slack_ns: u64,
    /// Do not ask the idle governor for the shortest wake-up during the run.
    #[arg(long)]
    no_wake_latency: bool,
    /// Do not lock the memory.
    #[arg(long)]
    no_mlock: bool,
    /// End with an error before measuring when the kernel refuses anything.
    #[arg(long)]
    strict: bool,
    /// Allow what can keep the machine from doing anything else: priority 99, or real time on the only core.
    #[arg(long)]
    force: bool,
    /// Seed of the load.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Instead of the loop, spin without sleeping for the duration and name the holes.
    #[arg(long)]
    spin: bool,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
    /// Also write results.json, histogram.csv, ecdf.svg, histogram.svg and report.html into this folder.
    #[arg(long, short, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

/// Measures until all rows are done or a signal ends it.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let cells = cells(&args)?;
    for cell in &cells {
        check_danger(cell, args.force)?;
    }
    let stop = stop::flag().context("cannot listen for signals")?;
    if args.spin {
        return run_spin(&args, &cells, &stop);
    }
    run_matrix(&args, &cells, &stop)
}

fn run_matrix(args: &Args, cells: &[Cell], stop: &AtomicBool) -> anyhow::Result<ExitCode> {
    let plan = plan(args);
    if args.strict {
        refuse_compromise(cells, &plan)?;
    }
    let memory = (!args.no_mlock).then(|| lock_memory(DEFAULT_PREFAULT));
    let held = (!args.no_wake_latency).then(|| WakeLatency::hold(0));
    let progress = Progress::start(&plan, cells.len());
    let results = measure(cells, &plan, stop, &progress)?;
    progress.finish();
    let partial = results.len() < cells.len() || results.iter().any(|result| result.stopped);
    let held = held.map(|held| held.map(|held| held.us()));
    let document = Document::new(
        Host::read(),
        Method::of(&plan, memory, held),
        results,
        partial,
    );
    present(args, &document)?;
    Ok(
        if document.cells.iter().any(|cell| cell.figures.is_some()) {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        },
    )
}

fn measure(
    cells: &[Cell],
    plan: &Plan,
    stop: &AtomicBool,
    progress: &Progress,
) -> anyhow::Result<Vec<CellResult>> {
    let mut results = Vec::with_capacity(cells.len());
    for cell in cells {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        progress.show(cell);
        results.push(cell.measure(plan, stop)?);
    }
    Ok(results)
}

fn present(args: &Args, document: &Document) -> anyhow::Result<()> {
    if let Some(folder) = &args.output {
        write_files(folder, document)?;
    }
    if args.json {
        out::line(serde_json::to_string_pretty(document)?);
    } else {
        out::line(document.table());
    }
    Ok(())
}

fn write_files(folder: &Path, document: &Document) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let files = [
        ("results.json", serde_json::to_string_pretty(document)?),
        ("histogram.csv", export::cyclictest_histogram(document)),
        (
            "ecdf.svg",
            export::ecdf_svg("wake-up latency", &export::ecdf_series(document))?,
        ),
        (
            "histogram.svg",
            export::histogram_svg("wake-up latency", &export::histogram_series(document))?,
        ),
        ("report.html", export::page(document)?),
    ];
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn plan(args: &Args) -> Plan {
    Plan {
        timing: Timing {
            period: period(args),
            warmup: args.warmup,
            duration: args.duration,
        },
        state_bytes: args.state_kib as usize * 1024,
        io: args.io.clone(),
        timer_slack_ns: (args.slack_ns > 0).then_some(args.slack_ns),
        seed: args.seed,
    }
}

fn period(args: &Args) -> Duration {
    Duration::from_secs(1) / args.rate
}

fn cells(args: &Args) -> anyhow::Result<Vec<Cell>> {
    let policies = policies(args)?;
    let loads = loads(&args.load)?;
    let pins = args
        .pin
        .iter()
        .map(|text| pin(text))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let mut cells = Vec::new();
    for load in loads {
        for pin in &pins {
            cells.extend(policies.iter().map(|policy| Cell {
                policy: *policy,
                load,
                pin: pin.clone(),
            }));
        }
    }
    Ok(cells)
}

fn policies(args: &Args) -> anyhow::Result<Vec<Policy>> {
    let mut policies = Vec::new();
    for text in &args.policy {
        match text.as_str() {
            "all" => policies.extend(Policy::comparison(period(args))),
            "deadline" => policies.push(Policy::deadline_for(period(args))),
            text => policies.push(text.parse()?),
        }
    }
    Ok(policies)
}

fn loads(texts: &[String]) -> anyhow::Result<Vec<LoadProfile>> {
    if texts.iter().any(|text| text == "matrix") {
        return Ok(LoadProfile::ALL.to_vec());
    }
    texts
        .iter()
        .map(|text| text.parse().map_err(anyhow::Error::msg))
        .collect()
}

fn pin(text: &str) -> anyhow::Result<Option<CpuList>> {
    if text == "none" {
        return Ok(None);
    }
    let cpus: CpuList = text.parse()?;
    if cpus.is_empty() {
        bail!("--pin is empty; give CPU numbers or none");
    }
    Ok(Some(cpus))
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .ok_or_else(|| format!("{text:?} is no time such as 500ms, 10s, 2h (at most a day)"))
}

fn parse_io(text: &str) -> Result<Io, String> {
    match text.split_once(':') {
        None if text == "none" => Ok(Io::None),
        None if text == "pty" => Ok(Io::Pty),
        None if text == "udp" => Ok(Io::Udp(None)),
        Some(("udp", address)) => address
            .parse::<SocketAddr>()
            .map(|peer| Io::Udp(Some(peer)))
            .map_err(|e| e.to_string()),
        Some(("uart", rest)) => uart(rest),
        _ => Err(format!(
            "{text:?} is none of none, pty, uart:PATH[@BAUD], udp[:HOST:PORT]"
        )),
    }
}

fn uart(text: &str) -> Result<Io, String> {
    let (path, baud) = text.split_once('@').unwrap_or((text, "576000"));
    let baud = baud
        .parse()
        .map_err(|_| format!("baud {baud:?} is no number"))?;
    Ok(Io::Uart(path.into(), baud))
}

fn check_danger(cell: &Cell, force: bool) -> anyhow::Result<()> {
    match danger(cell.policy, cpus_online(), cell.pin.as_ref()) {
        Some(why) if !force => bail!(
            "policy {}: {why}; --force runs it all the same",
            cell.policy
        ),
        _ => Ok(()),
    }
}

fn refuse_compromise(cells: &[Cell], plan: &Plan) -> anyhow::Result<()> {
    for cell in cells {
        if let Some(refusal) = cell.try_out(plan)?.into_iter().next() {
            bail!("{refusal}");
        }
    }
    let may_lock = lock_memory(0);
    may_lock
        .refusal
        .map_or(Ok(()), |refusal| Err(refusal.into()))
}

fn run_spin(args: &Args, cells: &[Cell], stop: &Arc<AtomicBool>) -> anyhow::Result<ExitCode> {
    for cell in cells
        .iter()
        .filter(|cell| !matches!(cell.policy, Policy::Deadline { .. }))
    {
        let wish = ThreadPolicy {
            policy: Some(cell.policy),
            cpus: cell.pin.clone(),
            ..ThreadPolicy::default()
        };
        let (duration, stop) = (args.duration, Arc::clone(stop));
        let thread = thread::spawn(move || -> std::io::Result<_> {
            let applied = wish.apply()?;
            Ok(if applied.refusals.is_empty() {
                Ok(spin(&SystemClock, duration, SPIN_THRESHOLD, &stop))
            } else {
                Err(applied.refusals)
            })
        });
        match thread
            .join()
            .map_err(|_| anyhow::anyhow!("the spinning thread ended in a panic"))??
        {
            Ok(holes) => out::line(spin_line(cell, &holes)),
            Err(refusals) => refusals
                .iter()
                .for_each(|refusal| out::line(format_args!("{}: {refusal}", cell.policy))),
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn spin_line(cell: &Cell, finder: &HoleFinder) -> String {
    let limit = RtLimit::of_this_machine();
    let longest = finder
        .holes
        .iter()
        .map(|hole| hole.length_ns)
        .max()
        .unwrap_or(0);
    let named = limit
        .verdict(&finder.holes)
        .filter(|_| cell.policy.is_real_time());
    format!(
        "{}: {} hole(s) of 1 ms and more, longest {:.1} ms, {:.1} ms together{}",
        cell.policy,
        finder.holes.len() as u64 + finder.uncounted,
        longest as f64 / 1e6,
        finder.total_ns() as f64 / 1e6,
        named.map_or_else(String::new, |named| format!("\n  {named}")),
    )
}

/// A bar on a terminal, nothing elsewhere.
struct Progress(indicatif::ProgressBar);

impl Progress {
    fn start(plan: &Plan, cells: usize) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self(indicatif::ProgressBar::hidden());
        }
        let bar = indicatif::ProgressBar::new(cells as u64);
        bar.set_message(format!("about {} s", expected_time(plan, cells).as_secs()));
        bar.enable_steady_tick(Duration::from_millis(500));
        Self(bar)
    }

    fn show(&self, cell: &Cell) {
        self.0
            .set_message(format!("{} under load {}", cell.policy, cell.load.name()));
        self.0.inc(1);
    }

    fn finish(&self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_spellings() {
        assert_eq!(
            parse_io("uart:/dev/ttyAMA0@1000000"),
            Ok(Io::Uart("/dev/ttyAMA0".into(), 1_000_000))
        );
        assert_eq!(
            parse_io("udp:127.0.0.1:7"),
            Ok(Io::Udp(Some("127.0.0.1:7".parse().unwrap())))
        );
        assert!(parse_io("i2c").unwrap_err().contains("uart:PATH"));
        assert!(parse_io("uart:/dev/x@fast").is_err());
    }

    #[test]
    fn a_pin_is_a_list_or_none() {
        assert_eq!(pin("none").unwrap(), None);
        assert_eq!(pin("1-2").unwrap().unwrap().len(), 2);
        assert!(pin("").is_err() && pin("x").is_err());
    }
}
