//! The `relay` executable; see `crazyflie_openlink::nodes::relay`.

use std::process::ExitCode;

fn main() -> ExitCode {
    crazyflie_openlink::main("relay", crazyflie_openlink::nodes::relay::run)
}
