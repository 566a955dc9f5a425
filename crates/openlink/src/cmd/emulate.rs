//! `openlink emulate`: an emulated link between two network namespaces, or in front of a UDP port, until a signal ends it.
//!
//! It finds the scenario, opens, reports and nothing else; the emulator is in `simulator`.

use std::fs;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use realtime::thread::policy::parse_duration;
use simulator::emulator::{self, DirectionStats, Emulation, Lateness, Proxy, Report, Scenario};

use crate::{out, stop};

/// How often a waiting main thread looks up.
const TICK: Duration = Duration::from_millis(20);

/// Command line of `openlink emulate`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of a built-in scenario, or FILE or FILE:NAME with scenarios in YAML.
    #[arg(required_unless_present = "list")]
    scenario: Option<String>,
    /// Show the built-in scenarios.
    #[arg(long)]
    list: bool,
    /// Listen here for UDP clients instead of making namespaces. Needs neither root nor TUN.
    #[arg(long, value_name = "HOST:PORT", requires = "to")]
    udp: Option<String>,
    /// Where their datagrams go.
    #[arg(long, value_name = "HOST:PORT", requires = "udp")]
    to: Option<String>,
    /// The namespaces are NAME-a (10.77.0.1) and NAME-b (10.77.0.2).
    #[arg(long, value_name = "NAME", default_value = "openlink", value_parser = namespace_prefix)]
    name: String,
    /// Seed of the chance in the link.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// End after this time, e.g. 30s; otherwise with SIGINT or SIGTERM.
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    length: Option<Duration>,
    /// Print the counters as JSON at the end.
    #[arg(long)]
    json: bool,
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .ok_or_else(|| format!("{text:?} is no time; allowed: 1ms to 24h, e.g. 30s"))
}

fn namespace_prefix(text: &str) -> Result<String, String> {
    let fits = (1..=32).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if fits {
        return Ok(text.to_owned());
    }
    Err(format!(
        "{text:?} is no name; allowed: 1 to 32 letters, digits, - and _"
    ))
}

/// Emulates until a signal or the time ends it.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Some(wanted) = args.scenario.as_deref().filter(|_| !args.list) else {
        return list();
    };
    let scenario = find(wanted)?;
    let stop = stop::flag().context("cannot listen for signals")?;
    let report = match (&args.udp, &args.to) {
        (Some(listen), Some(to)) => proxy(&args, scenario, listen, to, &stop)?,
        _ => namespaces(&args, scenario, &stop)?,
    };
    if args.json {
        out::json(&report);
    } else {
        print(&report);
    }
    Ok(ExitCode::SUCCESS)
}

fn list() -> anyhow::Result<ExitCode> {
    for scenario in emulator::built_in()? {
        out::line(format!("{}  {}", scenario.name, scenario.about));
    }
    Ok(ExitCode::SUCCESS)
}

/// A built-in scenario by name, or one of a file.
fn find(wanted: &str) -> anyhow::Result<Scenario> {
    let mut built_in = emulator::built_in()?;
    if let Some(at) = built_in
        .iter()
        .position(|s| s.name.eq_ignore_ascii_case(wanted))
    {
        return Ok(built_in.swap_remove(at));
    }
    let (path, name) = match fs::exists(wanted) {
        Ok(true) => (wanted, None),
        Ok(false) | Err(_) => match wanted.rsplit_once(':') {
            Some((path, name)) => (path, Some(name)),
            None => bail!(
                "scenario {wanted:?} is neither built in ({}) nor a file",
                names(&built_in)
            ),
        },
    };
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    let scenarios = emulator::parse(&text).with_context(|| path.to_owned())?;
    pick(path, name, scenarios)
}

fn pick(path: &str, name: Option<&str>, mut scenarios: Vec<Scenario>) -> anyhow::Result<Scenario> {
    let known = names(&scenarios);
    match name {
        None if scenarios.len() == 1 => Ok(scenarios.swap_remove(0)),
        None => bail!("{path} has the scenarios {known}; choose one as {path}:NAME"),
        Some(name) => scenarios
            .into_iter()
            .find(|s| s.name == name)
            .with_context(|| format!("{path} has no scenario {name:?}; it has {known}")),
    }
}

