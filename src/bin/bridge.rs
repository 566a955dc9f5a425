//! The `bridge` executable; see `crazyflie_openlink::nodes::bridge`.

use std::process::ExitCode;

fn main() -> ExitCode {
    crazyflie_openlink::main("bridge", crazyflie_openlink::nodes::bridge::run)
}
