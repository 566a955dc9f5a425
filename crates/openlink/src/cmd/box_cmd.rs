//! `openlink box`: a fake 1 kHz control box against a responder, both here or one of them elsewhere.
//!
//! Parses, lays the link, starts both sides, shows progress and prints the result. The judging is `realtime`'s.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail};
use realtime::control_box::network::{Cable, LinkFacts, LinkKind, call_box, wait_for_responder};
use realtime::control_box::report::{Around, Document};
use realtime::control_box::responder::{Disturbance, HoldStill, Responder, Waiting, spin_risk};
use realtime::control_box::rules::{OnMiss, Rules};
use realtime::control_box::run::{
    BoxPlan, BoxRun, Live, ResponderPlan, ResponderRun, run_both, run_box, run_responder,
};
use realtime::periodic::load::{Load, LoadProfile};
use realtime::periodic::spin::RtLimit;
use realtime::periodic::surroundings::{Host, Moment, cpus_online};
use realtime::periodic::verdict::danger;
use realtime::thread::policy::parse_duration;
use realtime::thread::process::{DEFAULT_PREFAULT, WakeLatency, lock_memory};
use realtime::{CpuList, Policy, ThreadPolicy};

use crate::{out, stop};

const PATIENCE: Duration = Duration::from_secs(30);
const LINE_EVERY: u64 = 100;
const LOOK: Duration = Duration::from_millis(20);

/// Command line of `openlink box`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How long to run, e.g. 60s.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    duration: Duration,
    /// States a second.
    #[arg(long, value_name = "HZ", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rate: u32,
    /// Misses in a row that stop the box.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    stop_after: u32,
    /// Start again this long after a stop, as the real stack does; without it a stop ends the run.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    auto_recover: Option<Duration>,
    /// What the arm does when no command came: replay or extrapolate.
    #[arg(long, value_name = "HOW", default_value = "replay", value_parser = on_miss)]
    on_miss: OnMiss,
    /// The link: auto (a virtual cable where permitted), veth or lo.
    #[arg(long, value_name = "LINK", default_value = "auto")]
    link: LinkKind,
    /// MTU of the virtual cable, bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u32).range(576..=65_535))]
    mtu: u32,
    /// Policy of the box, e.g. fifo:80.
    #[arg(long, value_name = "POLICY", default_value = "other")]
    box_policy: Policy,
    /// CPUs of the box.
    #[arg(long, value_name = "CPUS")]
    box_cpu: Option<CpuList>,
    /// Policy of the responder.
    #[arg(long, value_name = "POLICY", default_value = "other")]
    responder_policy: Policy,
    /// CPUs of the responder.
    #[arg(long, value_name = "CPUS")]
    responder_cpu: Option<CpuList>,
    /// How the responder waits: blocking, busy-poll or spin.
    #[arg(long, value_name = "MODE", default_value = "blocking")]
    mode: Waiting,
    /// Time the socket polls the network device in busy-poll mode, us.
    #[arg(long, value_name = "US", default_value_t = 50)]
    busy_poll_us: u32,
    /// Time the responder computes for each reply, us.
    #[arg(long, value_name = "US", default_value_t = 20, value_parser = clap::value_parser!(u64).range(0..=100_000))]
    work_us: u64,
    /// Random delay of each reply, from zero to this, us.
    #[arg(long, value_name = "US", default_value_t = 0)]
    jitter_us: u64,
    /// A stall of the responder every so many replies, as COUNT:TIME.
    #[arg(long, value_name = "COUNT:TIME", value_parser = stall)]
    stall: Option<(u64, Duration)>,
    /// Background load: none, cpu, memory, kernel, all.
    #[arg(long, value_name = "LOAD", default_value = "none")]
    load: LoadProfile,
    /// Only the box: wait here for a responder that runs `openlink box --responder`.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "responder")]
    listen: Option<SocketAddr>,
    /// Only the responder: call the box there; ends with a signal.
    #[arg(long, value_name = "ADDRESS")]
    responder: Option<SocketAddr>,
    /// Seed of load and delays.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Allow priority 99, real time on the only core, and a spinning responder that will be throttled.
    #[arg(long)]
    force: bool,
    /// End with an error before measuring when the kernel refuses anything.
    #[arg(long)]
    strict: bool,
    /// No line each 100 states.
    #[arg(long, short)]
    quiet: bool,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
    /// Also write the result as JSON into this file.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs until the time is over, the box stops for good or a signal ends it. Exit code 0: no stop.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let stop = stop::flag().context("cannot listen for signals")?;
    check_dangers(&args)?;
    if let Some(peer) = args.responder {
        return only_responder(&args, peer, &stop);
    }
    let _memory = lock_memory(DEFAULT_PREFAULT);
    let _held = WakeLatency::hold(0);
    let document = measure(&args, &stop)?;
    if let Some(path) = &args.output {
        let text = serde_json::to_string_pretty(&document)?;
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if args.json {
        let mut value = serde_json::to_value(&document)?;
        value["diagnostics"] = document.diagnostics();
        out::line(serde_json::to_string_pretty(&value)?);
    } else {
        out::line(document.text());
    }
    Ok(
        if document.counts.stops == 0 && document.counts.accepted > 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        },
    )
}

