//! The `openlink` command: everything that needs no ROS.
//!
//! This file parses the command line, sets up logging to standard error and turns the outcome into an exit
//! code. Each subcommand lives in its own file under `cmd`.

mod cmd;
mod out;
mod raw;
mod record;
mod stop;
mod threads;
mod timer;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;

/// Reach a Crazyflie over UART, a paced transport, UDP or a simulation, and measure the way there.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: cmd::Command,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    log_to_stderr();
    cmd::run(cli.command).unwrap_or_else(|error| {
        out::error(&error);
        ExitCode::FAILURE
    })
}

/// `RUST_LOG` chooses what is logged; notices and warnings by default.
fn log_to_stderr() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .init();
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    /// Only debug builds look for arguments and groups that clash, and only in the subcommand that is called.
    #[test]
    fn no_subcommand_has_two_arguments_or_groups_of_one_name() {
        super::Cli::command().debug_assert();
    }
}
