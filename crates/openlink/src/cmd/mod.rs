//! The subcommands, one file each: `Args` for the command line and `run` for the work.

mod bench;
mod box_cmd;
mod bridge;
mod doctor;
mod emulate;
mod keys;
mod loop_cmd;
mod ping;
mod recommend;
mod relay;
mod report;
mod sim;
mod trace;

use std::process::ExitCode;

use clap::Subcommand;

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a whole experiment from a plan to a report.
    Bench(bench::Args),
    /// Join two links: UART, paced transport, UDP, TCP or a simulated drone, in any pair.
    Bridge(bridge::Args),
    /// Measure the way to a drone or a relay and back.
    Ping(ping::Args),
    /// Echo raw messages of the paced transport with their times.
    Relay(relay::Args),
    /// Rank links, transports and QoS for a need, from measured files.
    Recommend(recommend::Args),
    /// Make one HTML page of results files.
    Report(report::Args),
    /// Serve a simulated Crazyflie on a pseudo-terminal, UDP or both.
    Sim(sim::Args),
    /// Emulate a Wi-Fi-like link between two network namespaces, or in front of a UDP port.
    Emulate(emulate::Args),
    /// Measure a periodic control loop over scheduling policies and loads.
    Loop(loop_cmd::Args),
    /// Judge this machine as the controller of a fake 1 kHz control box.
    Box(box_cmd::Args),
    /// Examine this machine, or a recorded one, and say what to do.
    Doctor(doctor::Args),
    /// Make and keep the keys that the paced transport encrypts with.
    Keys(keys::Args),
    /// Read packet logs: times between packets, round trips, stages; or export them.
    Trace(trace::Args),
}

/// Does it.
pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Bench(args) => bench::run(args),
        Command::Bridge(args) => bridge::run(args),
        Command::Ping(args) => ping::run(args),
        Command::Relay(args) => relay::run(args),
        Command::Recommend(args) => recommend::run(args),
        Command::Report(args) => report::run(args),
        Command::Sim(args) => sim::run(args),
        Command::Emulate(args) => emulate::run(args),
        Command::Loop(args) => loop_cmd::run(args),
        Command::Box(args) => box_cmd::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Keys(args) => keys::run(args),
        Command::Trace(args) => trace::run(args),
    }
}
