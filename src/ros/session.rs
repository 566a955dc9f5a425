//! One context, one node and the thread that spins them, in one domain.
//!
//! rclrs installs no signal handler and the domain belongs to the context, so a process that serves two domains
//! has two sessions, and every executable decides itself when to stop.

use std::any::Any;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rclrs::{
    Context, CreateBasicExecutor as _, Executor, ExecutorCommands, InitOptions, LogSeverity,
    Logger, Node, SpinOptions,
};
use serde_json::Value;

use super::args::NodeArgs;

/// How long to wait for a spin to notice that it is to end.
const HALT_AGAIN: Duration = Duration::from_millis(2);

/// No middleware tells the history of a peer's end, and rclrs logs an error for each peer of each topic that is asked for:
/// every second, while the bridge looks for peers that cannot match.
fn quiet() -> Result<()> {
    let logger = Logger::new("QoSProfile.conversion").context("cannot make a logger")?;
    logger
        .set_level(LogSeverity::Fatal)
        .context("cannot set the level of a logger")
}

/// A node in a domain, spun by a thread of its own from [`Session::start`] on.
pub struct Session {
    node: Node,
    commands: Arc<ExecutorCommands>,
    executor: Option<Executor>,
    /// A parameter exists as long as its handle.
    parameters: Vec<Box<dyn Any + Send>>,
    thread: Option<JoinHandle<Vec<rclrs::RclrsError>>>,
}

impl Session {
    /// Makes the context and the node. `suffix` is appended to the node's name, for processes with several.
    ///
    /// # Errors
    /// What rcl says, with the domain it was about.
    pub fn open(args: &NodeArgs, domain: usize, suffix: &str) -> Result<Self> {
        let options = InitOptions::new().with_domain_id(Some(domain));
        let context = Context::new(args.passed_on().iter().cloned(), options)
            .with_context(|| format!("cannot open a context in domain {domain}"))?;
        quiet()?;
        let executor = context.create_basic_executor();
        let name = format!("{}{suffix}", args.node_name());
        let node = executor
            .create_node(name.as_str())
            .with_context(|| format!("cannot create the node {name}"))?;
        let commands = Arc::clone(executor.commands());
        Ok(Self {
            node,
            commands,
            executor: Some(executor),
            parameters: Vec::new(),
            thread: None,
        })
    }

    /// The node.
    #[must_use]
    pub const fn node(&self) -> &Node {
        &self.node
    }

    /// Declares what took effect as read-only parameters, so that `ros2 param` shows it.
    ///
    /// # Errors
    /// A parameter that rclrs refuses.
    pub fn declare(&mut self, args: &NodeArgs) -> Result<()> {
        for (key, value) in args.effective() {
            let parameter = declare(&self.node, &key, &value)
                .with_context(|| format!("cannot declare parameter {key}"))?;
            self.parameters.push(parameter);
        }
        Ok(())
    }

    /// Spins in a thread called `spin`.
    ///
    /// # Errors
    /// The thread cannot be made.
    pub fn start(&mut self) -> Result<()> {
        if let Some(mut executor) = self.executor.take() {
            let spin = move || executor.spin(SpinOptions::default());
            self.thread = Some(
                std::thread::Builder::new()
                    .name("spin".into())
                    .spawn(spin)?,
            );
        }
        Ok(())
    }

    /// Stops spinning and waits for the thread.
    pub fn stop(&mut self) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        // A spin that begins forgets a halt that came before it, so the halt is repeated.
        while !thread.is_finished() {
            self.commands.halt_spinning();
            std::thread::sleep(HALT_AGAIN);
        }
        match thread.join() {
            Ok(errors) => errors
                .iter()
                .for_each(|error| tracing::warn!(%error, "spinning ended")),
            Err(_) => tracing::error!("the spinning thread panicked"),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.stop();
    }
}

fn declare(node: &Node, key: &str, value: &Value) -> Result<Box<dyn Any + Send>> {
    Ok(match value {
        Value::Bool(value) => Box::new(node.declare_parameter(key).default(*value).read_only()?),
        Value::Number(number) => match number.as_i64() {
            Some(value) => Box::new(node.declare_parameter(key).default(value).read_only()?),
            None => {
                let value = number.as_f64().unwrap_or_default();
                Box::new(node.declare_parameter(key).default(value).read_only()?)
            }
        },
        Value::Array(items) => {
            let items: Arc<[i64]> = items.iter().filter_map(Value::as_i64).collect();
            Box::new(node.declare_parameter(key).default(items).read_only()?)
        }
        text => {
            let text: Arc<str> = text
                .as_str()
                .map_or_else(|| text.to_string(), str::to_owned)
                .into();
            Box::new(node.declare_parameter(key).default(text).read_only()?)
        }
    })
}