fn measure(args: &Args, stop: &AtomicBool) -> anyhow::Result<Document> {
    if args.strict {
        refuse_compromise(&[box_thread(args), responder_thread(args)])?;
    }
    let before = Moment::now();
    let load = Load::start(args.load, cpus_online(), args.duration, args.seed)?;
    let record = load.record().cloned();
    let (link, fragments_made, near, far) = both_or_box(args, stop)?;
    load.finish().context("cannot end the load")?;
    let interference = before.until(&Moment::now());
    let around = Around {
        host: Host::read(),
        link,
        fragments_made,
        load: record,
        interference,
    };
    let responder = responder_plan(args);
    Ok(Document::new(
        around,
        &box_plan(args),
        far.map(|far| (&responder, far)),
        near,
    ))
}

type Sides = (LinkFacts, Option<u64>, BoxRun, Option<ResponderRun>);

fn both_or_box(args: &Args, stop: &AtomicBool) -> anyhow::Result<Sides> {
    let (live, over) = (Live::default(), AtomicBool::new(false));
    if let Some(listen) = args.listen {
        let socket =
            wait_for_responder(listen, PATIENCE).with_context(|| format!("--listen {listen}"))?;
        let facts = LinkFacts::of("network", &socket);
        let near = with_lines(args, &live, &over, || {
            run_box(&socket, &box_plan(args), &live, stop)
        })?;
        return Ok((facts, None, near, None));
    }
    let mut cable = Cable::lay(args.link, args.mtu)?;
    let made = cable.fragments_made();
    let responder = Responder::new(HoldStill, disturbance(args));
    let (near, far) = with_lines(args, &live, &over, || {
        run_both(
            &cable,
            &box_plan(args),
            &responder_plan(args),
            responder,
            &live,
            stop,
        )
    })?;
    let made = cable
        .fragments_made()
        .zip(made)
        .map(|(after, before)| after - before);
    Ok((cable.facts, made, near, Some(far)))
}

/// Prints a line each 100 states from a thread of its own while `work` runs on this one.
fn with_lines<T, E>(
    args: &Args,
    live: &Live,
    over: &AtomicBool,
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    if args.quiet || args.json {
        return work();
    }
    thread::scope(|scope| {
        scope.spawn(|| print_lines(live, over));
        let outcome = work();
        over.store(true, Ordering::Relaxed);
        outcome
    })
}

fn print_lines(live: &Live, over: &AtomicBool) {
    let mut next = LINE_EVERY;
    while !over.load(Ordering::Relaxed) {
        thread::sleep(LOOK);
        let sent = live.sent.load(Ordering::Relaxed);
        if sent >= next {
            next = sent / LINE_EVERY * LINE_EVERY + LINE_EVERY;
            out::line(live_line(live, sent));
        }
    }
}

fn live_line(live: &Live, sent: u64) -> String {
    let rate = live.success_millionths.load(Ordering::Relaxed) as f64 / 1e6;
    let mut line = format!("#{sent} current success rate: {rate:.3}");
    let streak = live.streak.load(Ordering::Relaxed);
    if streak > 0 {
        line += &format!(", misses in a row: {streak}");
    }
    let stops = live.stops.load(Ordering::Relaxed);
    if stops > 0 {
        line += &format!(", stops: {stops}");
    }
    line
}

