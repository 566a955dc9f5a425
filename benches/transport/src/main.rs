//! One end of a contender: sends stamped probes at fixed instants, counts what arrives and how late it is, and writes both as
//! JSON. `scripts/bench_transport.py` runs two of them over an emulated link.

mod clock;
mod flow;
mod flows;
mod run;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;

use flow::{Open, Role};

/// One end of a contender over one link.
#[derive(Debug, Parser)]
struct Args {
    /// Which end.
    role: Role,
    /// udp, tcp, prrt, quic, kcp or srt.
    contender: String,
    /// Where the server listens.
    addr: SocketAddr,
    /// Settings of the contender, e.g. `latency_ms=20`.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,
    /// Secret key of this end, hexadecimal.
    #[arg(long, requires = "peer")]
    secret: Option<String>,
    /// Public key of the other end, hexadecimal.
    #[arg(long, requires = "secret")]
    peer: Option<String>,
    /// Life of a control message, ms.
    #[arg(long, default_value_t = 20.0)]
    deadline_ms: f64,
    /// Monotonic clock at the first counted probe, ns.
    #[arg(long)]
    start_ns: u64,
    /// Control messages a second from this end; 0: none.
    #[arg(long, default_value_t = 0.0)]
    rate: f64,
    /// Bytes of a control message.
    #[arg(long, default_value_t = 32)]
    bytes: usize,
    /// Counted control messages.
    #[arg(long, default_value_t = 0)]
    count: u32,
    /// Seconds to stay after the last one could have been sent.
    #[arg(long, default_value_t = 1.0)]
    linger_s: f64,
    /// Seconds in which control is sent, for the end that only listens.
    #[arg(long, default_value_t = 0.0)]
    seconds: f64,
    /// Video, bit/s at 30 frames a second with a larger frame every second; 0: none.
    #[arg(long, default_value_t = 0.0)]
    video_bps: f64,
    /// Where the results go.
    #[arg(long)]
    output: PathBuf,
}

fn setting(text: &str) -> Result<(String, String), String> {
    let pair = text
        .split_once('=')
        .ok_or_else(|| format!("{text:?} is no KEY=VALUE"))?;
    Ok((pair.0.to_owned(), pair.1.to_owned()))
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let slack = std::num::NonZeroU64::MIN;
    rustix::thread::set_current_timer_slack(Some(slack)).context("timers to the nanosecond")?;
    let how = Open {
        role: args.role,
        addr: args.addr,
        settings: &args.settings,
        deadline: Duration::from_secs_f64(args.deadline_ms / 1e3),
        keys: args.secret.as_deref().zip(args.peer.as_deref()),
    };
    let mut flow = flow::open(&args.contender, &how)?;
    let plan = run::Plan {
        start_ns: args.start_ns,
        rate: args.rate,
        bytes: args.bytes,
        count: args.count,
        seconds: args.seconds.max(f64::from(args.count) / args.rate.max(1.0)),
        linger_s: args.linger_s,
        video_bps: args.video_bps,
    };
    let results = run::run(flow.as_mut(), &plan)?;
    let text = serde_json::to_string(&results)?;
    std::fs::write(&args.output, text)
        .with_context(|| format!("cannot write {}", args.output.display()))
}
