//! The `domain_bridge` executable; see `crazyflie_openlink::nodes::domain_bridge`.

use std::process::ExitCode;

fn main() -> ExitCode {
    crazyflie_openlink::main(
        "domain_bridge",
        crazyflie_openlink::nodes::domain_bridge::run,
    )
}