fn only_responder(args: &Args, peer: SocketAddr, stop: &AtomicBool) -> anyhow::Result<ExitCode> {
    let _memory = lock_memory(DEFAULT_PREFAULT);
    let socket = call_box(peer, PATIENCE, stop).with_context(|| format!("--responder {peer}"))?;
    let responder = Responder::new(HoldStill, disturbance(args));
    let run = run_responder(&socket, &responder_plan(args), responder, stop)?;
    run.applied.refusals.iter().for_each(out::line);
    out::line(format_args!(
        "{} states answered, {} datagrams were no states",
        run.answered, run.refused
    ));
    Ok(if run.answered > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn check_dangers(args: &Args) -> anyhow::Result<()> {
    let policies = [
        (args.box_policy, args.box_cpu.as_ref()),
        (args.responder_policy, args.responder_cpu.as_ref()),
    ];
    let dangers = policies
        .into_iter()
        .filter_map(|(policy, cpus)| danger(policy, cpus_online(), cpus));
    let spin = (args.mode == Waiting::Spin)
        .then(|| {
            spin_risk(
                args.responder_policy,
                RtLimit::of_this_machine(),
                cpus_online(),
            )
        })
        .flatten();
    let refused = dangers
        .chain(
            spin.clone()
                .filter(|_| args.responder_policy.is_real_time()),
        )
        .next();
    match refused {
        Some(why) if !args.force => bail!("{why}; --force runs it all the same"),
        _ => {}
    }
    if let Some(risk) = spin {
        tracing::warn!("spin: {risk}");
    }
    Ok(())
}

fn refuse_compromise(threads: &[ThreadPolicy]) -> anyhow::Result<()> {
    for wish in threads {
        let wish = wish.clone();
        let applied = thread::spawn(move || wish.apply()).join();
        applied
            .map_err(|_| anyhow::anyhow!("a thread ended in a panic"))??
            .require()?;
    }
    Ok(())
}

fn box_plan(args: &Args) -> BoxPlan {
    let period = Duration::from_secs(1) / args.rate;
    BoxPlan {
        rules: Rules {
            period,
            stop_after: args.stop_after,
            auto_recover: args.auto_recover,
            on_miss: args.on_miss,
            late_limit: period / 5,
            ..Rules::default()
        },
        duration: args.duration,
        thread: box_thread(args),
    }
}

fn responder_plan(args: &Args) -> ResponderPlan {
    ResponderPlan {
        waiting: args.mode,
        work: Duration::from_micros(args.work_us),
        thread: responder_thread(args),
    }
}

fn box_thread(args: &Args) -> ThreadPolicy {
    thread_policy(args.box_policy, args.box_cpu.as_ref(), None)
}

fn responder_thread(args: &Args) -> ThreadPolicy {
    let busy_poll_us = (args.mode == Waiting::BusyPoll).then_some(args.busy_poll_us);
    thread_policy(
        args.responder_policy,
        args.responder_cpu.as_ref(),
        busy_poll_us,
    )
}

fn thread_policy(
    policy: Policy,
    cpus: Option<&CpuList>,
    busy_poll_us: Option<u32>,
) -> ThreadPolicy {
    ThreadPolicy {
        policy: Some(policy),
        cpus: cpus.cloned(),
        timer_slack_ns: (!policy.is_real_time()).then_some(1),
        busy_poll_us,
    }
}

fn disturbance(args: &Args) -> Disturbance {
    let (stall_every, stall) = args.stall.unwrap_or_default();
    Disturbance {
        jitter: Duration::from_micros(args.jitter_us),
        stall_every,
        stall,
        seed: args.seed,
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .ok_or_else(|| format!("{text:?} is no time such as 500ms, 10s, 2h (at most a day)"))
}

fn on_miss(text: &str) -> Result<OnMiss, String> {
    match text {
        "replay" => Ok(OnMiss::Replay),
        "extrapolate" => Ok(OnMiss::Extrapolate),
        other => Err(format!("{other:?} is neither replay nor extrapolate")),
    }
}

fn stall(text: &str) -> Result<(u64, Duration), String> {
    let parts = text
        .split_once(':')
        .and_then(|(count, time)| Some((count.parse().ok()?, parse_duration(time)?)));
    parts.ok_or_else(|| format!("{text:?} is not COUNT:TIME such as 1000:20ms"))
}
