//! The Rust half of the interoperability test: echoes every message type of test_msgs and of this package through
//! the idiomatic types and through the C layout, compares some with literals, serves and calls services and an
//! action. Not a node for users; `test/interop` starts it and holds the other half.
//!
//! `interop_echo serve` runs until it is killed. `interop_echo call` calls the services and the action that the
//! test serves and exits with 0 when every answer is right.

#[cfg(has_test_msgs)]
mod call;
mod known;
mod lanes;
#[cfg(has_test_msgs)]
mod serve;

use std::process::ExitCode;

use rclrs::{Context, CreateBasicExecutor as _, InitOptions, SpinOptions};

use lanes::Lanes;

include!(concat!(env!("OUT_DIR"), "/interop_types.rs"));

fn main() -> ExitCode {
    let result = match std::env::args().nth(1).as_deref() {
        Some("serve") => serve_all(),
        Some("call") => call_all(),
        _ => Err(anyhow::anyhow!("usage: interop_echo serve|call")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = std::io::Write::write_fmt(
                &mut std::io::stderr(),
                format_args!("interop_echo: {error:#}\n"),
            );
            ExitCode::FAILURE
        }
    }
}

fn serve_all() -> anyhow::Result<()> {
    let mut executor = Context::new([], InitOptions::new())?.create_basic_executor();
    let mut lanes = Lanes::new(executor.create_node("interop_echo")?);
    echo_all(&mut lanes)?;
    known::compare_all(&mut lanes)?;
    #[cfg(has_test_msgs)]
    let _servers = serve::all(lanes.node())?;
    executor
        .spin(SpinOptions::default())
        .into_iter()
        .next()
        .map_or(Ok(()), |error| Err(error.into()))
}

#[cfg(has_test_msgs)]
fn call_all() -> anyhow::Result<()> {
    let mut executor = Context::new([], InitOptions::new())?.create_basic_executor();
    let node = executor.create_node("interop_call")?;
    let (sender, receiver) = std::sync::mpsc::channel();
    let done = executor.commands().run(async move {
        let _ = sender.send(call::all(&node).await);
    });
    executor.spin(SpinOptions::default().until_promise_resolved(done));
    receiver.recv()?
}

#[cfg(not(has_test_msgs))]
fn call_all() -> anyhow::Result<()> {
    anyhow::bail!("built without the package test_msgs: there is nothing to call")
}
