//! A peer of another middleware vendor for `rtt`: echoes probes as the node `relay` does, without any ROS library.

mod message;
mod rustdds_relay;

use anyhow::Result;
use clap::{Parser, ValueEnum};

/// Implementation that carries the messages.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Vendor {
    /// RustDDS, for payloads within one datagram.
    Rustdds,
}

/// Echoes probes with a middleware of its own.
#[derive(Debug, Parser)]
struct Args {
    /// Implementation that carries the messages.
    #[arg(long, value_enum)]
    vendor: Vendor,
    /// Domain where probes come in and echoes go out, 0 to 232.
    #[arg(long, value_parser = clap::value_parser!(u16).range(0..=232))]
    domain: u16,
    /// ROS name of the topic where probes come in.
    #[arg(long, default_value = "rtt/probe")]
    probe_topic: String,
    /// ROS name of the topic where echoes go out.
    #[arg(long, default_value = "rtt/echo")]
    echo_topic: String,
    /// Both topics are best-effort instead of reliable.
    #[arg(long)]
    best_effort: bool,
}

fn main() -> Result<()> {
    let args = Args::parse();
    anyhow::ensure!(
        args.probe_topic != args.echo_topic,
        "--echo-topic: {}: must differ from --probe-topic",
        args.echo_topic
    );
    match args.vendor {
        Vendor::Rustdds => rustdds_relay::run(&args),
    }
}
