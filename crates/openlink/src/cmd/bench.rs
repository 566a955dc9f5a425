//! `openlink bench`: whole experiments, each from a plan to a report.

mod dds;

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
}

/// Runs the experiment.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.what {
        What::Dds(args) => dds::run(args),
    }
}
