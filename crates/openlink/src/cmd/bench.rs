//! `openlink bench`: whole experiments, each from a plan to a report.

mod dds;
mod uart;

use std::process::ExitCode;

/// Command line of `openlink bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// ROS 2 round trips: paths, payloads, sizes, rates, QoS, transports and middlewares in one matrix.
    Dds(dds::Args),
    /// Where the time of a request over a serial line goes: our link and the habits of slow drivers.
    Uart(uart::Args),
}

/// Runs the experiment.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.what {
        What::Dds(args) => dds::run(args),
        What::Uart(args) => uart::run(&args),
    }
}
