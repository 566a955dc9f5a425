//! The subcommands, one file each: `Args` for the command line and `run` for the work.

mod bridge;

use std::process::ExitCode;

use clap::Subcommand;

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Join two links: UART, paced transport, UDP or a simulated drone, in any pair.
    Bridge(bridge::Args),
}

/// Does it.
pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Bridge(args) => bridge::run(args),
    }
}
