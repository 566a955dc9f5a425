//! `openlink bench uart`: where the time of a request over a serial line goes, for our link and for the habits of slow
//! drivers, each alone and together, against the simulated drone behind a line with a speed.

mod habits;
mod interpreter;
mod line;
mod rig;
mod slow;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use crtp::{Channel, Packet, Port};
use latency::record::Recording;
use latency::trace::{Rtt, StagePlan, Stages, Trace, page};
use latency::{Direction, Host, Stage};
use link::tap::{LinkTap, Moment, Place};
use link::uri::{Framing, UartUri};
use link::{Class, Link, Outgoing, Reactor, Role, State, Uri};
use serde_json::{Value, json};
use tap::MonoNs;

use self::habits::{CONTENDERS, Contender};
use self::rig::{Rig, Wiring};
use self::slow::{Driver, PATIENCE, is_answer};
use crate::{out, timer};

const STAGES: &str = include_str!("uart/stages.yaml");
/// Bytes around a packet: start, LEN, routing and XOR; start, type, LEN and sums.
const OVERHEAD: [(Framing, usize); 2] = [(Framing::Cpx, 5), (Framing::Syslink, 6)];
/// Data bytes of a request.
const BYTES: usize = 16;

/// Command line of `openlink bench uart`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Requests for each driver.
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    count: u32,
    /// Speed of the line, bit/s.
    #[arg(long, value_name = "BITS", default_value_t = 512_000, value_parser = clap::value_parser!(u32).range(9_600..=2_000_000))]
    baud: u32,
    /// Time between requests, ms.
    #[arg(long, value_name = "MS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1000))]
    period: u64,
    /// Time the drone takes before its first byte, us.
    #[arg(long, value_name = "US", default_value_t = 100, value_parser = clap::value_parser!(u64).range(0..=100_000))]
    answer: u64,
    /// Processor time of one call in the emulated interpreter, us.
    #[arg(long, value_name = "US", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    step: u64,
    /// Only this driver; may be repeated.
    #[arg(long, value_name = "NAME", value_parser = CONTENDERS.map(|one| one.name))]
    only: Vec<String>,
    /// Output folder: a packet log and a page for each driver, and uart.json.
    #[arg(long, value_name = "DIR", default_value = "out/bench/uart")]
    out: PathBuf,
    /// Print the JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// Measures one driver after the other.
pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    std::fs::create_dir_all(&args.out).with_context(|| args.out.display().to_string())?;
    timer::make_exact();
    let mut rows = Vec::new();
    for contender in &CONTENDERS {
        if args.only.is_empty() || args.only.iter().any(|name| name == contender.name) {
            tracing::info!("{}", contender.name);
            rows.push(measure(args, contender).with_context(|| contender.name.to_owned())?);
        }
    }
    let result = json!({"schema": 1, "host": Host::read(), "baud": args.baud, "count": args.count, "period_ms": args.period,
        "answer_us": args.answer, "interpreter_step_us": args.step, "bytes": BYTES, "rows": rows});
    let path = args.out.join("uart.json");
    std::fs::write(&path, serde_json::to_string_pretty(&result)? + "\n")
        .with_context(|| path.display().to_string())?;
    if args.json {
        out::json(&result);
    } else {
        show(&rows);
    }
    Ok(ExitCode::SUCCESS)
}

fn measure(args: &Args, contender: &Contender) -> anyhow::Result<Value> {
    let log = args.out.join(format!("{}.mcap", contender.name));
    let recording = Recording::start(&log, "bench uart", &["drone"], |text| {
        tracing::warn!("{text}")
    });
    let wiring = Wiring {
        baud: args.baud,
        answer: Duration::from_micros(args.answer),
    };
    let rig = Rig::start(&args.out, contender.framing, wiring, || recording.tap())?;
    let lost = match contender.habits {
        None => ours(args, contender.framing, &rig.port, &recording)?,
        Some(habits) => {
            let step = Duration::from_micros(args.step);
            let (driver, reader) =
                Driver::open(&rig.port, args.baud, contender.framing, habits, step)?;
            driver.run(reader, requests(args), || recording.tap())?
        }
    };
    rig.finish()?;
    let dropped = recording.finish().map_or(0, |status| status.dropped);
    let mut trace = Trace::read(&[log])?;
    add_last_bit(&mut trace, args.baud, contender.framing);
    let stages = Stages::of(&trace, &StagePlan::parse(STAGES)?)?;
    let chart = args.out.join(format!("{}.html", contender.name));
    std::fs::write(
        &chart,
        page(&trace, None, Some(&Rtt::of(&trace)?), Some(&stages))?,
    )?;
    row(contender, &stages, lost, dropped)
}

/// A request for each period, at changing places within a millisecond so that no habit falls into step.
fn requests(args: &Args) -> impl Iterator<Item = (Instant, Packet)> {
    let start = Instant::now() + Duration::from_millis(100);
    let period = Duration::from_millis(args.period);
    (0..args.count).filter_map(move |number| {
        let place = Duration::from_micros(u64::from(number) * 618 % 1000);
        let mut data = [0; BYTES];
        data[..4].copy_from_slice(&(number + 1).to_le_bytes());
        let packet = Packet::new(Port::LINK, Channel::C0, &data).ok()?;
        Some((start + period * number + place, packet))
    })
}