fn names(scenarios: &[Scenario]) -> String {
    let names: Vec<&str> = scenarios.iter().map(|s| s.name.as_str()).collect();
    names.join(", ")
}

fn namespaces(args: &Args, scenario: Scenario, stop: &AtomicBool) -> anyhow::Result<Report> {
    let about = scenario.about.clone();
    let emulation = Emulation::start(&args.name, scenario, args.seed)?;
    let [a, b] = emulation.names();
    let [at_a, at_b] = Emulation::addresses();
    tracing::info!("{about}: {a} ({at_a}) to {b} ({at_b}); use with `ip netns exec {a} PROGRAM`");
    wait(args.length, || {
        stop.load(Ordering::Relaxed) || emulation.has_failed()
    });
    Ok(emulation.stop()?)
}

fn proxy(
    args: &Args,
    scenario: Scenario,
    listen: &str,
    to: &str,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Report> {
    let about = scenario.about.clone();
    let (listen, to) = (resolve("--udp", listen)?, resolve("--to", to)?);
    let mut proxy = Proxy::open(listen, to, scenario, args.seed)?;
    tracing::info!("{about}: {} to {to}", proxy.local_addr()?);
    let over = Arc::new(AtomicBool::new(false));
    let worker = thread::spawn({
        let over = Arc::clone(&over);
        move || proxy.run(&over)
    });
    wait(args.length, || {
        stop.load(Ordering::Relaxed) || worker.is_finished()
    });
    over.store(true, Ordering::Relaxed);
    match worker.join() {
        Ok(report) => report.context("the emulator stopped"),
        Err(_) => bail!("the emulator broke down"),
    }
}

fn wait(length: Option<Duration>, mut over: impl FnMut() -> bool) {
    let end = length.map(|length| Instant::now() + length);
    while !over() && end.is_none_or(|end| Instant::now() < end) {
        thread::sleep(TICK);
    }
}

fn resolve(option: &str, address: &str) -> anyhow::Result<SocketAddr> {
    let mut found = address
        .to_socket_addrs()
        .with_context(|| format!("{option} {address:?} is no HOST:PORT"))?;
    found
        .next()
        .with_context(|| format!("{option} {address:?}: host has no address"))
}

fn print(report: &Report) {
    out::line(format!(
        "{} for {:.1} s, seed {}",
        report.scenario.name, report.seconds, report.seed
    ));
    for (name, stats, late) in [
        ("up", &report.up, &report.lateness[0]),
        ("down", &report.down, &report.lateness[1]),
    ] {
        out::line(direction(name, stats));
        out::line(lateness(late));
    }
    for refusal in report.scheduling.iter().flat_map(|s| &s.refusals) {
        out::line(format!("refused: {refusal}"));
    }
    out::line(if report.clean {
        "the emulator kept time"
    } else {
        "THE EMULATOR WAS LATE by more than 1 ms at p99.9: what was measured over it is worth little"
    });
}

fn direction(name: &str, s: &DirectionStats) -> String {
    format!(
        "{name:<5} {} packets ({} bytes), {} delivered; lost {} one by one, {} in bursts, {} in outages, {} to a full queue, {} to an old port; {} reordered, {} duplicated, {} corrupted",
        s.packets,
        s.bytes,
        s.delivered,
        s.lost_iid,
        s.lost_bursts,
        s.lost_outages,
        s.overflowed,
        s.nat_stale,
        s.reordered,
        s.duplicated,
        s.corrupted
    )
}

fn lateness(late: &Lateness) -> String {
    let us = |value: Option<f64>| value.map_or_else(|| "-".into(), |us| format!("{us:.0}"));
    format!(
        "      late by p50 {} us, p99 {} us, p99.9 {} us, max {} us",
        us(late.p50_us),
        us(late.p99_us),
        us(late.p999_us),
        us(late.max_us)
    )
}
