//! The `rtt` executable; see `crazyflie_openlink::nodes::rtt`.

use std::process::ExitCode;

fn main() -> ExitCode {
    crazyflie_openlink::main("rtt", crazyflie_openlink::nodes::rtt::run)
}