/// The same requests through the link that this project ships; how many had no answer.
fn ours(args: &Args, framing: Framing, port: &Path, recording: &Recording) -> anyhow::Result<u64> {
    let uri = Uri::Uart(UartUri {
        path: port.to_owned(),
        baud: args.baud,
        framing,
    });
    let mut reactor = Reactor::new()?;
    let mut links: [Box<dyn Link>; 1] = [link::open(Instant::now(), &uri, Role::To)?];
    let end = Instant::now() + 5 * PATIENCE;
    while links[0].state() != State::Up {
        let now = reactor.turn(&mut links, Some(end))?;
        ensure!(now < end, "{uri}: the link did not come up");
    }
    links[0].set_tap(LinkTap::new(recording.tap(), 0, Place::Drone));
    let mut own = LinkTap::new(recording.tap(), 0, Place::Client);
    let mut lost = 0;
    for (at, packet) in requests(args) {
        while reactor.turn(&mut links, Some(at))? < at {
            while links[0].recv(Instant::now()).is_some() {}
        }
        // A stamp of its own: a packet that leaves in the nanosecond in which it came cannot be followed.
        own.pass(Moment::Received, Instant::now(), &packet);
        let outgoing = Outgoing {
            packet,
            class: Class::Ordered,
            expires: None,
        };
        let _refused_is_lost = links[0].send(Instant::now(), &outgoing);
        lost += u64::from(!answered(&mut reactor, &mut links, &packet, &mut own)?);
    }
    Ok(lost)
}

fn answered(
    reactor: &mut Reactor,
    links: &mut [Box<dyn Link>; 1],
    request: &Packet,
    own: &mut LinkTap,
) -> anyhow::Result<bool> {
    let end = Instant::now() + PATIENCE;
    loop {
        let now = reactor.turn(links, Some(end))?;
        while let Some(received) = links[0].recv(now) {
            if is_answer(request, &received.packet) {
                own.pass(Moment::Sending, Instant::now(), &received.packet);
                return Ok(true);
            }
        }
        if now >= end {
            return Ok(false);
        }
    }
}

/// When the last bit is out, for each packet that was written: a pseudo-terminal cannot tell. The line is busy from the
/// beginning of the write, and a writer that was held up in it returns when all is long out.
fn add_last_bit(trace: &mut Trace, baud: u32, framing: Framing) {
    let overhead = OVERHEAD.iter().find(|(one, _)| *one == framing);
    let overhead = overhead.map_or(0, |(_, bytes)| *bytes) as u64;
    let mut hops: Vec<_> = trace
        .hops
        .iter()
        .filter(|(_, hop)| hop.direction == Direction::Up)
        .copied()
        .collect();
    hops.sort_by_key(|(_, hop)| hop.at);
    let mut begun = HashMap::new();
    for (host, mut hop) in hops {
        match hop.stage {
            Stage::UC => {
                begun.insert(hop.data, hop.at);
            }
            Stage::U1 => {
                let bits = (u64::from(hop.size) + overhead) * u64::from(line::BITS_PER_BYTE);
                let start = begun.get(&hop.data).copied().unwrap_or(hop.at);
                let out = start.0 + bits * 1_000_000_000 / u64::from(baud.max(1));
                hop.stage = Stage::U2;
                hop.at = hop.at.max(MonoNs(out));
                trace.hops.push((host, hop));
            }
            _ => {}
        }
    }
}

fn row(contender: &Contender, stages: &Stages, lost: u64, dropped: u64) -> anyhow::Result<Value> {
    let mut complete = 0_u64;
    for one in &stages.rows {
        let parts: Option<u64> = one.durations.iter().copied().sum();
        if let (Some(parts), Some(total)) = (parts, one.total) {
            complete += 1;
            ensure!(
                parts == total,
                "the stages of a packet add up to {parts} ns, its total is {total} ns"
            );
        }
    }
    let summaries = stages.summaries();
    let figures = summaries.iter().map(|one| {
        json!({"name": one.name, "samples": one.histogram.len(), "missing": one.missing, "us": one.summary, "correlation": one.correlation})
    });
    Ok(
        json!({"driver": contender.name, "framing": contender.framing.to_string(), "habits": contender.habits, "unanswered": lost,
        "records_dropped": dropped, "complete": complete, "stages": figures.collect::<Vec<_>>()}),
    )
}

/// A table for the medians and one for the tails, us.
fn show(rows: &[Value]) {
    for quantile in ["p50", "p99", "max"] {
        let head = rows.first().map(|row| {
            cells(row, |stage| {
                stage["name"].as_str().unwrap_or("-").to_owned()
            })
        });
        out::line(format!(
            "{:<21}{}",
            format!("{quantile}, us"),
            head.unwrap_or_default()
        ));
        for row in rows {
            let figures = cells(row, |stage| {
                stage["us"][quantile]
                    .as_f64()
                    .map_or_else(|| "-".to_owned(), |us| format!("{us:.0}"))
            });
            out::line(format!(
                "{:<21}{figures}",
                row["driver"].as_str().unwrap_or("-")
            ));
        }
        out::line("");
    }
}

fn cells(row: &Value, of: impl Fn(&Value) -> String) -> String {
    let stages = row["stages"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    stages
        .iter()
        .map(|stage| format!("{:>19}", of(stage)))
        .collect()
}
