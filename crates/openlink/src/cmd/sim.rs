//! `openlink sim`: serves a simulated Crazyflie on a pseudo-terminal, UDP or both until a signal ends it, then says
//! what happened to it.
//!
//! It opens, reports and nothing else; the drone and its server are in `simulator`.

use std::fs;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use simulator::{Config, Drone, Framing, Report, Server, ServerConfig};

use crate::out;
use crate::record;
use crate::stop::Stop;

/// Command line of `openlink sim`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("where").required(true).multiple(true))]
pub(crate) struct Args {
    /// Becomes a symbolic link to a pseudo-terminal that speaks as the drone's UART does.
    #[arg(long, value_name = "PATH", group = "where")]
    uart: Option<PathBuf>,
    /// What the UART speaks: cpx (firmware since July 2022) or syslink (2020 to 2022).
    #[arg(long, value_name = "FRAMING", default_value = "cpx", requires = "uart", value_parser = framing)]
    framing: Framing,
    /// Milliseconds the drone takes for each frame before it clears the next one to send (cpx only).
    #[arg(long, value_name = "MS", default_value_t = 0, requires = "uart", value_parser = clap::value_parser!(u16).range(0..=1000))]
    frame_time: u16,
    /// Listens here for a client, one packet a datagram, as cflib's udp:// has it.
    #[arg(long, value_name = "HOST:PORT", group = "where")]
    udp: Option<String>,
    /// Writes what happened to this file as JSON at the end.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Prints what happened as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    record: record::Args,
    /// Waits to be armed, as brushless drones do.
    #[arg(long)]
    no_auto_arm: bool,
    /// Sensors without noise.
    #[arg(long)]
    no_noise: bool,
    /// Seed of the noise.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Pads the log table to this many variables; a real drone has about 380.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=2000))]
    log_variables: u16,
    /// Pads the parameter table to this many parameters; a real drone has about 245.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=2000))]
    parameters: u16,
    /// State of charge at the start, percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 100, value_parser = clap::value_parser!(u8).range(0..=100))]
    charge: u8,
}

impl Args {
    fn drone(&self) -> Config {
        Config {
            seed: self.seed,
            auto_arm: !self.no_auto_arm,
            noise: !self.no_noise,
            log_variables: self.log_variables.into(),
            parameters: self.parameters.into(),
            charge: f64::from(self.charge) / 100.0,
            ..Config::default()
        }
    }

    fn server(&self) -> anyhow::Result<ServerConfig> {
        let udp = self.udp.as_deref().map(resolve).transpose()?;
        Ok(ServerConfig {
            uart: self.uart.clone(),
            framing: self.framing,
            frame_time: Duration::from_millis(self.frame_time.into()),
            udp,
        })
    }
}

/// Flies until SIGINT or SIGTERM.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let (_stop, stream) = Stop::with_stream().context("cannot listen for signals")?;
    let now = Instant::now();
    let mut server = Server::open(&args.server()?, now)?;
    let mut drone = Drone::new(args.drone(), now);
    announce(&server);
    let recording = args.record.start("sim", &["drone"]);
    server.set_tap(|| recording.raw_tap());
    let served = server.run(&mut drone, &stream);
    recording.finish();
    let report = drone.report();
    publish(&args, &report)?;
    served?;
    Ok(ExitCode::SUCCESS)
}

fn framing(text: &str) -> Result<Framing, String> {
    match text {
        "cpx" => Ok(Framing::Cpx),
        "syslink" => Ok(Framing::Syslink),
        _ => Err("allowed: cpx, syslink".to_owned()),
    }
}

fn resolve(address: &str) -> anyhow::Result<SocketAddr> {
    let mut found = address
        .to_socket_addrs()
        .with_context(|| format!("--udp {address:?} is no HOST:PORT"))?;
    found
        .next()
        .with_context(|| format!("--udp {address:?}: host has no address"))
}

fn announce(server: &Server) {
    if let Some(path) = server.uart_path() {
        tracing::info!("simulated drone on uart://{}", path.display());
    }
    if let Some(address) = server.udp_address() {
        tracing::info!("simulated drone on udp://{address}");
    }
}

fn publish(args: &Args, report: &Report) -> anyhow::Result<()> {
    if args.json {
        out::json(report);
    } else {
        out::line(report);
    }
    let Some(path) = &args.report else {
        return Ok(());
    };
    let text = serde_json::to_string_pretty(report).context("cannot write the report")?;
    fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))
}
