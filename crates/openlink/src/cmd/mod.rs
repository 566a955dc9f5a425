//! The subcommands, one file each: `Args` for the command line and `run` for the work.

use std::process::ExitCode;

use clap::Subcommand;

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {}

/// Does it.
pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {}
}
